# ruff: noqa: E402, F811
"""Answers to chapter 07's exercise: a cell is `# %% right: …` or `# %% wrong [requirements that fail]: …`."""

# %% right: the node before is named, from_conn_string
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from fixtures.graphs.releases import release


def answer(db, thread_id, value):
    config = {"configurable": {"thread_id": thread_id}}
    with SqliteSaver.from_conn_string(db) as saver:
        graph = release("1").compile(checkpointer=saver)
        return graph.invoke(Command(resume=value), config, durability="sync")


def migrate(builder, config):
    graph = builder.compile()
    graph.update_state(config, None, as_node="prepare")
    return graph


# %% right: an alias node under the old name; a refusal of threads that do not wait
import sqlite3
from contextlib import closing

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from fixtures.graphs.releases import release


def answer(db, thread_id, value):
    config = {"configurable": {"thread_id": thread_id}}
    with closing(sqlite3.connect(db, check_same_thread=False)) as connection:
        graph = release("1").compile(checkpointer=SqliteSaver(connection))
        questions = graph.get_state(config).interrupts
        if not questions:
            raise LookupError(f"nothing waits on {thread_id}")
        graph.invoke(Command(resume={questions[0].id: value}), config)
        return graph.get_state(config).values


def migrate(builder, config):
    builder.add_node("approve", builder.nodes["review"].runnable)
    for source, target in list(builder.edges):
        if source == "review":
            builder.add_edge("approve", target)
    return builder.compile()


# %% right: a graph of one's own under the same names, async; the node before read from the file
import asyncio
from typing import TypedDict

from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt


class State(TypedDict, total=False):
    topic: str
    draft: str
    approved: bool


def ask(state):
    return {"approved": interrupt("again") is True}


def answer(db, thread_id, value):
    async def work():
        builder = StateGraph(State).add_node("prepare", lambda state: {"draft": ""})
        builder.add_node("approve", ask).add_edge(START, "prepare").add_edge("prepare", "approve")
        async with AsyncSqliteSaver.from_conn_string(db) as saver:
            graph = builder.compile(checkpointer=saver)
            return await graph.ainvoke(
                Command(resume=value), {"configurable": {"thread_id": thread_id}}, durability="sync"
            )

    return asyncio.run(work())


def migrate(builder, config):
    graph = builder.compile()
    head = graph.checkpointer.get_tuple(config)
    parent = graph.checkpointer.get_tuple(head.parent_config)
    last = next(
        channel.removeprefix("branch:to:")
        for channel in parent.checkpoint["channel_values"]
        if channel.startswith("branch:to:")
    )
    graph.update_state(config, {"graph_version": "2"}, as_node=last)
    graph.invoke(None, config)
    return graph


# %% right: only the newest checkpoint's node is inferred; every edge of the old name goes to the new node
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from fixtures.graphs.releases import release


def answer(db, thread_id, value):
    with SqliteSaver.from_conn_string(db) as saver:
        graph = release().compile(checkpointer=saver)
        config = {"configurable": {"thread_id": thread_id}}
        *_, state = graph.stream(Command(resume=value), config, stream_mode="values")
    return dict(state)


def migrate(builder, config):
    builder.add_node("approve", lambda state: None)
    builder.add_edge("approve", "review")
    return builder.compile()


# %% wrong [migrate-asks, migrate-delivers]: resumes directly, a silent no-op
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from fixtures.graphs.releases import release


def answer(db, thread_id, value):
    with SqliteSaver.from_conn_string(db) as saver:
        graph = release("1").compile(checkpointer=saver)
        return graph.invoke(Command(resume=value), {"configurable": {"thread_id": thread_id}})


def migrate(builder, config):
    return builder.compile()


# %% wrong [migrate-asks]: a new input, so that prepare runs again
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from fixtures.graphs.releases import release


def answer(db, thread_id, value):
    with SqliteSaver.from_conn_string(db) as saver:
        graph = release("1").compile(checkpointer=saver)
        return graph.invoke(Command(resume=value), {"configurable": {"thread_id": thread_id}})


def migrate(builder, config):
    graph = builder.compile()
    graph.invoke({"topic": graph.get_state(config).values["topic"]}, config)
    return graph


# %% wrong [migrate-asks, migrate-delivers]: as the new node itself, which skips the person
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from fixtures.graphs.releases import release


def answer(db, thread_id, value):
    with SqliteSaver.from_conn_string(db) as saver:
        graph = release("1").compile(checkpointer=saver)
        return graph.invoke(Command(resume=value), {"configurable": {"thread_id": thread_id}})


def migrate(builder, config):
    graph = builder.compile()
    graph.update_state(config, {"approved": True}, as_node="review")
    return graph


# %% wrong [migrate-asks, migrate-delivers]: a new thread, while the old one waits for ever
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from fixtures.graphs.releases import release


def answer(db, thread_id, value):
    with SqliteSaver.from_conn_string(db) as saver:
        graph = release("1").compile(checkpointer=saver)
        return graph.invoke(Command(resume=value), {"configurable": {"thread_id": thread_id}})


def migrate(builder, config):
    graph = builder.compile()
    values = graph.get_state(config).values
    config["configurable"]["thread_id"] += "-v2"
    graph.invoke({"topic": values["topic"]}, config)
    return graph


# %% wrong [migrate-stays]: migrates every thread of the file
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from fixtures.graphs.releases import release


def answer(db, thread_id, value):
    with SqliteSaver.from_conn_string(db) as saver:
        graph = release("1").compile(checkpointer=saver)
        return graph.invoke(Command(resume=value), {"configurable": {"thread_id": thread_id}})


def migrate(builder, config):
    graph = builder.compile()
    for thread in {one.config["configurable"]["thread_id"] for one in graph.checkpointer.list(None)}:
        graph.update_state({"configurable": {"thread_id": thread}}, None, as_node="prepare")
    return graph


# %% wrong [migrate-asks, migrate-delivers]: an alias that approves by itself
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from fixtures.graphs.releases import release


def answer(db, thread_id, value):
    with SqliteSaver.from_conn_string(db) as saver:
        graph = release("1").compile(checkpointer=saver)
        return graph.invoke(Command(resume=value), {"configurable": {"thread_id": thread_id}})


def migrate(builder, config):
    builder.add_node("approve", lambda state: {"approved": True})
    builder.add_edge("approve", "publish")
    return builder.compile()


# %% wrong [migrate-asks]: back to the start of the graph
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from fixtures.graphs.releases import release


def answer(db, thread_id, value):
    with SqliteSaver.from_conn_string(db) as saver:
        graph = release("1").compile(checkpointer=saver)
        return graph.invoke(Command(resume=value), {"configurable": {"thread_id": thread_id}})


def migrate(builder, config):
    graph = builder.compile()
    graph.update_state(config, None, as_node="__start__")
    return graph


# %% wrong [answer-arrives]: every answer that is there is a yes
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from fixtures.graphs.releases import release


def answer(db, thread_id, value):
    with SqliteSaver.from_conn_string(db) as saver:
        graph = release("1").compile(checkpointer=saver)
        return graph.invoke(Command(resume=bool(value)), {"configurable": {"thread_id": thread_id}})


def migrate(builder, config):
    graph = builder.compile()
    graph.update_state(config, None, as_node="prepare")
    return graph


# %% wrong [answer-arrives]: a refusal is no answer
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from fixtures.graphs.releases import release


def answer(db, thread_id, value):
    with SqliteSaver.from_conn_string(db) as saver:
        graph = release("1").compile(checkpointer=saver)
        given = Command(resume=value) if value else None
        return graph.invoke(given, {"configurable": {"thread_id": thread_id}})


def migrate(builder, config):
    graph = builder.compile()
    graph.update_state(config, None, as_node="prepare")
    return graph


# %% wrong [answer-arrives, answer-stays]: a saver in memory, which knows no thread
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from fixtures.graphs.releases import release


def answer(db, thread_id, value):
    graph = release("1").compile(checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": thread_id}}
    graph.invoke(Command(resume=value), config)
    return graph.invoke(Command(resume=value), config)


def migrate(builder, config):
    graph = builder.compile()
    graph.update_state(config, None, as_node="prepare")
    return graph


# %% wrong [answer-arrives]: writes the answer into the state, past the question
from langgraph.checkpoint.sqlite import SqliteSaver

from fixtures.graphs.releases import release


def answer(db, thread_id, value):
    config = {"configurable": {"thread_id": thread_id}}
    with SqliteSaver.from_conn_string(db) as saver:
        graph = release("1").compile(checkpointer=saver)
        graph.update_state(config, {"approved": value}, as_node="approve")
        return graph.invoke(None, config)


def migrate(builder, config):
    graph = builder.compile()
    graph.update_state(config, None, as_node="prepare")
    return graph


# %% wrong [answer-arrives, answer-stays]: answers whatever waits
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from fixtures.graphs.releases import release


def answer(db, thread_id, value):
    with SqliteSaver.from_conn_string(db) as saver:
        graph = release("1").compile(checkpointer=saver)
        for thread in {one.config["configurable"]["thread_id"] for one in saver.list(None)}:
            graph.invoke(Command(resume=value), {"configurable": {"thread_id": thread}})
        return graph.get_state({"configurable": {"thread_id": thread_id}}).values


def migrate(builder, config):
    graph = builder.compile()
    graph.update_state(config, None, as_node="prepare")
    return graph


# %% wrong [answer-arrives, answer-stays]: the new release answers, and nothing happens
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from fixtures.graphs.releases import release


def answer(db, thread_id, value):
    with SqliteSaver.from_conn_string(db) as saver:
        graph = release("2").compile(checkpointer=saver)
        return graph.invoke(Command(resume=value), {"configurable": {"thread_id": thread_id}})


def migrate(builder, config):
    graph = builder.compile()
    graph.update_state(config, None, as_node="prepare")
    return graph
