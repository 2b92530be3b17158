"""Chapter 06: graphs that ask, what runs again, what arrives outside, and what differs between versions."""

import importlib.metadata
import inspect
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from answer_cells import Answer, answers, run_cell
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import task
from langgraph.graph import START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, interrupt

from fixtures.checks import c06_interrupt
from fixtures.experiments import interrupt as experiments
from fixtures.experiments.interrupt import outcome, try_answers, try_designs, watch_passes
from fixtures.experiments.options import BadOption
from fixtures.graphs import approval
from fixtures.views import passes

VERSION = tuple(int(part) for part in importlib.metadata.version("langgraph").split(".")[:3])
OLDEST = (1, 2, 9)
SUBGRAPH_TASKS_KEPT = (1, 2, 16)
"""From here on a ``@task`` that finished in a graph called by a node is not run again."""

CONFIG = {"configurable": {"thread_id": "t"}}


def compiled(builder: StateGraph) -> CompiledStateGraph:
    return builder.compile(checkpointer=InMemorySaver())


def one(node: Callable, state: type = approval.Answers) -> CompiledStateGraph:
    return compiled(StateGraph(state).add_node("node", node).add_edge(START, "node"))


def questions(graph: CompiledStateGraph) -> dict[str, str]:
    """The questions of the thread and their ids."""
    return {asked.value: asked.id for asked in graph.get_state(CONFIG).interrupts}


# --- the published graphs


def test_the_published_counts():
    happened: list[str] = []
    graph = compiled(approval.published(happened=happened.append))
    graph.invoke({"request_id": "r"}, CONFIG)
    paused = graph.get_state(CONFIG)
    assert paused.values == {
        "request_id": "r",
        "prepared_payload": "draft-action-v1",
        "status": "prepared",
    }
    assert paused.next == ("approval",)
    assert [asked.value for asked in paused.interrupts] == [{"request_id": "r", "payload": "draft-action-v1"}]
    state = graph.invoke(Command(resume=True), CONFIG)
    assert (state["approved"], state["status"]) == (True, "approved")
    assert Counter(happened) == {"before_interrupt": 2, "after_interrupt": 1}


def test_a_refusal_ends_the_published_run():
    graph = compiled(approval.published())
    graph.invoke({"request_id": "r"}, CONFIG)
    state = graph.invoke(Command(resume=False), CONFIG)
    assert (state["approved"], state["status"], graph.get_state(CONFIG).next) == (False, "rejected", ())


@pytest.mark.parametrize(("answer", "approved"), [(True, True), (False, False), ("yes", False), (1, False)])
def test_the_second_published_graph_approves_only_true(answer, approved):
    visits: list[str] = []
    graph = compiled(approval.approve(visited=lambda: visits.append("visit")))
    asked = graph.invoke({"draft": "d"}, CONFIG)["__interrupt__"][0].value
    assert (asked, len(visits)) == ({"action": "create draft", "version": 1}, 1)
    assert graph.invoke(Command(resume=answer), CONFIG)["approved"] is approved
    assert len(visits) == 2
    assert graph.get_state(CONFIG).next == ()


# --- what a node receives


def test_every_answer_but_two_arrives():
    seen = {one.answer: one for one in try_answers()}
    arrived = ("True", "False", "'no'", "0", "''", "[]")
    assert {
        answer: (seen[answer].received, seen[answer].entries, seen[answer].then) for answer in arrived
    } == {answer: (answer, 2, "finished") for answer in arrived}
    assert (seen["{}"].received, seen["{}"].entries, seen["{}"].then) == ("–", 2, "asks again")
    assert (seen["None"].received, seen["None"].entries, seen["None"].then) == (
        "–",
        1,
        "UnboundLocalError",
    )


def test_a_call_that_answers_nothing_leaves_the_question():
    for given in (None, Command(resume=None), Command(resume={})):
        graph = compiled(approval.approve())
        graph.invoke({"draft": "d"}, CONFIG)
        assert outcome(graph, given, CONFIG) != "finished"
        assert graph.invoke(Command(resume=True), CONFIG)["approved"] is True


def test_going_on_without_an_answer_enters_the_node_and_asks_again():
    visits: list[str] = []
    graph = compiled(approval.approve(visited=lambda: visits.append("visit")))
    graph.invoke({"draft": "d"}, CONFIG)
    assert outcome(graph, None, CONFIG) == "asks again"
    assert len(visits) == 2
    assert "approved" not in graph.get_state(CONFIG).values


def test_new_input_drops_the_question():
    graph = compiled(approval.published())
    graph.invoke({"request_id": "old"}, CONFIG)
    graph.invoke({"request_id": "new"}, CONFIG)
    assert [asked["request_id"] for asked in questions_asked(graph)] == ["new"]


def questions_asked(graph: CompiledStateGraph) -> list[Any]:
    return [asked.value for asked in graph.get_state(CONFIG).interrupts]


# --- passes


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_k_questions_make_k_plus_one_passes(k):
    entered: list[str] = []
    graph = compiled(approval.one_node(k, happened=entered.append))
    graph.invoke({}, CONFIG)
    for number in range(k):
        graph.invoke(Command(resume=number), CONFIG)
    assert len(entered) == k + 1
    assert [answer for _, answer in graph.get_state(CONFIG).values["answers"]] == list(range(k))


def two_questions(state):
    head = "head"
    first = interrupt(f"{head} 1")
    second = interrupt("2")
    return {"got": [first, second]}


def with_finally(state):
    try:
        return {"got": interrupt("?")}
    finally:
        state["x"] = 1


def test_the_lines_that_run_in_each_pass():
    seen = watch_passes(two_questions, {}, answers=["a", "b"])
    assert [(sorted(one.lines), one.stopped_at) for one in seen.passes] == [
        ([1, 2], 2),
        ([1, 2, 3], 3),
        ([1, 2, 3, 4], None),
    ]
    assert seen.source[0] == "def two_questions(state):"
    assert seen.source[4] == '    return {"got": [first, second]}'


def test_a_pass_stops_where_it_asked_also_when_a_finally_runs_after_it():
    seen = watch_passes(with_finally, {}, answers=[True])
    assert [one.stopped_at for one in seen.passes] == [2, None]
    assert {2, 4} <= seen.passes[0].lines


def test_watching_gives_the_tracer_back():
    import sys

    def tracer(*_):
        return None

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        watch_passes(two_questions, {}, answers=[])
        assert sys.gettrace() is tracer
    finally:
        sys.settrace(before)


def test_the_picture_says_in_words_what_each_line_did():
    drawn = passes.picture(watch_passes(two_questions, {}, answers=["a", "b"]))
    assert [cells for _, cells in drawn.rows()] == [
        ["runs", "runs again", "runs again"],
        ["asks, and leaves", "gets the answer", "gets the answer"],
        ["–", "asks, and leaves", "gets the answer"],
        ["–", "–", "runs"],
    ]
    assert repr(drawn).splitlines()[2].split("  ")[-1].strip() == "gets the answer"
    assert drawn._repr_html_().count("runs again") == 2


def less_than(state):
    return {"small": interrupt("<b>1 & 2</b>") < "3"}


def test_the_picture_escapes_code():
    html = passes.picture(watch_passes(less_than, {}, answers=["2"]))._repr_html_()
    assert "&lt;b&gt;1 &amp; 2&lt;/b&gt;" in html
    assert "<b>" not in html


# --- several questions


def test_answers_match_by_the_order_of_the_calls():
    order = ["price?", "date?"]
    graph = one(lambda state: {"answers": [(name, interrupt(name)) for name in order]})
    graph.invoke({}, CONFIG)
    graph.invoke(Command(resume="100"), CONFIG)
    order.reverse()
    state = graph.invoke(Command(resume="Monday"), CONFIG)
    assert dict(state["answers"]) == {"date?": "100", "price?": "Monday"}


def test_one_answer_for_two_questions_is_refused_and_nothing_runs():
    entered: list[str] = []
    graph = compiled(approval.side_by_side("a", "b", happened=entered.append))
    graph.invoke({}, CONFIG)
    assert outcome(graph, Command(resume=True), CONFIG) == "RuntimeError"
    assert Counter(entered) == {"a": 1, "b": 1}


def test_an_unanswered_sibling_is_entered_again():
    entered: list[str] = []
    graph = compiled(approval.side_by_side("a", "b", happened=entered.append))
    graph.invoke({}, CONFIG)
    ids = questions(graph)
    assert outcome(graph, Command(resume={ids["a?"]: 1}), CONFIG) == "asks again"
    assert Counter(entered) == {"a": 2, "b": 2}
    assert graph.get_state(CONFIG).next == ("b",)
    assert outcome(graph, Command(resume=2), CONFIG) == "finished"
    assert Counter(entered) == {"a": 2, "b": 3}


def test_both_answers_at_once():
    graph = compiled(approval.side_by_side("a", "b"))
    graph.invoke({}, CONFIG)
    ids = questions(graph)
    state = graph.invoke(Command(resume={ids["a?"]: False, ids["b?"]: 0}), CONFIG)
    assert dict(state["answers"]) == {"a": False, "b": 0}


@pytest.mark.parametrize(
    ("builder", "by_id", "answered"),
    [
        (approval.in_a_row("a", "b"), False, 2),
        (approval.in_a_row("a", "b"), True, 1),
        (approval.one_node(2), True, 2),
    ],
)
def test_yes_twice(builder, by_id, answered):
    graph = compiled(builder)
    first = graph.invoke({}, CONFIG)["__interrupt__"][0].id
    for _ in range(2):
        graph.invoke(Command(resume={first: True} if by_id else True), CONFIG)
    state = graph.get_state(CONFIG)
    assert len(state.values["answers"]) == answered
    assert len(state.interrupts) == 2 - answered


# --- the wrong thread, the past, the skipped person


def test_an_answer_on_an_unknown_thread_starts_it_and_is_not_used():
    graph = compiled(approval.approve())
    assert outcome(graph, Command(resume=True), CONFIG) == "asks again"
    assert "approved" not in graph.get_state(CONFIG).values


def test_an_answer_on_a_finished_thread_is_stored_and_not_used():
    graph = compiled(approval.approve())
    graph.invoke({"draft": "d"}, CONFIG)
    graph.invoke(Command(resume=False), CONFIG)
    assert outcome(graph, Command(resume=True), CONFIG) == "finished"
    assert graph.get_state(CONFIG).values["approved"] is False
    kept = graph.checkpointer.get_tuple(CONFIG).pending_writes
    assert [channel for _, channel, _ in kept] == ["__resume__"]


def test_answering_at_the_old_checkpoint_keeps_the_old_answer():
    graph = compiled(approval.in_a_row("a"))
    graph.invoke({}, CONFIG)
    asked_at = graph.get_state(CONFIG).config
    graph.invoke(Command(resume="first"), CONFIG)
    assert graph.invoke(Command(resume="second"), asked_at)["answers"] == [("a", "first")]
    assert outcome(graph, None, asked_at) == "asks again"
    assert graph.invoke(Command(resume="second"), CONFIG)["answers"][-1][1] == "second"


def test_an_update_as_the_asking_node_skips_the_person():
    graph = compiled(approval.approve())
    graph.invoke({"draft": "d"}, CONFIG)
    graph.update_state(CONFIG, {"approved": True}, as_node="approve")
    assert graph.get_state(CONFIG).next == ()


def test_interrupt_before_given_with_a_call_is_not_kept():
    visits: list[str] = []
    graph = compiled(approval.approve(visited=lambda: visits.append("visit")))
    graph.invoke({"draft": "d"}, CONFIG, interrupt_before=["approve"])
    assert (graph.get_state(CONFIG).next, visits) == (("approve",), [])
    graph.invoke(None, CONFIG)
    assert len(visits) == 1


def test_a_question_in_a_try_is_swallowed():
    def careless(state):
        try:
            return {"approved": interrupt("?")}
        except Exception as error:
            return {"draft": type(error).__name__}

    graph = one(careless, approval.Review)
    assert graph.invoke({}, CONFIG) == {"draft": "GraphInterrupt"}
    assert graph.get_state(CONFIG).interrupts == ()


def test_without_a_saver_a_question_comes_back_and_cannot_be_answered():
    graph = approval.approve().compile()
    assert "__interrupt__" in graph.invoke({"draft": "d"})
    with pytest.raises(RuntimeError, match="without checkpointer"):
        graph.invoke(Command(resume=True))


def test_an_answer_outlives_a_failure_of_its_node():
    answers: list[Any] = []

    def fails_once(state):
        answers.append(interrupt("?"))
        if len(answers) == 1:
            raise ValueError("once")
        return {"approved": True}

    graph = one(fails_once, approval.Review)
    graph.invoke({}, CONFIG)
    assert outcome(graph, Command(resume="yes"), CONFIG) == "ValueError"
    assert outcome(graph, None, CONFIG) == "finished"
    assert answers == ["yes", "yes"]


# --- what differs between versions


def test_next_while_a_second_question_waits():
    graph = compiled(approval.one_node(2))
    graph.invoke({}, CONFIG)
    graph.invoke(Command(resume=1), CONFIG)
    assert graph.get_state(CONFIG).next == (() if VERSION == OLDEST else ("ask",))
    assert questions_asked(graph) == ["question 2"]


def test_ids_of_the_questions_of_one_node():
    graph = compiled(approval.one_node(3))
    graph.invoke({}, CONFIG)
    ids = []
    for number in range(3):
        ids += questions(graph).values()
        graph.invoke(Command(resume=number), CONFIG)
    assert len(set(ids)) == (1 if VERSION == OLDEST else 3)


def test_next_after_a_node_failed_with_the_answer_in_hand():
    def fails(state):
        interrupt("?")
        raise ValueError("always")

    graph = one(fails, approval.Review)
    graph.invoke({}, CONFIG)
    assert outcome(graph, Command(resume=True), CONFIG) == "ValueError"
    assert graph.get_state(CONFIG).next == (() if VERSION == OLDEST else ("node",))
    assert questions_asked(graph) == ["?"]


def test_questions_listed_after_one_of_two_was_answered():
    graph = compiled(approval.side_by_side("a", "b"))
    graph.invoke({}, CONFIG)
    graph.invoke(Command(resume={questions(graph)["a?"]: 1}), CONFIG)
    assert sorted(questions_asked(graph)) == (["a?", "b?"] if VERSION == OLDEST else ["b?"])


def test_response_schema():
    known = "response_schema" in inspect.signature(interrupt).parameters
    assert known is (VERSION != OLDEST)
    if known:
        graph = one(lambda state: {"answers": [interrupt("?", response_schema=int)]})
        graph.invoke({}, CONFIG)
        assert outcome(graph, Command(resume="five"), CONFIG) not in ("finished", "asks again")
        assert graph.invoke(Command(resume=5), CONFIG)["answers"] == [5]


def called(inner: StateGraph, entered: list[str], checkpointer: Any = None) -> Counter:
    """Call a graph inside a node, answer its question, and count what ran."""
    graph = inner.compile(checkpointer=checkpointer)

    def outer(state):
        entered.append("outer")
        graph.invoke({})

    whole = one(outer, approval.Review)
    whole.invoke({}, CONFIG)
    assert outcome(whole, Command(resume=True), CONFIG) == "finished"
    return Counter(entered)


@pytest.mark.parametrize(("checkpointer", "looks"), [(None, 1), (True, 1), (False, 2)])
def test_a_graph_called_in_a_node(checkpointer, looks):
    entered: list[str] = []

    def look(state):
        entered.append("look")

    def ask(state):
        entered.append("ask")
        return {"approved": interrupt("?")}

    inner = StateGraph(approval.Review).add_sequence([look, ask]).add_edge(START, "look")
    assert called(inner, entered, checkpointer) == {"outer": 2, "look": looks, "ask": 2}


def test_a_task_that_finished_in_a_called_graph():
    entered: list[str] = []

    @task
    def fetch():
        entered.append("fetch")

    def ask(state):
        fetch().result()
        return {"approved": interrupt("?")}

    inner = StateGraph(approval.Review).add_node("ask", ask).add_edge(START, "ask")
    assert called(inner, entered)["fetch"] == (1 if VERSION >= SUBGRAPH_TASKS_KEPT else 2)


def test_a_task_that_finished_in_the_asking_node_is_kept():
    entered: list[str] = []

    @task
    def fetch():
        entered.append("fetch")

    def ask(state):
        entered.append("ask")
        fetch().result()
        return {"approved": interrupt("?")}

    graph = one(ask, approval.Review)
    graph.invoke({}, CONFIG)
    graph.invoke(Command(resume=True), CONFIG)
    assert Counter(entered) == {"ask": 2, "fetch": 1}


# --- a mail around a question


def mails(**options) -> dict[tuple[str, str], tuple[int, int, int]]:
    return {
        (one.design, one.answer): (one.sent_before, one.sent, one.delivered) for one in try_designs(**options)
    }


def test_what_each_design_sends_and_the_server_delivers():
    assert mails() == {
        **{("naive", answer): (1, 2, 2) for answer in ("True", "False", "'no'")},
        **{(design, "True"): (0, 1, 1) for design in ("after", "split")},
        **{(design, answer): (0, 0, 0) for design in ("after", "split") for answer in ("False", "'no'")},
        **{("keyed", answer): (1, 2, 1) for answer in ("True", "False", "'no'")},
    }


def test_a_lost_reply_sends_twice_and_the_key_delivers_once():
    assert mails(answers=[True], lose_first_reply=True) == {
        ("naive", "True"): (2, 3, 3),
        ("after", "True"): (0, 2, 1),
        ("split", "True"): (0, 2, 1),
        ("keyed", "True"): (2, 3, 1),
    }


def test_an_unknown_design_is_named():
    with pytest.raises(BadOption, match="naive, after, split, keyed; got 'fast'"):
        try_designs(designs=["fast"])


def test_nothing_is_left_on_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(experiments.tempfile, "tempdir", str(tmp_path))
    try_designs(designs=["keyed"], answers=[True])
    assert list(tmp_path.iterdir()) == []


# --- the exercise


@pytest.mark.parametrize("answer", answers("06"), ids=lambda one: one.title)
def test_kept_answers_are_judged_right(answer: Answer):
    cell = answer.functions()
    verdict = c06_interrupt.check(cell["after"], cell["split"], cell["keyed"], seed="a student")
    assert verdict.failed == answer.fails, str(verdict)


def test_the_answers_are_enough_and_fail_each_requirement():
    kept = answers("06")
    assert sum(one.right for one in kept) >= 2
    assert sum(not one.right for one in kept) >= 4
    assert {key for one in kept for key in one.fails} == {one.key for one in c06_interrupt.REQUIREMENTS}


def test_the_draws_always_hold_yes_no_and_the_word_no():
    import random

    plans = [c06_interrupt.draw(random.Random(seed)) for seed in range(50)]
    for plan in plans:
        for needed in (True, False, "no"):
            assert any(type(one) is type(needed) and one == needed for one in plan["answers"])
        assert len(set(plan["orders"])) == len(plan["answers"]) == 5
        assert sorted(plan["pair_answers"]) == [False, True]
    assert len({str(plan) for plan in plans}) == 50


def test_an_error_in_the_second_process_is_told():
    good = next(one for one in answers("06") if one.right).functions()
    cell = run_cell(
        "import os\n"
        "def after(mail):\n    raise NotImplementedError()\n"
        "def split(mail):\n    os._exit(3)\n"
        "def keyed(mail):\n    return 5\n"
    )
    verdict = c06_interrupt.check(cell["after"], cell["split"], cell["keyed"], seed=1)
    why = {line.key: line.why for line in verdict.lines}
    assert {why["after-only-true"], why["after-elsewhere"]} == {"not written yet"}
    assert "ended its whole process (exit code 3)" in why["split-only-true"]
    assert "keyed returned int, not a StateGraph" in why["keyed-one-notice"]
    assert c06_interrupt.check(good["after"], good["split"], good["keyed"], seed=1).passed
