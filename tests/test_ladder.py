"""The ladder: a thread's checkpoints as rungs, from a file and from snapshots, safe to show."""

import asyncio
import re
import sqlite3
from contextlib import closing
from html.parser import HTMLParser
from pathlib import Path

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

from fixtures.experiments.deceiving import make_threads
from fixtures.graphs import approval, counter
from fixtures.threads import Thread, read_history
from fixtures.views import ladder

CONFIG = {"configurable": {"thread_id": "t"}}


def both_ways(folder: Path, builder: StateGraph, *calls) -> tuple[Thread, list]:
    """Make these calls on one thread of a file; return the thread as the file has it, and its snapshots."""
    file = folder / "t.sqlite"
    with closing(sqlite3.connect(file, check_same_thread=False)) as connection:
        graph = builder.compile(checkpointer=SqliteSaver(connection))
        for given in calls:
            graph.invoke(given, CONFIG)
        return read_history(file, "t"), list(graph.get_state_history(CONFIG))


def test_a_run_as_rungs(tmp_path):
    thread, snapshots = both_ways(tmp_path, counter.plain(), {"total": 5})
    for seen in (thread, snapshots):
        rungs = ladder.rungs(seen)
        assert [(one.label, one.parent, one.step, one.source) for one in rungs] == [
            ("c0", "-", -1, "input"),
            ("c1", "c0", 0, "loop"),
            ("c2", "c1", 1, "loop"),
            ("c3", "c2", 2, "loop"),
        ]
        assert [one.values for one in rungs] == [
            (),
            (("total", "5"),),
            (("total", "6"),),
            (("total", "8"),),
        ]
        assert [one.next for one in rungs] == [("__start__",), ("first",), ("second",), ()]
        assert [[(task.node, task.said) for task in one.tasks] for one in rungs] == [
            [("__start__", "done")], [("first", "done")], [("second", "done")], [],
        ]  # fmt: skip
        assert [one.changed for one in rungs] == [frozenset(), {"total"}, {"total"}, {"total"}]
        assert [one.newest for one in rungs] == [False, False, False, True]
        assert ("total", "6") in rungs[1].tasks[0].writes


def test_snapshots_come_in_any_order(tmp_path):
    _, snapshots = both_ways(tmp_path, counter.plain(), {"total": 5})
    assert ladder.rungs(snapshots) == ladder.rungs(snapshots[::-1]) == ladder.rungs(iter(snapshots))


def test_a_file_tells_what_the_router_chose(tmp_path):
    thread, _ = both_ways(tmp_path, approval.published(), {"request_id": "r"})
    assert ladder.rungs(thread)[1].tasks[0].writes[-1] == ("→", "approval")


def test_a_question_is_shown_without_its_id(tmp_path):
    thread, snapshots = both_ways(tmp_path, approval.approve(), {"draft": "d"})
    for seen in (thread, snapshots):
        (task,) = ladder.rungs(seen)[-1].tasks
        assert task.said == "asks: {'action': 'create draft', 'version': 1}"
        text = repr(ladder.picture(seen))
        assert not re.search(r"[0-9a-f]{16}", text)


def test_the_second_question_and_the_answered_node(tmp_path):
    thread, snapshots = both_ways(tmp_path, approval.one_node(2), {"answers": []}, Command(resume="yes"))
    for seen in (thread, snapshots):
        assert [task.said for task in ladder.rungs(seen)[-1].tasks] == ["asks: 'question 2'"]
    thread, snapshots = both_ways(tmp_path, approval.one_node(2), Command(resume="no"))
    for seen in (thread, snapshots):
        assert [task.said for task in ladder.rungs(seen)[-2].tasks] == ["done"]
        assert ladder.rungs(seen)[-1].next == ()


def test_a_node_that_asked_and_put_out_nothing_is_done_once_it_was_answered(tmp_path):
    builder = StateGraph(approval.Review).add_node("ask", lambda state: interrupt("?") and None)
    builder.add_edge(START, "ask")
    thread, snapshots = both_ways(tmp_path, builder, {"draft": "d"}, Command(resume=True))
    for seen in (thread, snapshots):
        assert [task.said for task in ladder.rungs(seen)[-2].tasks] == ["done"]


def test_a_question_that_a_new_input_dropped_was_not_answered():
    graph = approval.approve().compile(checkpointer=InMemorySaver())
    for _ in range(2):
        graph.invoke({"draft": "d"}, CONFIG)
    asked = [one for one in ladder.rungs(graph.get_state_history(CONFIG)) if one.next == ("approve",)]
    assert len(asked) == 2
    assert {task.said.partition(":")[0] for one in asked for task in one.tasks} == {"asks"}


@pytest.fixture(scope="module")
def made() -> dict:
    kinds = ("never started", "failed in a node", "cancelled in a node", "killed before a save")
    return {
        one.kind: list(one.graph.get_state_history(one.config)) for one in asyncio.run(make_threads(kinds))
    }


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("failed in a node", "failed: ValueError"),
        ("cancelled in a node", "cancelled"),
        ("killed before a save", "done"),
    ],
)
def test_what_became_of_the_newest_task(made, kind, said):
    assert [task.said for task in ladder.rungs(made[kind])[-1].tasks] == [said]


def test_what_is_in_no_checkpoint_yet_says_so(made):
    html = ladder.picture(made["killed before a save"])._repr_html_()
    assert html.count("in no checkpoint yet") == 1
    assert "in no checkpoint yet" not in ladder.picture(made["failed in a node"])._repr_html_()
    assert "waiting load done, wrote loaded='material'" in repr(ladder.picture(made["killed before a save"]))


def test_no_checkpoint_is_a_sentence(made):
    empty = ladder.picture(made["never started"])
    assert repr(empty) == "No checkpoint: this thread was never started."
    assert repr(empty) in empty._repr_html_()


def test_a_fork_says_what_it_follows():
    graph = counter.plain().compile(checkpointer=InMemorySaver())
    graph.invoke({"total": 0}, CONFIG)
    old = list(graph.get_state_history(CONFIG))[1]
    graph.update_state(old.config, {"total": 10})
    rungs = ladder.rungs(graph.get_state_history(CONFIG))
    assert (rungs[-1].label, rungs[-1].parent, rungs[-1].source) == ("c4", "c2", "update")
    text = repr(ladder.picture(graph.get_state_history(CONFIG)))
    assert "c4  step 2 · update · follows c2" in text


def test_chosen_keys_in_their_order(tmp_path):
    thread, _ = both_ways(tmp_path, approval.published(), {"request_id": "r"})
    rungs = ladder.rungs(thread, keys=["status", "request_id"])
    assert rungs[0].values == (("status", "–"), ("request_id", "–"))
    assert rungs[2].values == (("status", "'prepared'"), ("request_id", "'r'"))


def test_the_same_each_time(tmp_path):
    texts = set()
    for number in range(2):
        folder = tmp_path / str(number)
        folder.mkdir()
        _, snapshots = both_ways(folder, approval.published(), {"request_id": "r"})
        texts.add(ladder.picture(snapshots)._repr_html_())
    assert len(texts) == 1


class _Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_everything_in_it_is_escaped():
    nasty = "<script>alert('1')</script> & <b>"
    builder = StateGraph(dict).add_node("<i>node</i>", lambda state: {nasty: nasty})
    graph = builder.add_edge(START, "<i>node</i>").compile(checkpointer=InMemorySaver())
    graph.invoke({"key": nasty}, CONFIG)
    html = ladder.picture(graph.get_state_history(CONFIG))._repr_html_()
    tags = _Tags()
    tags.feed(html)
    assert tags.open == []
    assert tags.seen == {"style", "div", "ol", "li", "span", "code"} | ({"br"} & tags.seen)
    assert "&lt;script&gt;" in html


def test_a_large_value_is_cut():
    graph = StateGraph(dict).add_node("n", lambda state: {"x": "y" * 10_000}).add_edge(START, "n")
    graph = graph.compile(checkpointer=InMemorySaver())
    graph.invoke({"x": ""}, CONFIG)
    assert len(repr(ladder.picture(graph.get_state_history(CONFIG)))) < 2000
