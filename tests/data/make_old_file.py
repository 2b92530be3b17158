"""Write threads of many kinds to a SQLite file, and what LangGraph itself says of each beside it.

``old_langgraph.sqlite`` and ``old_langgraph.json`` were made by the versions of the published experiment:

    uv run --no-project --python 3.11 --with langgraph==1.2.9 --with langgraph-checkpoint==4.1.1 \
        --with langgraph-checkpoint-sqlite==3.1.0 tests/data/make_old_file.py

The tests also call :func:`make_threads` with the versions that are installed.
"""

import json
import operator
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send, interrupt


class State(TypedDict, total=False):
    """A list that grows and a value that is replaced."""

    seen: Annotated[list, operator.add]
    value: Any


def add(name):
    def node(state):
        return {"seen": [name]}

    return node


def fail(state):
    raise RuntimeError("as planned")


def beside(saver, siblings, node):
    """Run a node only when the results of so many siblings are saved: a failure can lose what is not yet."""

    def waits(given, config: RunnableConfig):
        thread = {"configurable": {"thread_id": config["configurable"]["thread_id"]}}
        end = time.monotonic() + 60
        while time.monotonic() < end:
            newest = saver.get_tuple(thread)
            now = newest.metadata["step"] == config["metadata"]["langgraph_step"] - 1
            if now and len({task_id for task_id, *_ in newest.pending_writes}) >= siblings:
                break
            time.sleep(0.01)
        return node(given)

    return waits


def ask(state):
    return {"value": interrupt("go on?")}


def ask_twice(state):
    return {"value": [interrupt("first?"), interrupt("second?")]}


def graph(nodes, edges, *, routes=(), **options):
    """Build a graph; an edge is a pair, its source may be a list (a join)."""
    builder = StateGraph(State)
    for name, node in nodes.items():
        builder.add_node(name, node, defer=name.startswith("deferred"))
    for source, target in edges:
        builder.add_edge(source, target)
    for source, router, targets in routes:
        builder.add_conditional_edges(source, router, targets)
    return builder.compile(**options)


def graphs(saver):
    """Return a graph for each kind of thread."""
    ends = {"checkpointer": saver}
    letters = {name: add(name) for name in "abcd"}
    inner = graph({"x": add("x"), "ask": ask}, [(START, "x"), ("x", "ask"), ("ask", END)])
    middle = graph({"m": add("m"), "inner": inner}, [(START, "m"), ("m", "inner")])
    at_last = beside(saver, 3, lambda number: {"seen": [10 // number]})

    def divides(number, config: RunnableConfig):
        return {"seen": [10 // number]} if number else at_last(number, config)

    chain = [(START, "a"), ("a", "b"), ("b", "c"), ("c", END)]

    def sends(state):
        return [Send("worker", number) for number in range(3)]

    def again(state):
        return "a" if len(state["seen"]) < 4 else END

    @task
    def double(number):
        return number * 2

    @entrypoint(checkpointer=saver)
    def function(number, *, previous=None):
        answer = interrupt("how many?") if number else 0
        return double(number).result() + answer + (previous or 0)

    return {
        "chain": graph({k: letters[k] for k in "abc"}, chain, **ends),
        "parallel": graph(letters, [(START, k) for k in "dbca"], **ends),
        "join": graph(letters, [(START, "a"), (START, "b"), ("b", "c"), (["a", "c"], "d")], **ends),
        "join of odd names": graph(
            {"x+y": add(1), "z z": add(2), "last": add(3)},
            [(START, "x+y"), ("x+y", "z z"), (["x+y", "z z"], "last")],
            **ends,
        ),
        "join failed": graph(
            {"a": add("a"), "b": fail, "c": add("c"), "d": add("d")},
            [(START, "a"), (START, "b"), ("a", "c"), (["b", "c"], "d")],
            **ends,
        ),
        "send": graph(
            {"a": add("a"), "worker": lambda number: {"seen": [number]}, "b": add("b")},
            [(START, "a"), ("worker", "b")],
            routes=[("a", sends, ["worker"])],
            **ends,
        ),
        "send failed": graph(
            {"a": add("a"), "worker": divides, "b": add("b")},
            [(START, "a"), ("worker", "b"), ("a", "b")],
            routes=[("a", sends, ["worker"])],
            **ends,
        ),
        "loop": graph({"a": add("a")}, [(START, "a")], routes=[("a", again, ["a", END])], **ends),
        "goto": graph(
            {"a": lambda s: Command(goto=["b", "c"], update={"seen": ["a"]}), "b": add("b"), "c": add("c")},
            [(START, "a")],
            **ends,
        ),
        "deferred": graph(
            {"a": add("a"), "b": add("b"), "deferred": add("deferred"), "c": add("c")},
            [(START, "a"), (START, "b"), ("a", "deferred"), ("b", "c"), ("c", "deferred")],
            **ends,
        ),
        "failed": graph({"a": add("a"), "b": fail}, [(START, "a"), ("a", "b")], **ends),
        "failed beside": graph(
            {"a": add("a"), "b": beside(saver, 1, fail), "c": add("c")},
            [(START, "a"), ("a", "b"), ("a", "c")],
            **ends,
        ),
        "asking": graph({"a": add("a"), "ask": ask}, [(START, "a"), ("a", "ask")], **ends),
        "asking twice": graph({"ask": ask_twice, "b": add("b")}, [(START, "ask"), (START, "b")], **ends),
        "answered": graph({"a": add("a"), "ask": ask}, [(START, "a"), ("a", "ask")], **ends),
        "stopped before": graph({k: letters[k] for k in "abc"}, chain, interrupt_before=["b"], **ends),
        "subgraph": graph({"a": add("a"), "inner": inner}, [(START, "a"), ("a", "inner")], **ends),
        "nested": graph({"a": add("a"), "middle": middle}, [(START, "a"), ("a", "middle")], **ends),
        "two subgraphs": graph({"l": inner, "r": inner}, [(START, "l"), (START, "r")], **ends),
        "forked": graph({k: letters[k] for k in "abc"}, chain, **ends),
        "new input": graph({"a": add("a"), "b": fail, "c": add("c")}, chain, **ends),
        "function": function,
        "function answered": function,
    }


def make_threads(path: str | Path) -> dict[str, list[dict]]:
    """Run every graph on a thread of its name in the file at ``path``.

    Returns what LangGraph says of each thread: its snapshots, newest first, for each namespace.
    """
    with closing(sqlite3.connect(path, check_same_thread=False)) as connection:
        saver = SqliteSaver(connection)
        saver.setup()
        built = graphs(saver)
        for name, runnable in built.items():
            config = {"configurable": {"thread_id": name}}
            first = 2 if name.startswith("function") else {"seen": ["in"]}
            call(runnable, first, config)
            if name == "answered":
                call(runnable, Command(resume="yes"), config)
            elif name == "asking twice":
                call(runnable, Command(resume="one"), config)
            elif name == "function answered":
                call(runnable, Command(resume=7), config)
                call(runnable, 0, config)
            elif name == "new input":
                call(runnable, {"seen": ["again"], "value": 1}, config)
            elif name == "forked":
                history = list(runnable.get_state_history(config))
                call(runnable, None, history[2].config)
                edited = runnable.update_state(history[1].config, {"value": "edited"}, as_node="b")
                runnable.update_state(edited, {"value": "again"}, as_node="a")
        return {name: said(runnable, name, connection) for name, runnable in built.items()}


def call(runnable, given, config) -> None:
    with suppress(RuntimeError, ZeroDivisionError):  # some are made to fail
        runnable.invoke(given, config)


def said(runnable, thread_id, connection) -> list[dict]:
    """Return what LangGraph's own reading gives for a thread, namespace by namespace."""
    namespaces = connection.execute(
        "SELECT DISTINCT checkpoint_ns FROM checkpoints WHERE thread_id = ? ORDER BY 1", (thread_id,)
    )
    found = []
    for (namespace,) in namespaces.fetchall():
        config = {"configurable": {"thread_id": thread_id, "checkpoint_ns": namespace}}
        live = runnable.get_state(config)
        for number, snapshot in enumerate(runnable.get_state_history(config)):
            parent = (snapshot.parent_config or {}).get("configurable", {}).get("checkpoint_id")
            found.append(
                {
                    "namespace": namespace,
                    "id": snapshot.config["configurable"]["checkpoint_id"],
                    "parent": parent,
                    "step": snapshot.metadata["step"],
                    "source": snapshot.metadata["source"],
                    "created_at": snapshot.created_at,
                    "values": snapshot.values,
                    "next": list(snapshot.next),
                    "tasks": [one.id for one in snapshot.tasks],
                    "live_next": list(live.next) if number == 0 else None,
                }
            )
    return found


def main() -> None:
    """Write the file and the answers beside this script."""
    path = Path(__file__).with_name("old_langgraph.sqlite")
    path.unlink(missing_ok=True)
    answers = make_threads(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("VACUUM")
    path.with_suffix(".json").write_text(json.dumps(answers, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
