"""Exercise 08: what is shown, what is saved, and what the check makes of it."""

import os
import random

import psutil
import pytest
from answer_cells import Answer, answers, run_cell

from fixtures.checks import c08_batches
from fixtures.checks.judge import judge


@pytest.mark.parametrize("answer", answers("08"), ids=lambda one: one.title)
def test_kept_answers_are_judged_right(answer: Answer):
    verdict = c08_batches.check(answer.functions()["build"], seed="a student")
    assert set(verdict.failed) == set(answer.fails), str(verdict)


@pytest.mark.parametrize("seed", [2, "another student"])
@pytest.mark.parametrize(
    "title", ["a batch node that loops, with an async router", "a router that is an ordinary function"]
)
def test_other_seeds_say_the_same(title: str, seed: int | str):
    answer = next(one for one in answers("08") if one.title == title)
    verdict = c08_batches.check(answer.functions()["build"], seed=seed)
    assert set(verdict.failed) == set(answer.fails), str(verdict)


def test_the_answers_are_enough_and_fail_each_requirement():
    kept = answers("08")
    assert sum(one.right for one in kept) >= 2
    assert sum(not one.right for one in kept) >= 4
    assert {key for one in kept for key in one.fails} == {one.key for one in c08_batches.REQUIREMENTS}


def test_a_plan_has_full_batches_and_one_that_is_not():
    plans = [c08_batches.draw(random.Random(seed)) for seed in range(50)]
    for plan in plans:
        count, k = plan["count"], plan["k"]
        assert count == len(plan["chunks"]) == len(set(plan["chunks"]))
        assert count > 2 * k
        assert count % k
        assert plan["limit"] == 5
        assert all(1 <= size <= count for size, _ in plan["sizes"])
        assert len({(size % step == 0, size > step, step == 1) for size, step in plan["sizes"]}) == 4
    assert len({str(plan) for plan in plans}) == 50


@pytest.mark.parametrize(
    ("values", "count"),
    [
        ({}, 0),
        ({"text": ""}, 0),
        ({"text": "a b"}, 2),
        ({"shown": ["a", " b", " c"]}, 3),
        ({"shown": [["a", " b"], [" c"]], "number": 7}, 3),
        ({"shown": ("a",), "status": "running"}, 1),
        # A gap, a chunk that came twice, half a chunk, the end only.
        ({"shown": ["a", " c"]}, 0),
        ({"shown": ["a", "a", " b"]}, 0),
        ({"text": "a "}, 0),
        ({"shown": [" b", " c"]}, 0),
        ({"position": 3}, 0),
        ({"shown": ["a", None]}, 0),
    ],
)
def test_only_a_beginning_without_a_gap_counts_as_kept(values, count):
    assert c08_batches.kept(values, ["a", " b", " c"]) == count


def test_an_error_and_an_end_in_the_process_that_is_killed_are_told():
    cell = run_cell(
        "from langgraph.graph import START, StateGraph\n"
        "class Cold(Exception):\n    pass\n"
        "def raises(chunks, k, emit):\n"
        "    async def node(state):\n        raise Cold('too cold')\n"
        "    return StateGraph(dict).add_node('node', node).add_edge(START, 'node')\n"
        "def shows_nothing(chunks, k, emit):\n"
        "    async def node(state):\n        return {}\n"
        "    return StateGraph(dict).add_node('node', node).add_edge(START, 'node')\n"
        "def returns(chunks, k, emit):\n    return 5\n"
    )
    for name, said in (
        ("raises", "Cold: too cold"),
        ("shows_nothing", "the run ended before it had shown chunk 1"),
        ("returns", "build returned int, not a StateGraph"),
    ):
        why = {line.key: line.why for line in c08_batches.check(cell[name], seed=1).lines}
        assert said in why["killed"]
        assert said in why["cancelled"]


@pytest.mark.skipif(os.name == "nt", reason="tells a process by its session")
def test_a_process_that_does_not_die_is_ended_with_the_verdict(tmp_path):
    """It hangs only in the process that is to be killed, which is not the first of its session."""
    right = next(one for one in answers("08") if one.right)
    note = tmp_path / "pid.txt"
    hanging = right.source.replace(
        "        start = len(state",
        "        import os, time\n"
        "        if os.getsid(0) != os.getpid():\n"
        f"            open({str(note)!r}, 'w').write(str(os.getpid()))\n"
        "            time.sleep(1000)\n"
        "        start = len(state",
    )
    assert hanging != right.source
    verdict = judge(c08_batches.__name__, {"build": run_cell(hanging)["build"]}, seed=1, limit_s=8)
    why = {line.key: line.why for line in verdict.lines}
    assert verdict.failed == ("killed", "goes-on", "goes-on-behind")
    assert why["killed"] == "still running after 8 s, and ended"
    assert not psutil.pid_exists(int(note.read_text()))
