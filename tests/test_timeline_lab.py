"""The Timeline lab without its widgets: what it reads, what it runs, and what it says when it can't."""

import asyncio
import json
import operator
import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Annotated, TypedDict

import pytest
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.base import CipherProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send, interrupt
from pydantic import BaseModel

from fixtures.effects import Effects
from fixtures.experiments.time_travel import Witness
from fixtures.labs.timeline import Session
from fixtures.labs.timeline_source import GraphSource, from_saver, in_thread
from fixtures.labs.typed_values import BadValues, read_values
from fixtures.savers import SAVERS, open_saver
from fixtures.threads import read_history
from fixtures.views import tree_picture
from fixtures.views.checkpoint import LIMIT
from fixtures.views.labels import Labels
from fixtures.views.tree import walk

OLD_FILE = Path(__file__).parent / "data" / "old_langgraph.sqlite"
HOSTILE = "</script><img src=x onerror=alert(1)>```mermaid"


class State(TypedDict, total=False):
    total: int
    seen: Annotated[list[str], operator.add]
    note: object


def chain(on_node=lambda name: None) -> StateGraph:
    """Three nodes that add 1, 2 and 3 to the total."""
    builder = StateGraph(State)

    def node(name, number):
        def run(state):
            on_node(name)
            return {"total": state["total"] + number, "seen": [name]}

        return run

    for number, name in enumerate("abc", start=1):
        builder.add_node(name, node(name, number))
    builder.add_edge(START, "a")
    builder.add_edge("a", "b")
    builder.add_edge("b", "c")
    return builder


def on(thread_id="1") -> dict:
    return {"configurable": {"thread_id": thread_id}}


async def call(graph, given, config=None):
    """Call the graph as its saver allows."""
    if type(graph.checkpointer).__name__ == "SqliteSaver":
        return graph.invoke(given, config or on(), durability="sync")
    return await graph.ainvoke(given, config or on(), durability="sync")


@asynccontextmanager
async def opened(saver, path, builder, *, given=None, **options):
    """A session on a thread that has run once."""
    async with open_saver(saver, None if saver == "memory" else path) as checkpointer:
        graph = builder.compile(checkpointer=checkpointer)
        await call(graph, {"total": 0, "seen": []} if given is None else given)
        session = Session(graph, "1", **options)
        session.read()
        await session.settled()
        yield session
        session.close()
        await session.settled()


def pick(session, label):
    session.pick(session.labels.id_of(label))


def values(session, label):
    """What the list's checkpoint of this label holds."""
    found = session._find(session.labels.id_of(label))
    return dict(found.values)


every_saver = pytest.mark.parametrize("saver", SAVERS)


# Looking


@every_saver
async def test_a_thread_of_a_graph_is_read_as_its_file_is(saver, tmp_path):
    path = tmp_path / "db.sqlite"
    async with opened(saver, path, chain()) as session:
        assert session.sentence == "The thread has 5 checkpoints. Pick one to look at it."
        assert [text for text, _ in session.options()] == [
            "c0 · step -1 · input · next __start__",
            "c1 · step 0 · loop · next a",
            "c2 · step 1 · loop · next b",
            "c3 · step 2 · loop · next c",
            "c4 · step 3 · loop",
        ]
        assert session.checkpoint.values == {"total": 6, "seen": ["a", "b", "c"]}
        snapshots = (
            [one async for one in session.source.graph.aget_state_history(on())]
            if saver != "sqlite"
            else list(session.source.graph.get_state_history(on()))
        )
        assert [one.next for one in session.thread.within()] == [one.next for one in reversed(snapshots)]
        if saver != "memory":
            history = read_history(path, "1")
            assert [one.changed for one in session.thread.checkpoints] == [
                one.changed for one in history.checkpoints
            ]
            assert session.thread.checkpoints == history.checkpoints


async def test_what_is_to_be_seen_of_a_checkpoint(tmp_path):
    async with opened("sqlite", tmp_path / "db", chain()) as session:
        pick(session, "c2")
        page = session.page()
        for text in (
            "c2 · step 1 · source loop",
            "next: <code>b</code>",
            "tasks: <code>b done</code>",
            "parent: <code>c1</code>",
            "followed by: <code>c3</code>",
            "<td><code>total</code></td><td><code>1</code></td><td>changed, was 0</td>",
            "<td><code>b</code></td><td><code>total</code></td><td><code>3</code></td>",
        ):
            assert text in page
        assert session.picked not in page
        assert session.picked in session.page(ids=True)
        session.to_parent()
        assert session.labels.checkpoint(session.picked) == "c1"
        session.to_next()
        session.to_next()
        assert session.labels.checkpoint(session.picked) == "c3"
        pick(session, "c0")
        assert "parent: <code>none</code>" in session.page()
        session.to_parent()
        assert session.sentence == "Nothing lies before this checkpoint."
        pick(session, "c4")
        session.to_next()
        assert session.sentence == "Nothing follows this checkpoint: it is the end of its branch."
        session.to_other_branch()
        assert session.sentence.startswith("No other branch begins where this checkpoint does")


async def test_written_again_gone_and_no_value_are_told_apart():
    builder = StateGraph(State)
    builder.add_node("same", lambda state: {"total": state["total"], "note": HOSTILE})
    builder.add_edge(START, "same")
    async with opened("memory", None, builder) as session:
        page = session.page()
        assert "<td><code>total</code></td><td><code>0</code></td><td>written again, same value</td>" in page
        assert "<td>new</td>" in page
        assert "<img" not in page
        assert "&lt;img src=x onerror=alert(1)&gt;```mermaid" in page


async def test_two_are_compared(tmp_path):
    async with opened("async_sqlite", tmp_path / "db", chain()) as session:
        assert session.beside() == ""
        pick(session, "c3")
        session.compare_with(session.labels.id_of("c1"))
        beside = session.beside()
        assert "c1 beside c3: 2 of 2 keys differ" in beside
        assert "<td><code>total</code></td><td><code>0</code></td><td><code>3</code></td>" in beside
        assert "◂ compared" in session.tree()
        pick(session, "c1")
        assert "c1 beside c1: 0 of 2 keys differ" in session.beside()
        session.compare_with("nowhere")
        assert session.compared is not None
        session.compare_with("")
        assert session.beside() == ""


@pytest.mark.parametrize("thread", ["chain", "failed beside", "nested", "forked", "function answered"])
async def test_a_file(thread, tmp_path):
    session = Session(OLD_FILE, thread)
    session.read()
    await session.settled()
    history = read_history(OLD_FILE, thread)
    assert [place.checkpoint for place in session.places] == [one.checkpoint for one in walk(history)]
    for _, namespace in session.graphs():
        session.choose_graph(namespace)
        for _, checkpoint_id in session.options():
            session.pick(checkpoint_id)
            assert session.picked == checkpoint_id
            assert "<table>" in session.page() or "No values" in session.page()
            assert session.tree().count("<circle") == len(session.places)
    session.run()
    assert (
        session.sentence == "A file alone can't run: to run from here, "
        "give the graph, as in timeline(graph, thread)."
    )
    session.edit_and_run("{}")
    assert session.sentence.startswith("A file alone can't run: to edit and run")


async def test_pending_writes_questions_and_errors_of_a_file():
    session = Session(OLD_FILE, "failed beside")
    session.read()
    await session.settled()
    assert "b failed: " in session.page()
    session = Session(OLD_FILE, "asking")
    session.read()
    await session.settled()
    assert "ask asks: " in session.page()


async def test_subgraphs():
    inner = StateGraph(State)
    inner.add_node("deep", lambda state: {"total": state["total"] + 10})
    inner.add_edge(START, "deep")
    builder = StateGraph(State)
    builder.add_node("outer", inner.compile(checkpointer=True))
    builder.add_edge(START, "outer")
    async with opened("memory", None, builder) as session:
        assert "more of subgraphs" in session.sentence
        graphs = session.graphs()
        assert [text for text, _ in graphs] == ["the graph itself · 3 checkpoints", graphs[1][0]]
        assert graphs[1][0].startswith("outer")
        pick(session, "c1")
        assert "subgraph runs that started here: <code>outer" in session.page()
        session.compare_with(session.labels.id_of("c0"))
        session.choose_graph(graphs[1][1])
        assert session.compared is None
        assert session.checkpoint.namespace == graphs[1][1]
        session.run()
        assert session.sentence == (
            "This is a subgraph's checkpoint: to run from here, pick one of the graph itself, "
            "such as c1, where this run started."
        )
        session.choose_graph("nowhere")
        assert session.namespace == graphs[1][1]
        session.choose_graph("")
        pick(session, "c1")
        session.run()
        await session.settled()
        assert session.sentence.startswith("outer ran; 2 new checkpoints")


# Running


@every_saver
async def test_run_from_here(saver, tmp_path):
    counted = []
    async with opened(saver, tmp_path / "db", chain(counted.append)) as session:
        counted.clear()
        pick(session, "c2")
        session.run()
        assert session.running
        session.run()
        assert session.sentence.startswith("A run is going on: to run from here, press Stop first")
        await session.settled()
        assert counted == ["b", "c"]
        assert session.sentence == (
            "b, c ran; 3 new checkpoints, c5 to c7. The 5 checkpoints from before are as they were."
        )
        assert session.labels.checkpoint(session.picked) == "c7"
        assert [session.thread.within()[number].source for number in (5, 6, 7)] == ["fork", "loop", "loop"]
        assert values(session, "c7") == values(session, "c4") == {"total": 6, "seen": ["a", "b", "c"]}
        session.to_other_branch()
        assert session.sentence.startswith("No other branch begins")
        pick(session, "c5")
        session.to_other_branch()
        assert session.labels.checkpoint(session.picked) == "c3"
        session.to_other_branch()
        assert session.labels.checkpoint(session.picked) == "c5"


@every_saver
async def test_edit_and_run(saver, tmp_path):
    counted = []
    async with opened(saver, tmp_path / "db", chain(counted.append)) as session:
        counted.clear()
        pick(session, "c3")
        session.edit_and_run('{"total": 40, "seen": ["edited"]}')
        await session.settled()
        assert counted == ["c"]
        assert session.sentence == (
            "c ran; 2 new checkpoints, c5 to c6. c5 holds your values. "
            "The 5 checkpoints from before are as they were."
        )
        assert values(session, "c5") == {"total": 40, "seen": ["a", "b", "edited"]}
        assert values(session, "c6") == {"total": 43, "seen": ["a", "b", "edited", "c"]}
        assert values(session, "c4") == {"total": 6, "seen": ["a", "b", "c"]}


async def test_what_somebody_else_did_meanwhile_is_told_apart():
    async with opened("memory", None, chain()) as session:
        await session.source.graph.ainvoke({"total": 50}, on())
        pick(session, "c3")
        session.run()
        await session.settled()
        assert session.sentence == (
            "c ran; 2 new checkpoints, c10 to c11. The 5 checkpoints from before are as they were. "
            "5 new checkpoints came from elsewhere."
        )


async def test_what_a_router_does_when_values_are_typed_is_counted_too(tmp_path):
    effects = Effects(tmp_path / "effects")

    def route(state):
        effects("route")
        return "b"

    builder = StateGraph(State)
    builder.add_node("a", lambda state: {"total": 1})
    builder.add_node("b", lambda state: effects("b"))
    builder.add_edge(START, "a")
    builder.add_conditional_edges("a", route, ["b"])
    async with opened("memory", None, builder, effects=effects) as session:
        pick(session, "c2")
        session.edit_and_run('{"total": 5}')
        await session.settled()
        assert "The outside world received: route ×1, b ×1." in session.sentence
        assert session.effects_of(session.labels.id_of("c4")) == "route ×1"
        assert session.effects_of(session.labels.id_of("c5")) == "b ×1"


async def test_edit_the_input_and_the_end(tmp_path):
    async with opened("sqlite", tmp_path / "db", chain()) as session:
        pick(session, "c0")
        session.edit_and_run('{"total": 100}')
        await session.settled()
        assert "a, b, c ran; 4 new checkpoints, c5 to c8. c5 holds your values." in session.sentence
        assert values(session, "c8")["total"] == 106
        pick(session, "c4")
        session.run()
        await session.settled()
        assert "No node ran; 1 new checkpoint, c9. Nothing was due there." in session.sentence
        pick(session, "c4")
        session.edit_and_run('{"total": 7}')
        await session.settled()
        assert "No node ran; 1 new checkpoint" in session.sentence
        assert "Nothing was due there." in session.sentence
        assert session.checkpoint.values["total"] == 7
        session.run()
        await session.settled()
        assert session.sentence.startswith("Nothing ran, and nothing was saved.")


WRONG = {
    '{"total": ': "this is not JSON: expecting value at line 1, column 11",
    "": "this is not JSON: expecting value at line 1, column 1",
    "[1]": 'the values must be a JSON object such as {"total": …}; this is a list',
    "3": "this is a number",
    "{}": "the object is empty",
    '{"totl": 1}': "the state has no key totl; it has total, seen, note",
    '{"<b>": 1}': "the state has no key <b>",
    '{"total": "3"}': 'the value of total has the wrong shape: input should be a valid integer; got "3"',
    '{"total": true}': "got true",
    '{"total": null}': "got null",
    '{"total": 1, "total": 2}': "the key total stands there twice",
    '{"total": NaN}': "JSON has no NaN",
    '{"seen": "a"}': 'the value of seen has the wrong shape: input should be a valid array; got "a"',
    '{"seen": [1]}': "the value of seen[0] has the wrong shape",
    "[" * 100_000: "it is nested too deeply",
    "9" * 5_000: "Exceeds the limit",
    '{"__start__": 1}': "the state has no key __start__",
}


@pytest.mark.parametrize("text", WRONG, ids=[text[:24] or "nothing" for text in WRONG])
async def test_what_is_typed_wrongly_is_one_sentence_and_changes_nothing(text):
    async with opened("memory", None, chain()) as session:
        pick(session, "c2")
        session.edit_and_run(text)
        assert not session.busy
        assert session.sentence.startswith("Nothing was changed: ")
        assert WRONG[text] in session.sentence
        assert "\n" not in session.sentence
        assert len(session.sentence) < 400
        await session.settled()
        assert len(session.source.saver.storage["1"][""]) == 5
        assert session.labels.checkpoint(session.picked) == "c2"


async def test_values_become_what_the_schema_says():
    class Inner(TypedDict):
        held: int

    class Model(BaseModel):
        inside: list[int] = []

    class Typed(TypedDict, total=False):
        pair: tuple[int, int]
        inner: Inner
        maybe: int | None
        anything: object
        own: Annotated[list, lambda old, new: [*(old or []), new]]
        someone: threading.Thread
        several: list[Inner]
        model: Model

    builder = StateGraph(Typed)
    builder.add_node("go", lambda state: {})
    builder.add_edge(START, "go")
    graph = builder.compile()
    typed = {"pair": [1, 2], "inner": {"held": 1}, "maybe": None, "anything": {"x": [1]}, "own": 3}
    assert read_values(json.dumps(typed), graph) == typed | {"pair": (1, 2)}
    assert read_values('{"someone": 1}', graph) == {"someone": 1}
    assert read_values('{"several": [{"held": 1}]}', graph) == {"several": [{"held": 1}]}
    # A nested TypedDict is looked into from Python 3.12 on; in no case is a part of it dropped in silence.
    more = '{"inner": {"held": 1, "more": 2}}'
    if sys.version_info < (3, 12):
        assert read_values(more, graph) == json.loads(more)
    else:
        with pytest.raises(BadValues, match=r"the value of inner\['more'\] has the wrong shape"):
            read_values(more, graph)
    assert read_values('{"model": {"inside": [1]}}', graph) == {"model": Model(inside=[1])}
    for text, says in {
        '{"pair": [1]}': "pair",
        '{"model": {"inside": ["x"]}}': r"model\['inside'\]\[0\] has the wrong shape",
        '{"model": {"outside": 1}}': r"model\['outside'\] has the wrong shape: its type has no such field",
        '{"inner": 4}': "inner has the wrong shape",
        '{"several": {}}': "several has the wrong shape",
        '{"maybe": "x"}': "maybe",
    }.items():
        with pytest.raises(BadValues, match=says):
            read_values(text, graph)


async def test_a_reducer_that_refuses_is_one_sentence():
    def picky(old, new):
        if not isinstance(new, list):
            raise TypeError(f"a list, please, not <b>{new}</b>\nsecond line")
        return [*(old or []), *new]

    class Picky(TypedDict, total=False):
        own: Annotated[list, picky]

    builder = StateGraph(Picky)
    builder.add_node("go", lambda state: {"own": [1]})
    builder.add_edge(START, "go")
    async with opened("memory", None, builder, given={"own": []}) as session:
        session.edit_and_run('{"own": 3}')
        await session.settled()
        assert session.sentence == (
            "Nothing was changed: update_state refused these values: TypeError: a list, please, not <b>3</b>."
        )
        assert len(session.thread.checkpoints) == 3


async def test_several_nodes_ran_before():
    builder = StateGraph(State)
    for name in ("left", "right", "after"):
        builder.add_node(name, lambda state, name=name: {"seen": [name]})
    builder.add_edge(START, "left")
    builder.add_edge(START, "right")
    builder.add_edge(["left", "right"], "after")
    async with opened("memory", None, builder) as session:
        pick(session, "c2")
        session.edit_and_run('{"total": 5}')
        await session.settled()
        assert "choose one under As node" in session.sentence
        assert len(session.thread.checkpoints) == 4
        assert ("left", "left") in session.as_nodes()
        session.edit_and_run('{"total": 5}', as_node="left")
        await session.settled()
        assert "holds your values" in session.sentence
        session.edit_and_run('{"total": 5}', as_node="nobody")
        await session.settled()
        assert session.sentence.startswith("Nothing was changed: update_state refused these values")


async def test_a_question_is_asked_again():
    builder = StateGraph(State)
    builder.add_node("ask", lambda state: {"note": interrupt(HOSTILE)})
    builder.add_edge(START, "ask")
    async with opened("memory", None, builder) as session:
        await session.source.graph.ainvoke(Command(resume="yes"), on())
        session.read()
        await session.settled()
        assert session.sentence == "Read again: the thread has 3 checkpoints, 1 of them new."
        pick(session, "c1")
        session.run()
        await session.settled()
        assert session.sentence.startswith("No node has run to its end; 1 new checkpoint, c3. ask waits for")
        assert "&lt;img" in session.page()
        assert "<img" not in session.page()


@every_saver
async def test_a_graph_that_fails(saver, tmp_path):
    broken = []

    def on_node(name):
        if broken and name == "c":
            raise ValueError(f"{HOSTILE}\nand more")

    async with opened(saver, tmp_path / "db", chain(on_node)) as session:
        broken.append(True)
        pick(session, "c2")
        session.run()
        await session.settled()
        assert session.sentence == (
            f"b ran; 2 new checkpoints, c5 to c6. The run failed: ValueError: {HOSTILE}. "
            "The 5 checkpoints from before are as they were."
        )
        assert "c failed: ValueError" in session.page()
        broken.clear()
        session.run()
        await session.settled()
        assert session.sentence.startswith("c ran; ")


async def test_a_node_that_leaves_python_does_not_take_the_kernel_along(tmp_path):
    leaving = []
    async with opened("sqlite", tmp_path / "db", chain(lambda name: leaving and sys.exit(3))) as session:
        leaving.append(True)
        pick(session, "c2")
        session.run()
        await session.settled()
        assert "SystemExit: 3" in session.sentence


@every_saver
async def test_stop(saver, tmp_path):
    slow = threading.Event()
    entered = threading.Event()

    def on_node(name):
        if slow.is_set():
            entered.set()
            time.sleep(0.3)

    async with opened(saver, tmp_path / "db", chain(on_node)) as session:
        session.stop()
        assert session.sentence == "No run is going on, so there is nothing to stop."
        slow.set()
        pick(session, "c1")
        session.run()
        async with asyncio.timeout(60):
            while not entered.is_set():  # noqa: ASYNC110
                await asyncio.sleep(0.005)
        session.stop()
        session.stop()
        assert session.sentence.startswith("The run is being stopped already")
        await session.settled()
        assert "The run was stopped." in session.sentence
        assert "c ran" not in session.sentence
        slow.clear()
        session.run()
        await session.settled()
        assert "c ran" in session.sentence


async def test_an_endless_graph_is_stopped(tmp_path):
    builder = StateGraph(State)
    builder.add_node("again", lambda state: {"total": state["total"] + 1})
    builder.add_edge(START, "again")
    builder.add_conditional_edges("again", lambda state: END if state["total"] == 2 else "again")
    async with opened("sqlite", tmp_path / "db", builder) as session:
        pick(session, "c3")
        session.edit_and_run('{"total": 1000}')
        async with asyncio.timeout(60):
            while "so far" not in session.sentence:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert session.sentence.startswith("Running from c3 with other values: ")
        session.stop()
        await session.settled()
        assert "The run was stopped." in session.sentence


# Effects


@every_saver
async def test_effects_of_a_run_are_counted_where_they_happened(saver, tmp_path):
    effects = Effects(tmp_path / "effects")
    async with opened(saver, tmp_path / "db", chain(effects), effects=effects) as session:
        assert "effects: <code>not counted, as this lab did not make it</code>" in session.page()
        pick(session, "c2")
        session.run()
        await session.settled()
        assert "The outside world received: b ×1, c ×1." in session.sentence
        said = {label: session.effects_of(session.labels.id_of(label)) for label in ("c5", "c6", "c7")}
        assert said == {"c5": "nothing", "c6": "b ×1", "c7": "c ×1"}
        assert session.effects_of(session.labels.id_of("c2")).startswith("not counted")
        session.run()
        await session.settled()
        pick(session, "c5")
        session.run()
        await session.settled()
        assert session.effects_of(session.labels.id_of("c6")) == "b ×1"
        assert session.effects_of(session.labels.id_of("c7")) == "c ×1"
        assert session.effects_of(session.picked) == "c ×1"


async def test_effects_of_a_step_that_failed_stand_beside_its_checkpoint(tmp_path):
    effects = Effects(tmp_path / "effects")
    broken = []

    def on_node(name):
        effects(name)
        if broken and name == "c":
            raise ValueError("broken")

    async with opened("sqlite", tmp_path / "db", chain(on_node), effects=effects) as session:
        broken.append(True)
        pick(session, "c2")
        session.run()
        await session.settled()
        assert session.effects_of(session.picked) == "b ×1; then c ×1, in a step that led to no checkpoint"


@every_saver
async def test_a_log_that_knows_where_tells_of_runs_before(saver, tmp_path):
    bank = Witness()
    async with opened(saver, tmp_path / "db", chain(bank), effects=bank) as session:
        said = [session.effects_of(one.id) for one in session.thread.within()]
        assert said == ["nothing", "nothing", "a ×1", "b ×1", "c ×1"]
        pick(session, "c2")
        session.run()
        await session.settled()
        said = [session.effects_of(one.id) for one in session.thread.within()]
        assert said == ["nothing", "nothing", "a ×1", "b ×1", "c ×1", "nothing", "b ×1", "c ×1"]


# What is not there


def test_what_can_not_be_shown_at_all():
    graph = chain().compile()
    with pytest.raises(ValueError, match="this graph has no saver"):
        Session(graph, "1")
    with pytest.raises(TypeError, match="got a StateGraph; compile it first"):
        Session(chain(), "1")
    with pytest.raises(TypeError, match="a compiled graph, or the path of a SQLite file; got an int"):
        Session(3, "1")
    kept = chain().compile(checkpointer=InMemorySaver())
    with pytest.raises(ValueError, match="the config names no thread"):
        Session(kept, {"configurable": {}})
    for odd in (None, True, 1.5, ["1"]):
        with pytest.raises(TypeError, match="thread must be a thread's id or a config"):
            Session(kept, odd)


@pytest.mark.parametrize("kept_as", [7, "7"])
async def test_an_id_that_is_a_number(kept_as):
    saver = InMemorySaver()
    graph = chain().compile(checkpointer=saver)
    await graph.ainvoke({"total": 0, "seen": []}, on("7"))
    saver.storage[kept_as] = saver.storage.pop("7")
    assert len((await GraphSource(graph, on(7)).read()).checkpoints) == 5


async def test_a_state_without_keys():
    builder = StateGraph(Annotated[int, operator.add])
    builder.add_node("two", lambda state: 2)
    builder.add_edge(START, "two")
    async with opened("memory", None, builder, given=1) as session:
        assert session.checkpoint.values == {"__root__": 3}
        assert session.keys_sentence().startswith("This graph's state has no keys")
        session.edit_and_run('{"total": 1}')
        assert session.sentence == "Nothing was changed: the state has no key total; it has no keys."
        session.run()
        await session.settled()
        assert session.sentence.startswith("No node ran; 1 new checkpoint")


async def test_a_config_is_handed_to_the_runs_and_opens_on_its_checkpoint():
    seen = []
    builder = StateGraph(State)

    def who(state, config):
        seen.append(config["configurable"].get("who"))
        return {"total": 1}

    builder.add_node("who", who)
    builder.add_edge(START, "who")
    graph = builder.compile(checkpointer=InMemorySaver())
    await graph.ainvoke({"total": 0}, on())
    first = graph.get_state(on()).parent_config["configurable"]["checkpoint_id"]
    config = {"configurable": {"thread_id": "1", "who": "Ann", "checkpoint_id": first}}
    session = Session(graph, config)
    session.read()
    await session.settled()
    assert session.picked == first
    session.run()
    await session.settled()
    assert seen == [None, "Ann"]


@every_saver
async def test_a_thread_that_does_not_exist(saver, tmp_path):
    async with open_saver(saver, None if saver == "memory" else tmp_path / "db") as checkpointer:
        graph = chain().compile(checkpointer=checkpointer)
        session = Session(graph, "nobody")
        session.read()
        assert session.busy
        session.run()
        assert session.sentence.startswith("The history is being read")
        await session.settled()
        assert session.sentence == (
            "The thread nobody does not exist: no checkpoint was saved. "
            "Run the graph on it, then press Read again."
        )
        assert (session.options(), session.page(), session.beside()) == ([], "", "")
        session.run()
        assert session.sentence.startswith("There is no checkpoint yet: to run from here")
        for press in (session.to_parent, session.to_next, session.to_other_branch, session.stop):
            press()
        await call(graph, {"total": 0, "seen": []}, on("nobody"))
        session.read()
        await session.settled()
        assert session.sentence.startswith("The thread has 5 checkpoints")
        if saver == "sqlite":
            checkpointer.delete_thread("nobody")
            session.read()
            await session.settled()
            assert session.sentence.startswith("The thread nobody does not exist")
            assert session.picked is None


def make_bad(folder: Path, kind: str) -> Path:
    path = folder / "file.sqlite"
    whole = OLD_FILE.read_bytes()
    if kind == "empty":
        path.write_bytes(b"")
    elif kind == "half":
        path.write_bytes(whole[: len(whole) // 2])
    elif kind == "damaged":
        path.write_bytes(whole[:4096] + b"\x55" * (len(whole) - 4096))
    elif kind == "text":
        path.write_text(HOSTILE)
    elif kind == "stranger":
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(f'CREATE TABLE "{HOSTILE}" (x)')
    elif kind == "folder":
        path.mkdir()
    return path


@pytest.mark.parametrize("kind", ["missing", "empty", "half", "damaged", "text", "stranger", "folder"])
async def test_a_bad_file_is_a_sentence_and_the_lab_goes_on(kind, tmp_path, monkeypatch):
    copies = tmp_path / "copies"
    copies.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(copies))
    path = make_bad(tmp_path, kind)
    session = Session(str(path), "chain")
    session.read()
    await session.settled()
    assert "file.sqlite" in session.sentence
    assert session.sentence.endswith("Then press Read again.")
    assert "Error" not in session.sentence
    assert list(copies.iterdir()) == []
    if path.is_file():
        path.unlink()
    elif path.is_dir():
        path.rmdir()
    path.write_bytes(OLD_FILE.read_bytes())
    session.read()
    await session.settled()
    assert session.sentence.startswith("The thread has 5 checkpoints")
    path.unlink()
    session.read()
    await session.settled()
    assert session.sentence.startswith("There is no file")
    assert len(session.options()) == 5, "what was read is not lost"
    assert list(copies.iterdir()) == []


async def test_a_thread_that_the_file_does_not_have():
    session = Session(OLD_FILE, HOSTILE)
    session.read()
    await session.settled()
    assert "has no thread" in session.sentence
    assert "it has chain, parallel" in session.sentence


WRITER = """
import sys, fixtures
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph

builder = StateGraph(dict)
builder.add_node("go", lambda state: state)
builder.add_edge(START, "go")
with SqliteSaver.from_conn_string(sys.argv[1]) as saver:
    graph = builder.compile(checkpointer=saver)
    for number in range(10**9):
        graph.invoke({"number": number}, {"configurable": {"thread_id": "1"}})
        if number == 1:
            print("written", flush=True)
"""


@pytest.fixture
def written_to(tmp_path):
    """A file that another process is writing all the time."""
    path = tmp_path / "live.sqlite"
    command = [sys.executable, "-c", WRITER, path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        try:
            assert writer.stdout.readline() == "written\n"
            yield path
        finally:
            writer.kill()


async def test_a_file_that_another_process_is_writing(written_to):
    session = Session(written_to, "1")
    counts = []
    for _ in range(3):
        session.read()
        await session.settled()
        assert session.sentence.startswith(("The thread has", "Read again: the thread has"))
        assert "<table>" in session.page()
        counts.append(len(session.options()))
    assert counts == sorted(counts)
    labels = [text.split()[0] for text, _ in session.options()]
    assert labels == [f"c{number}" for number in range(len(labels))]


async def test_a_locked_database_is_a_sentence(tmp_path):
    path = tmp_path / "db"
    async with opened("sqlite", path, chain()) as session:
        session.source.saver.conn.execute("PRAGMA busy_timeout = 50")
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            pick(session, "c2")
            session.edit_and_run('{"total": 9}')
            await session.settled()
            assert session.sentence == (
                "Nothing was changed: Another program has locked the database: "
                "end its transaction, then press the button again."
            )
            session.run()
            await session.settled()
            assert "Another program has locked the database" in session.sentence
            other.execute("ROLLBACK")
        session.run()
        await session.settled()
        assert "b, c ran" in session.sentence


@pytest.mark.parametrize("saver", ["sqlite", "async_sqlite"])
async def test_a_saver_that_is_closed(saver, tmp_path):
    async with opened(saver, tmp_path / "db", chain()) as session:
        pass
    session = Session(session.source.graph, "1")
    session.read()
    await session.settled()
    assert session.sentence == (
        "The saver's database is closed: keep the saver open as long as the lab is used."
    )


async def test_a_node_that_the_graph_no_longer_has():
    saver = InMemorySaver()
    builder = StateGraph(State)
    builder.add_node("ask", lambda state: {"note": interrupt("go on?")})
    builder.add_edge(START, "ask")
    await builder.compile(checkpointer=saver).ainvoke({"total": 0}, on())
    session = Session(chain().compile(checkpointer=saver), "1")
    session.read()
    await session.settled()
    assert "next: <code>ask (this graph has no node ask and would not run it)</code>" in session.page()
    session.run()
    await session.settled()
    assert "No node" in session.sentence


# A saver's list, and other serializers


async def test_values_that_the_plain_serializer_refuses_are_text():
    saver = InMemorySaver(serde=JsonPlusSerializer(pickle_fallback=True))
    builder = StateGraph(State)
    builder.add_node("go", lambda state: {"note": 2**70})
    builder.add_edge(START, "go")
    graph = builder.compile(checkpointer=saver)
    await graph.ainvoke({"total": 0}, on())
    thread = from_saver("1", saver.list(on()))
    assert [one.problem for one in thread.checkpoints] == [None] * 3
    assert str(thread.head().values["note"]) == str(2**70)


async def test_an_encrypted_thread_is_read_by_its_saver(tmp_path):
    class Reversed(CipherProtocol):
        def encrypt(self, plaintext):
            return "reversed", plaintext[::-1]

        def decrypt(self, ciphername, ciphertext):
            return ciphertext[::-1]

    with closing(sqlite3.connect(tmp_path / "db", check_same_thread=False)) as connection:
        saver = SqliteSaver(connection, serde=EncryptedSerializer(Reversed()))
        graph = chain().compile(checkpointer=saver)
        graph.invoke({"total": 0, "seen": []}, on())
        thread = await GraphSource(graph, on()).read()
        assert thread.head().values == {"total": 6, "seen": ["a", "b", "c"]}


async def test_in_thread_hands_on_what_happened_there():
    assert await in_thread(operator.add, 1, 2) == 3
    with pytest.raises(ZeroDivisionError):
        await in_thread(lambda: 1 / 0)
    with pytest.raises(RuntimeError, match="StopIteration"):
        await in_thread(lambda: next(iter(())))
    with pytest.raises(RuntimeError, match="KeyboardInterrupt"):
        await in_thread(_interrupt)


def _interrupt():
    raise KeyboardInterrupt


# Sizes


def loop_of(steps: int) -> StateGraph:
    builder = StateGraph(State)
    builder.add_node("step", lambda state: {"total": state["total"] + 1, "seen": ["x" * 40]})
    builder.add_edge(START, "step")
    builder.add_conditional_edges("step", lambda state: "step" if state["total"] < steps else END)
    return builder


def thousand():
    """A graph whose thread "1" has a thousand checkpoints: the last one of a run, put again and again."""
    saver = InMemorySaver()
    graph = loop_of(3).compile(checkpointer=saver)
    graph.invoke({"total": 0, "seen": []}, on())
    newest = saver.get_tuple(on())
    config = newest.config
    for number in range(5, 1000):
        checkpoint = {**newest.checkpoint, "id": str(uuid6())}
        config = saver.put(config, checkpoint, {"source": "loop", "step": number}, {})
    return graph


async def test_a_thousand_checkpoints():
    session = Session(thousand(), "1")
    session.read()
    await session.settled()
    assert len(session.options()) == 1000
    start = time.perf_counter()
    session.read()
    await session.settled()
    session.tree(), session.options(), session.page()
    # A bound for a busy machine; the bench measures how long it really takes.
    assert time.perf_counter() - start < 20
    for label, lines in {"c0": 22, "c5": 22, "c500": 23, "c999": 22}.items():
        pick(session, label)
        tree = session.tree()
        assert f">{label}</tspan>" in tree
        assert tree.count("<circle") == lines
        assert len(tree) < 20_000
    pick(session, "c500")
    tree = session.tree()
    assert "⋮ 489 more" in tree
    assert "⋮ 488 more" in tree
    assert tree.count("fx-far") == 2


async def test_a_large_value_is_cut_with_its_size():
    builder = StateGraph(State)
    builder.add_node("go", lambda state: {"note": {"text": "x" * 1_000_000, "bytes": b"y" * 1_000_000}})
    builder.add_edge(START, "go")
    async with opened("memory", None, builder) as session:
        page = session.page()
        assert len(page) < 5_000
        assert "(1,000,000 characters)" in page
        assert "1,000,000 bytes" in page
        pick(session, "c1")
        session.compare_with(session.labels.id_of("c2"))
        assert len(session.beside()) < 5_000
    builder = StateGraph(State)
    builder.add_node("go", lambda state: {"note": "z" * 1_000_000})
    builder.add_edge(START, "go")
    async with opened("memory", None, builder) as session:
        page = session.page()
        assert f"{'z' * LIMIT}&#x27;… (1,000,000 characters)" in page
        assert page.count("z") < 3 * LIMIT


async def test_twenty_forks_and_forks_of_forks():
    async with opened("memory", None, chain()) as session:
        graph = session.source.graph
        at = session.source.at(session.labels.id_of("c2"))
        for number in range(20):
            await graph.aupdate_state(at, {"total": number})
        session.read()
        await session.settled()
        tree = session.tree()
        assert tree.count("<circle") == 25
        assert tree.count(" after c2</tspan>") == 20
        # each fork of a fork is one further in, up to a limit
        config = at
        for number in range(30):
            older = await graph.aupdate_state(config, {"total": number})
            newer = await graph.aupdate_state(config, {"total": -number})
            assert newer["configurable"]["checkpoint_id"] > older["configurable"]["checkpoint_id"]
            await graph.aupdate_state(config, {"total": 99})
            config = older
        session.read()
        await session.settled()
        for place in session.places:
            session.pick(place.checkpoint.id)
            tree = session.tree()
            assert tree.count("◂ picked") + tree.count("◂ picked,") >= 1
            positions = [int(one.split('"')[1]) for one in tree.split("<circle")[1:]]
            assert max(positions) < tree_picture.WIDTH / 2


async def test_a_wide_step():
    builder = StateGraph(State)
    builder.add_node("send", lambda state: {})
    builder.add_node("worker", lambda state: {"seen": ["w"]})
    builder.add_edge(START, "send")
    builder.add_conditional_edges("send", lambda state: [Send("worker", {}) for _ in range(300)], ["worker"])
    async with opened("memory", None, builder) as session:
        pick(session, "c2")
        page = session.page()
        assert "… (300 in all)" in page
        assert "more writes" in page
        assert len(page) < 40_000


# A stranger's file


async def test_nothing_of_a_hostile_row_is_html(tmp_path, monkeypatch):
    path = tmp_path / "hostile.sqlite"
    builder = StateGraph(dict)
    builder.add_node("go", lambda state: {HOSTILE: HOSTILE})
    builder.add_edge(START, "go")
    harm = tmp_path / "harm"
    async with open_saver("sqlite", path) as saver:
        graph = builder.compile(checkpointer=saver)
        graph.invoke({"x": HOSTILE}, on(HOSTILE))
        newest = graph.get_state(on(HOSTILE)).config["configurable"]["checkpoint_id"]
        metadata = json.dumps({"source": HOSTILE, "step": 7})
        saver.conn.execute("UPDATE checkpoints SET metadata = ?", (metadata,))
        saver.conn.execute("UPDATE writes SET channel = channel || ?, task_id = task_id || ?", [HOSTILE] * 2)
        bomb = JsonPlusSerializer().dumps_typed(
            {"v": 1, "id": "zz", "channel_values": {}, "channel_versions": {}, "versions_seen": {}}
        )
        for checkpoint_id, parent, namespace, kind, data in (
            (f"zz{HOSTILE}", newest, "", "msgpack", bomb[1]),
            ("zz1", "zz1", "", HOSTILE, b"\x00"),
            ("zz2", "zz3", "", "pickle", f"cos\nsystem\n(S'touch {harm}'\ntR.".encode()),
            ("zz3", "zz2", "", "msgpack", b"\xc1"),
            ("zz4", newest, f"{HOSTILE}:{HOSTILE}|x", "msgpack", bomb[1]),
        ):
            saver.conn.execute(
                "INSERT INTO checkpoints VALUES (?, ?, ?, ?, ?, ?, ?)",
                (HOSTILE, namespace, checkpoint_id, parent, kind, data, metadata),
            )
        saver.conn.commit()
    session = Session(path, HOSTILE)
    session.read()
    await session.settled()
    assert len(session.graphs()) == 2
    for _, namespace in session.graphs():
        session.choose_graph(namespace)
        for _, checkpoint_id in session.options():
            session.pick(checkpoint_id)
            session.compare_with(session.options()[0][1])
            shown = session.tree() + session.page(ids=True) + session.beside()
            for mark in ("<img", "<script", "</script", "onerror=alert(1)>"):
                assert mark not in shown
            assert "onerror" in shown
            assert shown.replace("\n", "").isprintable()
    assert not harm.exists()


def test_labels_stay_what_they_were():
    history = read_history(OLD_FILE, "forked")
    labels = Labels.of(history)
    assert tree_picture.picture(history, labels) == tree_picture.picture(history, Labels.of(history))


@pytest.mark.skipif(os.name == "nt", reason="Windows has no folder of open files")
async def test_nothing_stays_open(tmp_path):
    path = tmp_path / "copy.sqlite"
    path.write_bytes(OLD_FILE.read_bytes())

    async def once():
        session = Session(path, "chain")
        session.read()
        await session.settled()
        session.close()

    await once()
    before = (len(os.listdir("/dev/fd")), threading.active_count(), len(asyncio.all_tasks()))
    for _ in range(5):
        await once()
    async with asyncio.timeout(60):
        # a thread ends a moment after it has given its result
        while threading.active_count() > before[1]:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
    assert len(os.listdir("/dev/fd")) <= before[0]
    assert len(asyncio.all_tasks()) <= before[2]
    assert sorted(one.name for one in tmp_path.iterdir()) == ["copy.sqlite"]
