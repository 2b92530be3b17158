# ruff: noqa: E402, F811
"""Answers to chapter 03's exercise: a cell is `# %% right: …` or `# %% wrong [requirements that fail]: …`."""

# %% right: from_conn_string, a reducer that adds
import operator
from typing import Annotated, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph


class Job(TypedDict):
    total: Annotated[int, operator.add]


def run_job(path, thread_id, amount):
    builder = StateGraph(Job).add_node("work", lambda state: None).add_edge(START, "work")
    with SqliteSaver.from_conn_string(path) as saver:
        graph = builder.compile(checkpointer=saver)
        return graph.invoke({"total": amount}, {"configurable": {"thread_id": thread_id}})["total"]


# %% right: a connection of one's own, closed; the old total read back, no reducer
import sqlite3
from contextlib import closing
from typing import TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph


class Job(TypedDict):
    total: int
    amount: int


def work(state):
    return {"total": state.get("total", 0) + state["amount"]}


def run_job(path, thread_id, amount):
    config = {"configurable": {"thread_id": thread_id}}
    with closing(sqlite3.connect(path, check_same_thread=False)) as connection:
        graph = StateGraph(Job).add_node(work).add_edge(START, "work")
        graph = graph.compile(checkpointer=SqliteSaver(connection))
        graph.invoke({"amount": amount}, config, durability="sync")
        return graph.get_state(config).values["total"]


# %% right: the async saver inside asyncio.run
import asyncio
import operator
from typing import Annotated, TypedDict

from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, StateGraph


class Job(TypedDict):
    total: Annotated[int, operator.add]


async def add(state):
    await asyncio.sleep(0)
    return {"total": 0}


def run_job(path, thread_id, amount):
    async def work():
        async with AsyncSqliteSaver.from_conn_string(path) as saver:
            graph = StateGraph(Job).add_node(add).add_edge(START, "add").compile(checkpointer=saver)
            return await graph.ainvoke({"total": amount}, {"configurable": {"thread_id": thread_id}})

    return asyncio.run(work())["total"]


# %% right: one call at a time, exit durability, try and finally
import operator
import sqlite3
from typing import Annotated, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph


class Job(TypedDict):
    amounts: Annotated[list, operator.add]


def run_job(path, thread_id, amount):
    connection = sqlite3.connect(path, check_same_thread=False, timeout=30)
    try:
        builder = StateGraph(Job).add_node("work", lambda state: {"amounts": [amount]})
        graph = builder.add_edge(START, "work").compile(checkpointer=SqliteSaver(connection))
        config = {"configurable": {"thread_id": thread_id}}
        return sum(graph.invoke({}, config, durability="exit")["amounts"])
    finally:
        connection.close()


# %% wrong [continues, kept, at-once]: a saver in memory
import operator
from typing import Annotated, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph


class Job(TypedDict):
    total: Annotated[int, operator.add]


def run_job(path, thread_id, amount):
    builder = StateGraph(Job).add_node("work", lambda state: None).add_edge(START, "work")
    graph = builder.compile(checkpointer=InMemorySaver())
    return graph.invoke({"total": amount}, {"configurable": {"thread_id": thread_id}})["total"]


# %% wrong [continues, kept]: a saver in memory, kept for as long as the process lives
import operator
from typing import Annotated, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph

SAVERS = {}


class Job(TypedDict):
    total: Annotated[int, operator.add]


def run_job(path, thread_id, amount):
    builder = StateGraph(Job).add_node("work", lambda state: None).add_edge(START, "work")
    graph = builder.compile(checkpointer=SAVERS.setdefault(path, InMemorySaver()))
    return graph.invoke({"total": amount}, {"configurable": {"thread_id": thread_id}})["total"]


# %% wrong [continues, exits, kept, closed, at-once]: no with
import operator
from typing import Annotated, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph


class Job(TypedDict):
    total: Annotated[int, operator.add]


def run_job(path, thread_id, amount):
    builder = StateGraph(Job).add_node("work", lambda state: None).add_edge(START, "work")
    graph = builder.compile(checkpointer=SqliteSaver.from_conn_string(path))
    return graph.invoke({"total": amount}, {"configurable": {"thread_id": thread_id}})["total"]


# %% wrong [continues, exits, kept, closed, at-once]: the graph used after with
import operator
from typing import Annotated, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph


class Job(TypedDict):
    total: Annotated[int, operator.add]


def run_job(path, thread_id, amount):
    builder = StateGraph(Job).add_node("work", lambda state: None).add_edge(START, "work")
    with SqliteSaver.from_conn_string(path) as saver:
        graph = builder.compile(checkpointer=saver)
    return graph.invoke({"total": amount}, {"configurable": {"thread_id": thread_id}})["total"]


# %% wrong [continues, kept, at-once]: a new thread each call
import operator
import uuid
from typing import Annotated, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph


class Job(TypedDict):
    total: Annotated[int, operator.add]


def run_job(path, thread_id, amount):
    builder = StateGraph(Job).add_node("work", lambda state: None).add_edge(START, "work")
    with SqliteSaver.from_conn_string(path) as saver:
        graph = builder.compile(checkpointer=saver)
        config = {"configurable": {"thread_id": f"{thread_id}-{uuid.uuid4()}"}}
        return graph.invoke({"total": amount}, config)["total"]


# %% wrong [closed]: a connection of one's own, never closed
import operator
import sqlite3
from typing import Annotated, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph


class Job(TypedDict):
    total: Annotated[int, operator.add]


def run_job(path, thread_id, amount):
    builder = StateGraph(Job).add_node("work", lambda state: None).add_edge(START, "work")
    saver = SqliteSaver(sqlite3.connect(path, check_same_thread=False))
    graph = builder.compile(checkpointer=saver)
    return graph.invoke({"total": amount}, {"configurable": {"thread_id": thread_id}})["total"]


# %% wrong [closed]: `with` around the connection, which ends a transaction and closes nothing
import operator
import sqlite3
from typing import Annotated, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph


class Job(TypedDict):
    total: Annotated[int, operator.add]


def run_job(path, thread_id, amount):
    builder = StateGraph(Job).add_node("work", lambda state: None).add_edge(START, "work")
    with sqlite3.connect(path, check_same_thread=False) as connection:
        graph = builder.compile(checkpointer=SqliteSaver(connection))
        return graph.invoke({"total": amount}, {"configurable": {"thread_id": thread_id}})["total"]


# %% wrong [closed]: one connection a file, opened once and kept
import operator
import sqlite3
from typing import Annotated, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph

GRAPHS = {}


class Job(TypedDict):
    total: Annotated[int, operator.add]


def run_job(path, thread_id, amount):
    if path not in GRAPHS:
        builder = StateGraph(Job).add_node("work", lambda state: None).add_edge(START, "work")
        saver = SqliteSaver(sqlite3.connect(path, check_same_thread=False))
        GRAPHS[path] = builder.compile(checkpointer=saver)
    return GRAPHS[path].invoke({"total": amount}, {"configurable": {"thread_id": thread_id}})["total"]


# %% wrong [continues, exits, kept, closed, at-once]: a connection for one thread of the program only
import operator
import sqlite3
from contextlib import closing
from typing import Annotated, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph


class Job(TypedDict):
    total: Annotated[int, operator.add]


def run_job(path, thread_id, amount):
    builder = StateGraph(Job).add_node("work", lambda state: None).add_edge(START, "work")
    with closing(sqlite3.connect(path)) as connection:
        graph = builder.compile(checkpointer=SqliteSaver(connection))
        return graph.invoke({"total": amount}, {"configurable": {"thread_id": thread_id}})["total"]


# %% wrong [exits, closed]: the async saver over a connection that is kept
import asyncio
import operator
from typing import Annotated, TypedDict

import aiosqlite
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, StateGraph

OPEN = []


class Job(TypedDict):
    total: Annotated[int, operator.add]


def run_job(path, thread_id, amount):
    async def work():
        OPEN.append(await aiosqlite.connect(path))
        builder = StateGraph(Job).add_node("work", lambda state: None).add_edge(START, "work")
        graph = builder.compile(checkpointer=AsyncSqliteSaver(OPEN[-1]))
        return await graph.ainvoke({"total": amount}, {"configurable": {"thread_id": thread_id}})

    return asyncio.run(work())["total"]


# %% wrong [continues, at-once]: the input takes the old total's place
from typing import TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph


class Job(TypedDict):
    total: int


def run_job(path, thread_id, amount):
    builder = StateGraph(Job).add_node("work", lambda state: {"total": state["total"]})
    builder.add_edge(START, "work")
    with SqliteSaver.from_conn_string(path) as saver:
        graph = builder.compile(checkpointer=saver)
        return graph.invoke({"total": amount}, {"configurable": {"thread_id": thread_id}})["total"]


# %% wrong [kept]: the totals in a file of one's own
import json
from pathlib import Path


def run_job(path, thread_id, amount):
    own = Path(f"{path}-{len(thread_id)}-{thread_id.encode().hex()}.json")
    total = (json.loads(own.read_text()) if own.exists() else 0) + amount
    own.write_text(json.dumps(total))
    return total


# %% wrong [kept]: under another id
import operator
from typing import Annotated, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph


class Job(TypedDict):
    total: Annotated[int, operator.add]


def run_job(path, thread_id, amount):
    builder = StateGraph(Job).add_node("work", lambda state: None).add_edge(START, "work")
    with SqliteSaver.from_conn_string(path) as saver:
        graph = builder.compile(checkpointer=saver)
        config = {"configurable": {"thread_id": f"job-{thread_id}"}}
        return graph.invoke({"total": amount}, config)["total"]


# %% wrong [continues, kept, at-once]: one thread for all
import operator
from typing import Annotated, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph


class Job(TypedDict):
    total: Annotated[int, operator.add]


def run_job(path, thread_id, amount):
    builder = StateGraph(Job).add_node("work", lambda state: None).add_edge(START, "work")
    with SqliteSaver.from_conn_string(path) as saver:
        graph = builder.compile(checkpointer=saver)
        return graph.invoke({"total": amount}, {"configurable": {"thread_id": "jobs"}})["total"]


# %% wrong [continues, kept, at-once]: tidies the thread away
import operator
from typing import Annotated, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph


class Job(TypedDict):
    total: Annotated[int, operator.add]


def run_job(path, thread_id, amount):
    builder = StateGraph(Job).add_node("work", lambda state: None).add_edge(START, "work")
    with SqliteSaver.from_conn_string(path) as saver:
        graph = builder.compile(checkpointer=saver)
        total = graph.invoke({"total": amount}, {"configurable": {"thread_id": thread_id}})["total"]
        saver.delete_thread(thread_id)
    return total


# %% wrong [continues, kept, at-once]: the list is changed in place, and a saver in memory forgets it
from typing import TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph


class Job(TypedDict, total=False):
    amounts: list
    amount: int


SAVER = InMemorySaver()


def work(state):
    state.setdefault("amounts", []).append(state["amount"])


def run_job(path, thread_id, amount):
    graph = StateGraph(Job).add_node(work).add_edge(START, "work").compile(checkpointer=SAVER)
    config = {"configurable": {"thread_id": thread_id}}
    return sum(graph.invoke({"amount": amount}, config).get("amounts", [amount]))
