"""The Timeline lab's panel, its real widgets pressed: without a browser, and in a kernel."""

import asyncio
import os
import subprocess
import sys
import time
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from panels import in_use
from test_cancel_panel import kernel
from test_timeline_lab import HOSTILE, OLD_FILE, chain, loop_of, on, thousand

from fixtures.labs.panel import Panel
from fixtures.labs.timeline import timeline
from fixtures.labs.timeline_panel import TimelineLab

SENTENCE = "The Timeline lab is here once you run this cell: click into it and press Shift + Enter."


@asynccontextmanager
async def panel(of=None, thread="1", **options):
    if of is None:
        of = chain().compile(checkpointer=InMemorySaver())
        await of.ainvoke({"total": 0, "seen": []}, on())
    async with in_use(timeline(of, thread, **options)) as lab:
        await lab.settled()
        yield lab


def shown(lab: TimelineLab) -> str:
    return lab._said.value + lab._tree.value + lab._page.value + lab._beside.value


def visible(widget) -> bool:
    return widget.layout.display != "none"


async def test_every_button():
    async with panel() as lab:
        assert [text.split()[0] for text, _ in lab.checkpoints.options] == ["c0", "c1", "c2", "c3", "c4"]
        assert "c4 · step 3 · source loop" in lab._page.value
        assert (lab.as_node.label, lab.compare.label) == ("found by LangGraph", "nothing")
        for widget in (lab.compare, lab.as_node, lab.ids, lab.number, *lab._run_rows):
            assert visible(widget)
        lab.pick("c2")
        await lab.settled()
        assert "c2 · step 1 · source loop" in lab._page.value
        assert "picked: c2" in lab._tree.value
        lab.parent.click()
        await lab.settled()
        assert "c1 · step 0" in lab._page.value
        assert lab.checkpoints.label.startswith("c1 ")
        lab.next.click()
        lab.next.click()
        await lab.settled()
        assert lab.checkpoints.label.startswith("c3 ")
        lab.ids.value = True
        await lab.settled()
        assert lab.session.picked in lab._page.value
        lab.compare.value = lab.session.labels.id_of("c0")
        await lab.settled()
        assert visible(lab._beside)
        assert "c0 beside c3" in lab._beside.value
        lab.compare.value = ""
        await lab.settled()
        assert not visible(lab._beside)
        lab.run.click()
        await lab.settled()
        assert "c ran; 2 new checkpoints, c5 to c6." in lab._said.value
        assert lab.checkpoints.label.startswith("c6 ")
        lab.pick("c5")
        lab.other_branch.click()
        await lab.settled()
        assert lab.checkpoints.label.startswith("c4 ")
        assert lab.number.value == 4
        lab.number.value = 3
        await lab.settled()
        assert lab.checkpoints.label.startswith("c3 ")
        lab.number.value = 77
        await lab.settled()
        assert "There is no checkpoint c77 here: choose from c0 to c6." in lab._said.value
        assert lab.number.value == 3
        lab.values.value = '{"total": '
        lab.edit.click()
        await lab.settled()
        assert "Nothing was changed: this is not JSON" in lab._said.value
        assert lab.values.value == '{"total": ', "what was typed is not lost"
        lab.values.value = '{"total": 10}'
        lab.pick("c1")
        lab.as_node.value = "a"
        lab.edit.click()
        await lab.settled()
        assert "b, c ran; 3 new checkpoints, c7 to c9. c7 holds your values." in lab._said.value
        assert lab.session.checkpoint.values["total"] == 15
        lab.stop.click()
        lab.read_again.click()
        await lab.settled()
        assert "Read again: the thread has 10 checkpoints, none of them new." in lab._said.value
        with pytest.raises(KeyError):
            lab.pick("c99")


async def test_double_clicks_and_presses_out_of_order():
    async with panel() as lab:
        lab.pick("c1")
        for button in (lab.run, lab.run, lab.edit, lab.read_again, lab.run, lab.stop, lab.next, lab.parent):
            button.click()
        await lab.settled()
        made = len(lab.session.thread.checkpoints)
        assert made in (5, 6, 7, 8, 9), "one run at the most"
        assert [one.source for one in lab.session.thread.checkpoints].count("fork") <= 1
        lab.pick("c1")
        lab.run.click()
        lab.run.click()
        await lab.settled()
        assert [one.source for one in lab.session.thread.checkpoints[made:]].count("fork") == 1


async def test_presses_from_another_thread():
    async with panel() as lab:
        await asyncio.to_thread(lab.pick, "c2")
        await lab.settled()
        assert "c2 · step 1" in lab._page.value
        await asyncio.to_thread(lab.run.click)
        await lab.settled()
        assert "b, c ran" in lab._said.value


async def test_a_file_has_no_buttons_to_run():
    async with panel(str(OLD_FILE), "nested") as lab:
        assert not any(visible(part) for part in lab._run_rows)
        assert visible(lab.graph)
        assert len(lab.graph.options) == 3
        lab.graph.value = lab.graph.options[1][1]
        await lab.settled()
        assert lab.session.namespace == lab.graph.options[1][1]
        assert "Tree of" in lab._tree.value
        assert repr(lab) == SENTENCE
    async with panel() as lab:
        assert all(visible(part) for part in lab._run_rows)
        assert not visible(lab.graph)


async def test_a_bad_file_is_a_sentence(tmp_path):
    async with panel(tmp_path / "nowhere.sqlite") as lab:
        assert "There is no file" in lab._said.value
        assert lab.checkpoints.options == ()
        for button in (lab.run, lab.edit, lab.parent, lab.next, lab.other_branch, lab.stop, lab.read_again):
            button.click()
            await lab.settled()
            assert lab._said.value


async def test_errors_and_texts_are_text():
    graph = chain().compile(checkpointer=InMemorySaver())
    await graph.ainvoke({"total": 0, "seen": [HOSTILE], "note": {HOSTILE: HOSTILE}}, on(HOSTILE))
    async with panel(graph, HOSTILE) as lab:
        lab.pick("c0")
        lab.compare.value = lab.session.labels.id_of("c4")
        lab.values.value = '{"' + HOSTILE + '": 1}'
        lab.edit.click()
        await lab.settled()
        assert "the state has no key" in lab._said.value
        assert "<img" not in shown(lab)
        assert "<script" not in shown(lab)
        assert shown(lab).count("&lt;img src=x onerror=alert(1)&gt;") >= 3


async def test_only_what_changed_is_sent_again():
    async with panel() as lab:
        sent = []
        for widget in (lab.checkpoints, lab.compare, lab.graph, lab.as_node):
            widget.observe(lambda change: sent.append(change["name"]), names=["_options_labels", "options"])
        for label in ("c1", "c2", "c3"):
            lab.pick(label)
            await lab.settled()
        assert sent == []


async def test_a_newer_panel_on_the_same_thread_retires_the_older_one():
    async with panel() as old:
        run, view = old.run, old._view
        async with panel(str(OLD_FILE), "chain") as other, panel() as new:
            assert old.retired
            assert not other.retired
            assert "A newer Timeline lab has taken the place of this one" in view.children[0].value
            run.click()
            await old.settled()
            new.pick("c2")
            new.run.click()
            await new.settled()
            assert "b, c ran" in new._said.value
            other.parent.click()
            await other.settled()
            assert other.checkpoints.label.startswith("c3 ")
            with pytest.raises(TypeError):
                timeline(3, "1")
            assert not new.retired, "wrong arguments cost nothing"
    assert not any(isinstance(one, TimelineLab) for one in Panel._newest.values())


async def test_a_panel_that_is_retired_in_the_middle_of_a_run():
    graph = loop_of(3).compile(checkpointer=InMemorySaver())
    await graph.ainvoke({"total": 0, "seen": []}, on())
    async with panel(graph) as lab:
        lab.pick("c2")
        lab.values.value = '{"total": -100000}'
        lab.edit.click()
        while not lab.session.running:  # noqa: ASYNC110
            await asyncio.sleep(0)
        await asyncio.sleep(0.05)
        lab.retire()
        async with asyncio.timeout(60):
            await lab.settled()
    before = len([one async for one in graph.aget_state_history(on())])
    await asyncio.sleep(0.1)
    assert len([one async for one in graph.aget_state_history(on())]) == before < 10_000


async def test_it_reads_as_a_sentence():
    async with panel() as lab:
        assert repr(lab) == SENTENCE
        mimes = lab._repr_mimebundle_()
        data = mimes[0] if isinstance(mimes, tuple) else mimes
        assert data["text/plain"] == SENTENCE
        assert "application/vnd.jupyter.widget-view+json" in data


def test_without_a_loop_it_says_what_it_needs():
    with pytest.raises(RuntimeError, match="no running event loop for the Timeline lab"):
        timeline(str(OLD_FILE), "chain")


async def test_a_pick_among_a_thousand():
    async with panel(thousand()) as lab:
        start = time.perf_counter()
        for label in ("c500", "c3", "c998"):
            lab.pick(label)
            await lab.settled()
            assert f"{label} · step" in lab._page.value
        # A bound for a busy machine; the bench measures how long it really takes.
        assert time.perf_counter() - start < 10


# In a kernel

MAKE = """
import sqlite3, time
from typing import TypedDict
from langgraph.checkpoint.{module} import {saver}
from langgraph.graph import START, StateGraph
from fixtures.labs.timeline import timeline

class State(TypedDict):
    total: int

def slow(state):
    for _ in range({ticks}):
        time.sleep(0.05)
    return {{"total": state["total"] + 1}}

builder = StateGraph(State)
builder.add_node("slow", slow)
builder.add_node("last", lambda state: {{"total": state["total"] + 1}})
builder.add_edge(START, "slow")
builder.add_edge("slow", "last")
graph = builder.compile(checkpointer={open})
config = {{"configurable": {{"thread_id": "1"}}}}
graph.update_state(config, {{"total": 0}}, as_node="__start__")
lab = timeline(graph, "1")
await lab.settled()
"""
MEMORY = {"module": "memory", "saver": "InMemorySaver", "open": "InMemorySaver()"}
SQLITE = {
    "module": "sqlite",
    "saver": "SqliteSaver",
    "open": "SqliteSaver(sqlite3.connect(':memory:', check_same_thread=False))",
}


def test_a_kernel_that_is_interrupted_or_ends_in_the_middle_of_a_run():
    with kernel() as python:
        for saver in (MEMORY, SQLITE):
            python.run(MAKE.format(ticks=20, **saver))
            for cell in ("await lab.settled()", "time.sleep(60)"):
                python.run_until(
                    f"lab.pick('c0'); lab.run.click(); print('begun', flush=True); {cell}", "begun"
                )
                python.manager.interrupt_kernel()
                python.client.get_shell_msg(timeout=120)
                ended = python.run("await lab.settled(); print(lab.session.sentence)")
                assert ended.startswith("slow, last ran; "), ended
        # The run goes on in a thread that nothing waits for.
        began = "lab.pick('c0'); lab.run.click(); await __import__('asyncio').sleep(0.3)"
        assert python.run(f"{began}\nprint(lab.session.running)").strip() == "True"
        python.client.shutdown()
        end = time.monotonic() + 60
        while python.manager.is_alive() and time.monotonic() < end:
            time.sleep(0.05)
        assert not python.manager.is_alive()


def test_importing_the_panel_makes_no_folder_and_no_thread(tmp_path: Path):
    code = (
        "import sys, threading, fixtures.labs.timeline; assert 'ipywidgets' not in sys.modules; "
        "import fixtures.labs.timeline_panel; print(threading.active_count())"
    )
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stdout.strip() == "1"
    assert list(tmp_path.iterdir()) == []
