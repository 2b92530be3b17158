"""What a second input does to a counter, a call without a thread id, and which ids are one thread."""

import operator
import os
import tempfile
from typing import Annotated, TypedDict

import pytest
from answer_cells import Answer, answers
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph

from fixtures.checks import c02_counter
from fixtures.experiments.counter import INPUTS, call_again, compare_ids, forget_the_thread
from fixtures.experiments.options import BadOption
from fixtures.graphs import counter

BOTH = {
    # input: (plain: came back, saw; reducer: came back, saw)
    "{'total': 0}": ("3", (0, 1), "6", (3, 4)),
    "{'total': 5}": ("8", (5, 6), "11", (8, 9)),
    "{}": ("6", (3, 4), "6", (3, 4)),
    "{'other': 1}": ("6", (3, 4), "6", (3, 4)),
    "None": ("3", (), "3", ()),
}


@pytest.mark.parametrize("saver", ["memory", "sqlite"])
async def test_a_second_input_overwrites_or_is_added_and_none_runs_nothing(saver):
    seen = {(one.form, one.given): one for one in await call_again(saver=saver)}
    assert len(seen) == 2 * len(BOTH) == 2 * len(INPUTS)
    for given, (plain, plain_saw, adding, adding_saw) in BOTH.items():
        for form, came_back, saw in (("plain", plain, plain_saw), ("reducer", adding, adding_saw)):
            one = seen[form, given]
            assert (one.came_back, one.saw, one.says) == (came_back, saw, ""), one
            # Two nodes are two supersteps, and N supersteps make N + 2 checkpoints.
            assert (one.entries, one.checkpoints) == ((0, 0) if given == "None" else (2, 4)), one
            assert (one.thread, one.saver) == ("called once", saver)


@pytest.mark.parametrize("saver", ["memory", "sqlite"])
async def test_on_a_new_thread_the_plain_counter_needs_a_total_and_none_is_refused(saver):
    inputs = [{"total": 0}, {}, {"other": 1}, None]
    seen = await call_again(inputs=inputs, threads=["new"], saver=saver)
    plain, adding = seen[:4], seen[4:]
    assert [one.came_back for one in plain] == ["3", "KeyError", "KeyError", "EmptyInputError"]
    assert [one.came_back for one in adding] == ["3", "3", "3", "EmptyInputError"]
    assert [one.entries for one in plain] == [2, 1, 1, 0]
    assert [one.entries for one in adding] == [2, 2, 2, 0]
    assert (plain[1].says, plain[1].saw) == ("'total'", (None,))
    assert (plain[3].says, plain[3].checkpoints) == ("Received no input for __start__", 0)


async def test_the_published_pair_needs_the_reducer():
    seen = await call_again(inputs=[{"total": 0}])
    assert {one.form: one.came_back for one in seen} == {"plain": "3", "reducer": "6"}


def test_nodes_that_return_totals_and_a_reducer_add_twice():
    class Sum(TypedDict):
        total: Annotated[int, operator.add]

    builder = StateGraph(Sum).add_edge(START, "first")
    builder.add_sequence(
        [
            ("first", lambda state: {"total": state["total"] + 1}),
            ("second", lambda state: {"total": state["total"] + 2}),
        ]
    )
    graph = builder.compile(checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "thread-1"}}
    assert [graph.invoke({"total": 0}, config)["total"] for _ in range(3)] == [4, 20, 84]


async def test_with_a_saver_a_call_without_a_thread_id_raises_and_without_one_it_does_not():
    for one in await forget_the_thread():
        if one.saver == "none":
            assert (one.invoke, one.get_state, one.says) == ("3", "ValueError", "No checkpointer set")
        elif "user_id" in one.config:
            assert (one.invoke, one.get_state, one.says) == ("KeyError", "KeyError", "'thread_id'")
        else:
            assert one.invoke == "ValueError"
            assert one.get_state in ("TypeError", "KeyError")
            assert one.says.endswith("'configurable' keys: thread_id")


async def test_none_as_the_id_is_no_error_with_any_saver():
    for one in await forget_the_thread(configs=[{"configurable": {"thread_id": None}}]):
        assert one.invoke == "3"
        assert one.get_state == {"none": "ValueError", "memory": "–", "sqlite": "3"}[one.saver]


ONE_THREAD = {
    # ids: (one thread in memory, in sqlite)
    ("'a'", "'b'"): (False, False),
    ("1", "'1'"): (True, True),
    ("0", "'0'"): (False, True),
    ("''", "''"): (True, True),
    ("None", "None"): (True, True),
    ("None", "'None'"): (False, True),
}


async def test_which_ids_are_one_thread_in_which_saver():
    seen = await compare_ids()
    assert len(seen) == 2 * len(ONE_THREAD)
    for one in seen:
        memory, sqlite = ONE_THREAD[one.first, one.second]
        together = memory if one.saver == "memory" else sqlite
        assert one.second_total == (6 if together else 3), one
        assert len(one.stored) == (1 if together else 2), one
        unreadable = one.saver == "memory" and one.second == "None"
        assert one.get_state == ("–" if unreadable else str(one.second_total)), one
        if one.saver == "sqlite":
            assert all(name.startswith("'") for name in one.stored), "SQLite keeps each id as text"


def test_get_state_makes_text_of_the_id_in_the_config_that_it_is_given():
    """So the experiments make a config anew for each call: the next one would be under another id."""
    graph = counter.reducer().compile(checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": None}}
    assert graph.invoke({"total": 0}, config) == {"total": 3}
    assert config["configurable"]["thread_id"] is None
    graph.get_state(config)
    assert config["configurable"]["thread_id"] == "None"


async def test_a_config_that_is_handed_in_stays_as_it_is():
    config = {"configurable": {"thread_id": 7}}
    seen = await forget_the_thread(configs=[config])
    assert [one.get_state for one in seen] == ["ValueError", "3", "3"]
    assert config == {"configurable": {"thread_id": 7}}


async def test_nothing_is_left_on_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    await call_again(inputs=[{}, None], threads=["new", "called once"], saver="sqlite")
    await forget_the_thread(savers=["sqlite"])
    await compare_ids(pairs=[("a", "b")], savers=["sqlite"])
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("call", "options", "says"),
    [
        (call_again, {"forms": ["double"]}, "form must be one of plain, reducer; got 'double'"),
        (call_again, {"threads": ["old"]}, "thread must be one of new, called once; got 'old'"),
        (call_again, {"saver": "none"}, "saver must be one of memory, sqlite; got 'none'"),
        (forget_the_thread, {"savers": ["redis"]}, "saver must be one of none, memory, sqlite; got 'redis'"),
        (compare_ids, {"savers": ["none"]}, "saver must be one of memory, sqlite; got 'none'"),
    ],
)
async def test_a_bad_option_is_named_with_what_is_allowed(call, options, says):
    with pytest.raises(BadOption, match=says):
        await call(**options)


# --- the exercise


@pytest.mark.parametrize("answer", answers("02"), ids=lambda one: one.title)
@pytest.mark.parametrize("seed", [1, "a student"])
def test_kept_answers_are_judged_right(answer: Answer, seed):
    cell = answer.functions()
    verdict = c02_counter.check(cell["with_reducer"], cell["next_input"], seed=seed)
    assert verdict.failed == answer.fails, str(verdict)
    assert verdict.points == 4 - len(answer.fails)


def test_there_are_enough_answers():
    kept = answers("02")
    assert sum(one.right for one in kept) >= 2
    assert sum(not one.right for one in kept) >= 4
    assert {key for one in kept for key in one.fails} == {one.key for one in c02_counter.REQUIREMENTS}
