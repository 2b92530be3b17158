"""Exercise 09: what each durability does, as the check measures it, and what it makes of answers."""

import asyncio
import multiprocessing
import random

import pytest
from answer_cells import Answer, answers, run_cell

from fixtures.checks import c09_durability
from fixtures.checks.c09_durability import DURABILITIES, SIGNALS, STEPS, Need
from fixtures.graphs import chunks as graphs

PLANS = [c09_durability.draw(random.Random(seed)) for seed in range(50)]


@pytest.mark.parametrize("answer", answers("09"), ids=lambda one: one.title)
def test_kept_answers_are_judged_right(answer: Answer):
    verdict = c09_durability.check(answer.functions()["choose"], seed="a student")
    assert set(verdict.failed) == set(answer.fails), str(verdict)


@pytest.mark.parametrize("seed", [2, "another student"])
@pytest.mark.parametrize(
    "title", ["rules, from what is asked for most to what is left", "sync for exactly once"]
)
def test_other_seeds_say_the_same(title: str, seed: int | str):
    answer = next(one for one in answers("09") if one.title == title)
    verdict = c09_durability.check(answer.functions()["choose"], seed=seed)
    assert set(verdict.failed) == set(answer.fails), str(verdict)


def test_the_answers_are_enough_and_fail_each_requirement():
    kept = answers("09")
    assert sum(one.right for one in kept) >= 2
    assert sum(not one.right for one in kept) >= 4
    assert {key for one in kept for key in one.fails} == {one.key for one in c09_durability.REQUIREMENTS}


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="spawned children are slow")
def test_what_is_measured_is_what_chapter_09_shows(tmp_path, monkeypatch):
    monkeypatch.setattr(c09_durability, "_SEEN", {})
    measured = c09_durability._Measured(tmp_path)
    for durability in DURABILITIES:
        assert measured.ms_per_step(durability) == (c09_durability.PUT_MS if durability == "sync" else 0)
        assert measured.checkpoints(durability) == (1 if durability == "exit" else STEPS + 2)
        assert measured.lost(durability, "int") == 0
        for signal in SIGNALS:
            # The process ends after the effect: whichever durability it is, the step runs again.
            assert measured.most_effects(durability, signal) == 2
    for signal in ("kill", "term"):
        assert measured.lost("sync", signal) == 0
        assert 1 <= measured.lost("async", signal) <= 2
        assert measured.lost("exit", signal) == STEPS - 1
    assert multiprocessing.active_children() == []


def test_each_need_has_an_answer_and_every_choice_is_needed_somewhere():
    """By the rules of the chapter: the drawn needs tell the four choices apart, and leave none out."""

    def does(need: Need, durability: str) -> bool:
        lost = {"sync": 0, "async": 2, "exit": STEPS}[durability] if need.signal != "int" else 0
        return (
            lost <= need.max_lost
            and (50 if durability == "sync" else 0) <= need.max_ms_per_step
            and (1 if durability == "exit" else STEPS + 2) <= need.max_checkpoints
            and not need.exactly_once
        )

    for plan in PLANS:
        needs = [Need(**one) for some in plan["needs"].values() for one in some]
        fits = [{one for one in DURABILITIES if does(need, one)} for need in needs]
        for only in ({"sync"}, {"async"}, {"exit"}, set()):
            assert only in fits
        assert {one.signal for one in needs} == set(SIGNALS)
        # What a slow machine could change is never asked for.
        assert not {one.max_lost for one in needs} & {1, 2, STEPS - 1}
    assert len({str(plan) for plan in PLANS}) == 50


def test_a_need_is_read_by_name_and_by_key():
    need = Need(**PLANS[0]["needs"]["kill"][0])
    assert {name: need[name] for name in need.keys()} == dict(need) == vars(need)  # noqa: SIM118
    with pytest.raises(KeyError, match="min_lost"):
        need["min_lost"]


def test_another_word_and_an_error_are_told():
    cell = run_cell(
        "def shouts(need):\n    return 'SYNC'\n"
        "def lists(need):\n    return ['sync']\n"
        "def raises(need):\n    raise KeyError(need.signal)\n"
    )
    for name, said in (
        ("shouts", "choose returned 'SYNC' for this need"),
        ("lists", "choose returned ['sync'] for this need"),
        ("raises", "KeyError: 'kill'"),
    ):
        line = next(one for one in c09_durability.check(cell[name], seed=1).lines if one.key == "kill")
        assert said in line.why


def test_a_run_of_the_slow_saver_does_not_depend_on_time(monkeypatch):
    """A step that needs many turns to begin is still seen to begin during the put."""

    async def late(delay_s):
        for _ in range(20):
            await asyncio.sleep(0)

    monkeypatch.setattr(graphs, "pause", late)
    assert c09_durability._with_slow_saver("async") == (False, STEPS + 2)
    assert c09_durability._with_slow_saver("sync") == (True, STEPS + 2)
