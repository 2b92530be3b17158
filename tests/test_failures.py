"""Chapter 04: what runs again after a failure, beside it and in its router; retries; the exercises' check."""

import asyncio
import random
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
from answer_cells import Answer, answers, run_cell
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.errors import EmptyInputError, GraphRecursionError, InvalidUpdateError
from langgraph.graph import END, START, StateGraph
from langgraph.types import RetryPolicy

from fixtures.checks import c04_failures
from fixtures.experiments import failures
from fixtures.experiments.failures import count_checkpoints, race_siblings, try_retries, try_siblings
from fixtures.experiments.options import BadOption
from fixtures.graphs.branches import Done, in_a_row, side_by_side
from fixtures.threads import read_history

CONFIG = {"configurable": {"thread_id": "job"}}


@pytest.fixture(params=["memory", "sqlite"])
def saver(request) -> Iterator[Any]:
    if request.param == "memory":
        yield InMemorySaver()
        return
    with closing(sqlite3.connect(":memory:", check_same_thread=False)) as connection:
        yield SqliteSaver(connection)


class Work:
    """Pieces of work: each is noted when it begins, and fails while it is in ``down``."""

    def __init__(self, *down: str):
        self.down, self.called = set(down), []
        self.before_failing: Callable[[], object] = lambda: None

    def __call__(self, name: str) -> None:
        self.called.append(name)
        if name in self.down:
            self.before_failing()
            raise ConnectionError(f"{name} is down")

    def repaired(self) -> None:
        self.down.clear()
        self.called.clear()


def failed_row(saver: Any) -> tuple[Work, Any]:
    work = Work("c")
    graph = in_a_row(work).compile(checkpointer=saver)
    with pytest.raises(ConnectionError):
        graph.invoke({"done": []}, CONFIG)
    return work, graph


def pending(graph: Any) -> set[str]:
    """The values written beside the newest checkpoint, to the key ``done``."""
    kept = graph.checkpointer.get_tuple(CONFIG)
    return {str(value) for _, channel, value in (kept.pending_writes if kept else ()) if channel == "done"}


def failed_step(saver: Any) -> tuple[Work, Any]:
    """p and r are saved, then q fails."""
    work = Work("q")
    graph = side_by_side(work).compile(checkpointer=saver)

    def wait() -> None:
        until = time.monotonic() + 20
        while len(pending(graph)) < 2 and time.monotonic() < until:
            time.sleep(0.01)

    work.before_failing = wait
    with pytest.raises(ConnectionError):
        graph.invoke({"done": []}, CONFIG)
    return work, graph


# --- a row


@pytest.mark.parametrize(
    ("given", "ran", "done", "checkpoints"),
    [
        (None, ["c"], ["a", "b", "c"], 5),
        ({}, ["a", "b", "c"], ["a", "b", "a", "b", "c"], 9),
        ({"done": []}, ["a", "b", "c"], ["a", "b", "a", "b", "c"], 9),
    ],
)
def test_none_goes_on_and_an_input_starts_again(saver, given, ran, done, checkpoints):
    work, graph = failed_row(saver)
    assert len(list(graph.get_state_history(CONFIG))) == 4
    work.repaired()
    assert graph.invoke(given, CONFIG)["done"] == done
    assert work.called == ran
    assert len(list(graph.get_state_history(CONFIG))) == checkpoints


def test_none_on_a_finished_thread_runs_nothing_and_on_an_unknown_one_is_an_error(saver):
    work, graph = failed_row(saver)
    work.repaired()
    graph.invoke(None, CONFIG)
    graph.invoke(None, CONFIG)
    assert work.called == ["c"]
    with pytest.raises(EmptyInputError):
        graph.invoke(None, {"configurable": {"thread_id": "other"}})


def test_the_failed_step_leaves_its_error_and_no_checkpoint(tmp_path):
    file = tmp_path / "run.sqlite"
    with closing(sqlite3.connect(file, check_same_thread=False)) as connection:
        _, graph = failed_row(SqliteSaver(connection))
        state = graph.get_state(CONFIG)
        assert (state.next, state.values, state.metadata["step"]) == (("c",), {"done": ["a", "b"]}, 2)
        (task,) = state.tasks
        assert "c is down" in str(task.error)
        head = read_history(file, "job").head()
    (write,) = head.pending_writes
    assert (write.node, write.channel, write.idx) == ("c", "__error__", -1)
    assert head.unfinished == ("c",)


def test_supersteps_and_two_make_the_checkpoints():
    seen = count_checkpoints()
    assert [one.run for one in seen] == list(failures.RUNS)
    assert {one.checkpoints - one.supersteps for one in seen} == {2}
    assert {one.run: (one.nodes, one.supersteps) for one in seen} == {
        "1 in a row": (1, 1), "3 in a row": (3, 3), "6 in a row": (6, 6),
        "3 side by side": (3, 1), "6 side by side": (6, 1),
    }  # fmt: skip
    with pytest.raises(BadOption, match="3 in a row"):
        count_checkpoints(["2 in a row"])


# --- side by side


def test_next_holds_several_and_get_state_takes_the_finished_ones_in(saver):
    _, graph = failed_step(saver)
    newest = next(graph.get_state_history(CONFIG))
    assert (newest.next, newest.values["done"]) == (("p", "q", "r"), [])
    state = graph.get_state(CONFIG)
    assert (state.next, state.values["done"]) == (("q",), ["p", "r"])


def test_only_none_on_the_thread_spares_the_finished_branches(saver):
    work, graph = failed_step(saver)
    work.repaired()
    assert sorted(graph.invoke(None, CONFIG)["done"]) == ["p", "q", "r"]
    assert work.called == ["q"]


@pytest.mark.parametrize("way", ["by id", "new input", "update_state"])
def test_other_ways_run_the_finished_branches_again(saver, way):
    work, graph = failed_step(saver)
    work.repaired()
    if way == "by id":
        graph.invoke(None, graph.get_state(CONFIG).config)
    elif way == "new input":
        graph.invoke({"done": []}, CONFIG)
    else:
        graph.update_state(CONFIG, {"done": ["by hand"]})
        graph.invoke(None, CONFIG)
    assert sorted(work.called) == ["p", "q", "r"]


def test_an_update_as_a_branch_drops_the_failed_one(saver):
    work, graph = failed_step(saver)
    work.repaired()
    graph.update_state(CONFIG, {"done": ["by hand"]}, as_node="p")
    assert graph.get_state(CONFIG).next == ()
    assert graph.invoke(None, CONFIG)["done"] == ["by hand"]
    assert work.called == []


@pytest.mark.parametrize("durability", ["sync", "async"])
def test_what_becomes_of_a_sibling(durability):
    seen = asyncio.run(try_siblings(durability=durability))
    assert {(one.call, one.sibling): (one.next, one.begun, one.effects) for one in seen} == {
        ("invoke, plain nodes", "had finished"): ("bad", "1, then 1", "1, then 1"),
        ("ainvoke, plain nodes", "had finished"): ("bad", "1, then 1", "1, then 1"),
        ("ainvoke, plain nodes", "still running"): ("bad, good", "1, then 2", "1, then 2"),
        ("ainvoke, async nodes", "had finished"): ("bad", "1, then 1", "1, then 1"),
        ("ainvoke, async nodes", "still running"): ("bad, good", "1, then 2", "0, then 1"),
    }


@pytest.mark.parametrize(
    "wrong", [{"calls": ["run"]}, {"siblings": ["asleep"]}, {"durability": "exit"}], ids=str
)
def test_a_wrong_option_is_named(wrong):
    with pytest.raises(BadOption, match="|".join(str(value) for value in ("run", "asleep", "exit"))):
        asyncio.run(try_siblings(**wrong))


def test_invoke_keeps_or_loses_a_running_sibling(caplog):
    seen = race_siblings(20)
    assert seen.trials == 20
    assert seen.kept + seen.lost == 20
    # It waits for the sibling: if nothing were ever kept, it would not.
    assert seen.kept > 0
    assert not caplog.records


# --- the router


class Routed:
    """a, then a router, then b; the router fails while ``lost``."""

    def __init__(self, saver: Any, *down: str):
        self.work, self.asked, self.lost = Work(*down), 0, False
        builder = StateGraph(Done).add_edge(START, "a")
        builder.add_node("a", self.node("a")).add_node("b", self.node("b"))
        self.graph = builder.add_conditional_edges("a", self.choose, ["b"]).compile(checkpointer=saver)

    def node(self, name: str) -> Callable[[Any], dict]:
        def run(state: Done) -> dict:
            self.work(name)
            return {"done": [name]}

        return run

    def choose(self, state: Done) -> str:
        self.asked += 1
        if self.lost:
            raise LookupError("no way")
        return "b"

    def lose(self) -> None:
        """Call once with the router failing."""
        self.lost = True
        with pytest.raises(LookupError):
            self.graph.invoke({"done": ["in"]}, CONFIG)
        self.lost = False


def test_a_router_is_asked_again_on_a_replay_only(saver):
    routed = Routed(saver, "b")
    with pytest.raises(ConnectionError):
        routed.graph.invoke({"done": []}, CONFIG)
    routed.work.repaired()
    routed.graph.invoke(None, CONFIG)
    assert routed.asked == 1
    (before,) = (one for one in routed.graph.get_state_history(CONFIG) if one.next == ("a",))
    routed.graph.invoke(None, before.config)
    assert routed.asked == 2


def test_after_a_failed_router_none_ends_in_silence_and_an_update_repairs_it(saver):
    routed = Routed(saver)
    routed.lose()
    assert routed.graph.invoke(None, CONFIG)["done"] == ["in", "a"]
    assert (routed.graph.get_state(CONFIG).next, routed.graph.get_state(CONFIG).tasks) == ((), ())
    assert routed.work.called == ["a"]
    routed.graph.update_state(CONFIG, None, as_node="a")
    assert routed.graph.get_state(CONFIG).next == ("b",)
    assert routed.graph.invoke(None, CONFIG)["done"] == ["in", "a", "b"]


@pytest.mark.parametrize(("given_back", "done"), [(False, ["in", "b"]), (True, ["in", "a", "b"])])
def test_straight_after_it_the_nodes_result_must_be_given_back(saver, given_back, done):
    routed = Routed(saver)
    routed.lose()
    (failed,) = routed.graph.get_state(CONFIG).tasks
    assert failed.result == {"done": ["a"]}
    assert failed.error
    routed.graph.update_state(CONFIG, failed.result if given_back else None, as_node="a")
    assert routed.graph.invoke(None, CONFIG)["done"] == done


# --- retries, and the limit


def test_which_errors_are_tried_again():
    seen = {one.error: one for one in try_retries()}
    again = {"ConnectionError", "OwnError", "AssertionError", "AttributeError", "OperationalError"}
    assert {name for name, one in seen.items() if one.outcome == "done"} == again
    assert {one.attempts for one in seen.values()} == {1, 3}
    # Nothing is saved between attempts: N + 2 where the node came to its end, one less where not.
    assert {(one.attempts, one.checkpoints) for one in seen.values()} == {(3, 3), (1, 2)}
    assert set(seen) == {error.__name__ for error in failures.ERRORS}


def test_the_policy_is_the_default_but_for_its_pause():
    default = RetryPolicy()
    quick = failures.QUICKLY
    assert (
        (quick.max_attempts, quick.retry_on)
        == (default.max_attempts, default.retry_on)
        == (3, quick.retry_on)
    )
    assert default.initial_interval == 0.5


def test_attempts_are_counted_anew_by_none(saver):
    work = Work("a")
    graph = in_a_row(work, "a", retry=failures.QUICKLY).compile(checkpointer=saver)
    for attempts in (3, 6):
        with pytest.raises(ConnectionError):
            graph.invoke({"done": []} if attempts == 3 else None, CONFIG)
        assert len(work.called) == attempts


def test_the_limit_counts_the_steps_of_one_call(saver):
    builder = StateGraph(Done).add_node("step", lambda state: {"done": [1]}).add_edge(START, "step")
    builder.add_conditional_edges(
        "step", lambda state: "step" if len(state["done"]) < 6 else END, ["step", END]
    )
    graph, limited = builder.compile(checkpointer=saver), CONFIG | {"recursion_limit": 4}
    with pytest.raises(GraphRecursionError):
        graph.invoke({"done": []}, limited)
    assert graph.get_state(CONFIG).next == ("step",)
    assert len(graph.invoke(None, limited)["done"]) == 6


def test_two_predecessors_make_an_update_ambiguous(saver):
    work = Work()
    graph = side_by_side(work, "pq").compile(checkpointer=saver)
    graph.invoke({"done": []}, CONFIG)
    with pytest.raises(InvalidUpdateError, match="Ambiguous"):
        graph.update_state(CONFIG, {"done": ["by hand"]})


# --- the exercises


@pytest.mark.parametrize("answer", answers("04"), ids=lambda one: one.title)
def test_kept_answers_are_judged_right(answer: Answer):
    cell = answer.functions()
    verdict = c04_failures.check(cell["build"], cell["retry"], cell["resume_or_start"], seed="a student")
    assert set(verdict.failed) == set(answer.fails), str(verdict)


def test_the_answers_are_enough_and_fail_each_requirement_of_either_exercise():
    kept = answers("04")
    first = {one.key for one in c04_failures.REQUIREMENTS if one.uses == c04_failures.BUILT}
    second = {one.key for one in c04_failures.REQUIREMENTS} - first
    assert sum(one.right for one in kept) >= 2
    for part in (first, second):
        assert sum(bool(part & set(one.fails)) for one in kept) >= 4
        assert part <= {key for one in kept for key in one.fails}


def test_plans_differ_and_have_three_suppliers_of_whom_one_fails():
    plans = [c04_failures.draw(random.Random(seed)) for seed in range(50)]
    for plan in plans:
        assert len(set(plan["suppliers"])) == 3
        assert plan["who"] in plan["suppliers"]
        assert set(plan["unfinished"]) == set(c04_failures.UNFINISHED)
    assert len({str(plan) for plan in plans}) == 50
    assert {plan["suppliers"].index(plan["who"]) for plan in plans} == {0, 1, 2}


def test_an_answer_that_returns_something_else_is_told_what():
    cell = run_cell(
        "def build(pay):\n    return 5\n"
        "def retry(graph, config):\n    return []\n"
        "def resume_or_start(graph, config, job):\n    return 7\n"
    )
    verdict = c04_failures.check(cell["build"], cell["retry"], cell["resume_or_start"], seed=1)
    why = {line.key: line.why for line in verdict.lines}
    assert verdict.points == 0
    assert "build returned int, not a StateGraph" in why["paid-once"]
    assert "an object of type int" in why["leaves-finished"]
