# ruff: noqa: E402, E501, F811
"""Answers to chapter 08's exercise: a cell is `# %% right: …` or `# %% wrong [requirements that fail]: …`."""

# %% right: a batch node that loops, with an async router
import operator
from typing import Annotated, TypedDict

from langgraph.graph import END, START, StateGraph


class Text(TypedDict, total=False):
    chunks: Annotated[list[str], operator.add]


def build(chunks, k, emit):
    async def batch(state: Text):
        start = len(state["chunks"])
        for chunk in chunks[start : start + k]:
            await emit(chunk)
        return {"chunks": chunks[start : start + k]}

    async def more(state: Text):
        return "batch" if len(state["chunks"]) < len(chunks) else END

    builder = StateGraph(Text).add_node("batch", batch).add_edge(START, "batch")
    return builder.add_conditional_edges("batch", more, ["batch", END])


# %% right: a generated chain, a node a batch, the text as one string
from typing import TypedDict

from langgraph.graph import START, StateGraph


class Text(TypedDict, total=False):
    text: str


def node(part, emit):
    async def show(state: Text):
        text = state.get("text", "")
        for chunk in part:
            await emit(chunk)
            text += chunk
        return {"text": text}

    return show


def build(chunks, k, emit):
    builder, last = StateGraph(Text), START
    for start in range(0, len(chunks), k):
        name = f"batch {start // k + 1}"
        builder.add_node(name, node(chunks[start : start + k], emit))
        builder.add_edge(last, name)
        last = name
    return builder


# %% right: Command(goto=…), the list read back and a field that says done
from dataclasses import dataclass, field

from langgraph.graph import END, START, StateGraph
from langgraph.types import Command


@dataclass
class Text:
    shown: list[str] = field(default_factory=list)
    status: str = "running"


def build(chunks, k, emit):
    async def batch(state: Text):
        shown = list(state.shown)
        while len(shown) < len(chunks):
            await emit(chunks[len(shown)])
            shown.append(chunks[len(shown)])
            if len(shown) % k == 0:
                break
        done = len(shown) == len(chunks)
        return Command(
            update={"shown": shown, "status": "completed" if done else "running"},
            goto=END if done else "batch",
        )

    builder = StateGraph(Text).add_node("batch", batch, destinations=("batch", END))
    return builder.add_edge(START, "batch")


# %% right: ordinary functions as nodes, which run in threads and just call emit
import operator
from typing import Annotated, TypedDict

from langgraph.graph import START, StateGraph


class Text(TypedDict, total=False):
    parts: Annotated[list[list[str]], operator.add]


def build(chunks, k, emit):
    def show(part):
        def node(state: Text):
            for chunk in part:
                emit(chunk)
            return {"parts": [part]}

        return node

    parts = [chunks[start : start + k] for start in range(0, len(chunks), k)]
    nodes = [(f"part-{number}", show(part)) for number, part in enumerate(parts)]
    return StateGraph(Text).add_sequence(nodes).add_edge(START, "part-0")


# %% right: a batch that catches the cancel and hands on what it has, in a loop that goes on from there
import asyncio
import operator
from typing import Annotated, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Command


class Text(TypedDict, total=False):
    shown: Annotated[list[str], operator.add]


def build(chunks, k, emit):
    async def batch(state: Text):
        start, shown = len(state["shown"]), []
        try:
            for chunk in chunks[start : start + k]:
                shown.append(chunk)
                await emit(chunk)
        except asyncio.CancelledError:
            if not shown:
                raise
        goto = END if start + len(shown) == len(chunks) else "batch"
        return Command(update={"shown": shown}, goto=goto)

    return StateGraph(Text).add_node("batch", batch, destinations=("batch", END)).add_edge(START, "batch")


# %% wrong [cancelled, killed]: one long node under sync
from typing import TypedDict

from langgraph.graph import START, StateGraph


class Text(TypedDict, total=False):
    text: str


def build(chunks, k, emit):
    async def answer(state: Text):
        for chunk in chunks:
            await emit(chunk)
        return {"text": "".join(chunks)}

    return StateGraph(Text).add_node("answer", answer).add_edge(START, "answer")


# %% wrong [checkpoints]: one chunk a step
import operator
from typing import Annotated, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Command


class Text(TypedDict, total=False):
    shown: Annotated[list[str], operator.add]


def build(chunks, k, emit):
    async def step(state: Text):
        chunk = chunks[len(state["shown"])]
        await emit(chunk)
        last = len(state["shown"]) + 1 == len(chunks)
        return Command(update={"shown": [chunk]}, goto=END if last else "step")

    return StateGraph(Text).add_node("step", step, destinations=("step", END)).add_edge(START, "step")


# %% wrong [whole, cancelled, killed, goes-on, goes-on-behind]: no reducer
from typing import TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Command


class Text(TypedDict, total=False):
    shown: list[str]
    position: int


def build(chunks, k, emit):
    async def batch(state: Text):
        start = state.get("position", 0)
        now = chunks[start : start + k]
        for chunk in now:
            await emit(chunk)
        last = start + k >= len(chunks)
        return Command(update={"shown": now, "position": start + k}, goto=END if last else "batch")

    return StateGraph(Text).add_node("batch", batch, destinations=("batch", END)).add_edge(START, "batch")


# %% wrong [paced]: a burst at the end of each batch
import operator
from typing import Annotated, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Command


class Text(TypedDict, total=False):
    shown: Annotated[list[str], operator.add]


def build(chunks, k, emit):
    async def batch(state: Text):
        start = len(state["shown"])
        now = []
        for chunk in chunks[start : start + k]:
            now.append(chunk)
        for chunk in now:
            emit(chunk)
        return Command(update={"shown": now}, goto=END if start + k >= len(chunks) else "batch")

    return StateGraph(Text).add_node("batch", batch, destinations=("batch", END)).add_edge(START, "batch")


# %% wrong [paced]: saved first, and all shown in the last node
import operator
from typing import Annotated, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Command


class Text(TypedDict, total=False):
    shown: Annotated[list[str], operator.add]


def build(chunks, k, emit):
    async def batch(state: Text):
        start = len(state["shown"])
        last = start + k >= len(chunks)
        if last:
            for chunk in chunks:
                await emit(chunk)
        return Command(update={"shown": chunks[start : start + k]}, goto=END if last else "batch")

    return StateGraph(Text).add_node("batch", batch, destinations=("batch", END)).add_edge(START, "batch")


# %% wrong [killed, goes-on, goes-on-behind]: one long node that catches the cancel and returns the partial text
import asyncio
from typing import TypedDict

from langgraph.graph import START, StateGraph


class Text(TypedDict, total=False):
    text: str


def build(chunks, k, emit):
    async def answer(state: Text):
        text = ""
        try:
            for chunk in chunks:
                text += chunk
                await emit(chunk)
        except asyncio.CancelledError:
            pass
        return {"text": text}

    return StateGraph(Text).add_node("answer", answer).add_edge(START, "answer")


# %% wrong [goes-on-behind]: a router that is an ordinary function
import operator
from typing import Annotated, TypedDict

from langgraph.graph import END, START, StateGraph


class Text(TypedDict, total=False):
    chunks: Annotated[list[str], operator.add]


def build(chunks, k, emit):
    async def batch(state: Text):
        start = len(state["chunks"])
        for chunk in chunks[start : start + k]:
            await emit(chunk)
        return {"chunks": chunks[start : start + k]}

    def more(state: Text):
        return "batch" if len(state["chunks"]) < len(chunks) else END

    builder = StateGraph(Text).add_node("batch", batch).add_edge(START, "batch")
    return builder.add_conditional_edges("batch", more, ["batch", END])


# %% wrong [whole, cancelled, killed, goes-on, goes-on-behind]: the position in a variable of the function, not in the state
import operator
from typing import Annotated, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Command


class Text(TypedDict, total=False):
    shown: Annotated[list[str], operator.add]


position = 0


def build(chunks, k, emit):
    async def batch(state: Text):
        global position
        now = chunks[position : position + k]
        for chunk in now:
            await emit(chunk)
            position += 1
        return Command(update={"shown": now}, goto=END if position >= len(chunks) else "batch")

    return StateGraph(Text).add_node("batch", batch, destinations=("batch", END)).add_edge(START, "batch")


# %% wrong [checkpoints]: a node that makes a batch, and another one that decides
import operator
from typing import Annotated, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Command


class Text(TypedDict, total=False):
    shown: Annotated[list[str], operator.add]


def build(chunks, k, emit):
    async def batch(state: Text):
        start = len(state["shown"])
        for chunk in chunks[start : start + k]:
            await emit(chunk)
        return {"shown": chunks[start : start + k]}

    async def decide(state: Text):
        return Command(goto=END if len(state["shown"]) == len(chunks) else "batch")

    builder = StateGraph(Text).add_node("batch", batch)
    builder.add_node("decide", decide, destinations=("batch", END))
    return builder.add_edge(START, "batch").add_edge("batch", "decide")


# %% wrong [checkpoints, goes-on, goes-on-behind]: chunks left in a list of the builder, and batches of k - 1
import operator
from typing import Annotated, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Command


class Text(TypedDict, total=False):
    shown: Annotated[list[str], operator.add]


def build(chunks, k, emit):
    k = max(1, k - 1)
    left = list(chunks)

    async def batch(state: Text):
        now = [left.pop(0) for _ in range(min(k, len(left)))]
        for chunk in now:
            await emit(chunk)
        return Command(update={"shown": now}, goto="batch" if left else END)

    return StateGraph(Text).add_node("batch", batch, destinations=("batch", END)).add_edge(START, "batch")
