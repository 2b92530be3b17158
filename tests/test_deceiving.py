"""Threads that look like something else, each made on the spot; and chapter 01's exercise about them."""

import asyncio
import random
from typing import TypedDict

import pytest
from answer_cells import Answer, answers
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import InvalidUpdateError
from langgraph.graph import START, StateGraph
from langgraph.types import Command

from fixtures.checks import c01_status
from fixtures.experiments import deceiving
from fixtures.experiments.deceiving import KINDS, STATUSES, TELLABLE, look, make_threads
from fixtures.experiments.interrupt import outcome
from fixtures.experiments.options import BadOption


def made(*kinds: str, **options) -> list[deceiving.MadeThread]:
    return asyncio.run(make_threads(kinds or tuple(KINDS), **options))


@pytest.fixture(scope="module")
def looks() -> dict[str, deceiving.Look]:
    return {one.kind: look(one) for one in made()}


def test_there_are_eight_to_tell_and_two_that_nobody_can_tell():
    assert len(TELLABLE) == 8
    assert set(KINDS.values()) == set(STATUSES)
    assert [KINDS[kind] for kind in KINDS if kind not in TELLABLE] == ["waiting", "failed"]


def test_five_of_nine_have_an_empty_next_and_one_is_finished(looks):
    seen = [one for kind, one in looks.items() if kind != "waits for a second answer"]
    empty = {one.kind for one in seen if one.next == "–"}
    assert empty == {
        "never started",
        "killed before a save",
        "finished",
        "waits at a renamed node",
        "went on after its router failed",
    }
    assert [one.kind for one in looks.values() if one.status == "done"] == ["finished"]


def test_what_else_tells_them(looks):
    assert [kind for kind, one in looks.items() if not one.created] == ["never started"]
    assert {kind for kind, one in looks.items() if one.questions} == {
        "waits for an answer",
        "waits for a second answer",
    }
    assert {kind: one.errors for kind, one in looks.items() if one.errors != "–"} == {
        "failed in a node": "ValueError",
        "cancelled in a node": "CancelledError",
    }
    assert (looks["killed before a save"].next, looks["killed before a save"].tasks) == ("–", 1)


def test_the_two_that_nobody_can_tell_look_finished_but_for_the_status(looks):
    def shown(kind):
        one = looks[kind]
        return one.next, one.tasks, one.errors, one.questions, one.created

    assert shown("waits at a renamed node") == shown("finished")
    assert shown("went on after its router failed") == shown("finished")


def test_going_on_finishes_what_was_stopped():
    entered: list[str] = []
    for one in made("cancelled in a node", "stopped between two steps", "killed before a save"):
        assert outcome(one.graph, None, one.config) == "finished"
        assert look(one).status == "done"
    (killed,) = made("killed before a save", effect=entered.append)
    outcome(killed.graph, None, killed.config)
    assert entered == ["work"], "the node whose result was stored is not run again"


def test_going_on_does_nothing_at_a_renamed_node_and_after_a_failed_router():
    entered: list[str] = []
    for one in made("waits at a renamed node", "went on after its router failed", effect=entered.append):
        before = list(entered)
        assert outcome(one.graph, None, one.config) == "finished"
        assert entered == before
        assert look(one).status == "–"


def test_a_failed_one_fails_again_and_a_waiting_one_takes_its_answer():
    failed, waiting, twice = made("failed in a node", "waits for an answer", "waits for a second answer")
    assert outcome(failed.graph, None, failed.config) == "ValueError"
    for one in (waiting, twice):
        assert outcome(one.graph, Command(resume=True), one.config) == "finished"


def test_looking_runs_nothing():
    entered: list[str] = []
    threads = made(effect=entered.append)
    before = list(entered)
    for one in threads:
        look(one)
    assert entered == before
    assert before


def test_two_writes_to_one_key_leave_a_thread_that_only_an_update_gets_going():
    builder = StateGraph(TypedDict("Plain", {"found": list}))
    for name in ("a", "b"):
        builder.add_node(name, lambda state, name=name: {"found": [name]}).add_edge(START, name)
    graph, config = builder.compile(checkpointer=InMemorySaver()), {"configurable": {"thread_id": "t"}}
    for given, held in (({"found": []}, []), (None, []), ({"found": ["new"]}, ["new"])):
        assert outcome(graph, given, config) == "InvalidUpdateError"
        with pytest.raises(InvalidUpdateError):
            graph.get_state(config)
        assert next(graph.get_state_history(config)).values == {"found": held}
    graph.update_state(config, {"found": ["mended"]})
    assert graph.get_state(config).values == {"found": ["mended"]}


def test_names_and_savers_are_as_given():
    saver = InMemorySaver()
    one, other = made("finished", "failed in a node", names=["a", "b"], saver=saver)
    assert [one.config["configurable"]["thread_id"], other.config["configurable"]["thread_id"]] == ["a", "b"]
    assert {kept.config["configurable"]["thread_id"] for kept in saver.list(None)} == {"a", "b"}


def test_bad_options_are_named():
    with pytest.raises(BadOption, match=r"kind must be one of never started, .*; got 'lost'"):
        made("lost")
    with pytest.raises(ValueError, match="zip"):
        made("finished", names=["a", "b"])


# --- the exercise


@pytest.mark.parametrize("answer", answers("01"), ids=lambda one: one.title)
def test_kept_answers_are_judged_right(answer: Answer):
    verdict = c01_status.check(answer.functions()["status"], seed="a student")
    assert verdict.failed == answer.fails, str(verdict)


def test_the_answers_are_enough_and_fail_each_requirement():
    kept = answers("01")
    assert sum(one.right for one in kept) >= 2
    assert sum(not one.right for one in kept) >= 4
    assert {key for one in kept for key in one.fails} == {one.key for one in c01_status.REQUIREMENTS}


def test_each_thread_is_asked_about_in_one_of_many_orders():
    plans = [c01_status.draw(random.Random(seed)) for seed in range(20)]
    for plan in plans:
        assert sorted(plan["kinds"]) == sorted(TELLABLE)
        assert len(set(plan["names"])) == len(TELLABLE)
    assert len({tuple(plan["kinds"]) for plan in plans}) == 20


def test_an_answer_that_raises_loses_only_those_threads():
    def status(graph, config):
        state = graph.get_state(config)
        if state.values.get("status") == "done":
            return "finished"
        return "never" if state.created_at is None else 1 / 0

    verdict = c01_status.check(status, seed=1)
    assert verdict.failed == ("waiting", "failed-or-cancelled", "stopped", "nothing-ran")
    why = {line.key: line.why for line in verdict.lines}
    assert "waits for an answer: ZeroDivisionError raised" in why["waiting"]
