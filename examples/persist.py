"""Ask in one process, answer in another one. Between them there is nothing but a file.

    python persist.py                        do both, each in a process of its own
    python persist.py start reviews.sqlite   the first process: it asks, and ends
    python persist.py resume reviews.sqlite yes

It needs langgraph and langgraph-checkpoint-sqlite, and stands alone: copy it and change the nodes.
"""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

CONFIG = {"configurable": {"thread_id": "review-1"}}


class Review(TypedDict, total=False):
    """What the thread keeps."""

    draft: str
    approved: bool


def approve(state: Review) -> dict:
    """Ask a person; only a plain yes is a yes. This node runs twice: once to ask, once with the answer."""
    answer = interrupt({"action": "create draft", "draft": state["draft"]})
    return {"approved": answer is True}


builder = StateGraph(Review).add_node("approve", approve)
builder.add_edge(START, "approve").add_edge("approve", END)


def start(file: str) -> None:
    """Begin the review, up to its question."""
    with SqliteSaver.from_conn_string(file) as saver:
        graph = builder.compile(checkpointer=saver)
        # sync: what is asked is in the file before anybody sees it.
        came_back = graph.invoke({"draft": "a text about tides"}, CONFIG, durability="sync")
    print("start: waits for an answer to", came_back["__interrupt__"][0].value)


def resume(file: str, answer: str) -> None:
    """Give the answer, if the file has a question that waits for one."""
    with SqliteSaver.from_conn_string(file) as saver:
        graph = builder.compile(checkpointer=saver)
        if not graph.get_state(CONFIG).interrupts:
            sys.exit("resume: nothing waits for an answer in this file")
        state = graph.invoke(Command(resume=answer == "yes"), CONFIG, durability="sync")
    print("resume: approved is", state["approved"])


def both() -> None:
    """Do both, each in an interpreter of its own."""
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "reviews.sqlite")
        for arguments in (["start", file], ["resume", file, "yes"]):
            subprocess.run([sys.executable, __file__, *arguments], check=True, timeout=120)
    print("parent: two processes, and nothing between them but one file")


if __name__ == "__main__":
    match sys.argv[1:]:
        case []:
            both()
        case ["start", file]:
            start(file)
        case ["resume", file, "yes" | "no" as answer]:
            resume(file, answer)
        case _:
            sys.exit(__doc__)
