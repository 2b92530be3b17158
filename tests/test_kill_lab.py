"""The Kill lab's model: each moment told truthfully, each press answered, and nothing left behind."""

import asyncio
import errno
import shutil
import sqlite3
import tempfile
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest
from panels import until
from test_kill import below, own_temp  # noqa: F401 (a temporary folder of each test's own, empty at its end)

from fixtures.experiments.kill import DURABILITIES, POINTS, Case, TrialFailed
from fixtures.labs import kill
from fixtures.labs.kill import OnDisk, Session, look
from fixtures.threads import FileProblem

SHORT_S = 0.02
"""A pace where the outcome does not depend on it."""


def case(**options) -> Case:
    return Case(**{"delay_s": SHORT_S} | options)


@asynccontextmanager
async def opened(**options):
    session = Session(**options)
    try:
        yield session
    finally:
        session.close()
        await session.settled()


async def done(lab: Session, *presses) -> list[str]:
    """Press, one after the other, each when the one before is over; return what was said."""
    said = []
    for press in presses:
        press()
        await lab.settled()
        said.append(lab.sentence)
    return said


# What a death leaves


@pytest.mark.parametrize("durability", DURABILITIES)
async def test_the_lab_reads_from_disk_what_the_second_process_then_finds(durability):
    async with opened() as lab:
        for point in POINTS:
            await done(lab, lambda point=point: lab.kill(case(durability=durability, point=point)))
            disk, before = lab.on_disk, lab.happened
            assert (lab.stage, lab.found, lab.ran, lab.again) == ("dead", None, (), ())
            await done(lab, lab.second)
            assert (lab.stage, lab.path) == ("over", None)
            one = lab.kills[-1]
            assert (one.point, one.seen, one.happened) == (point, lab.seen, lab.happened)
            assert disk.exists == (one.saved is not None)
            assert (disk.saved, disk.in_checkpoint) == (one.saved or 0, one.in_checkpoint or 0)
            assert (lab.ran, lab.before) == (one.resumed or (), before)
            again = tuple(step for step in lab.ran if before[step - 1])
            assert lab.again == again == tuple(s for s, n in enumerate(lab.happened, 1) if n == 2)


TOLD = {
    ("sync", "seen"): (
        "SIGKILL ended the process when its consumer had seen step 3; the thread on disk holds 3.",
        "The second process found 3 steps and ran steps 4, 5 and 6. "
        "No step ran twice: the outside world counted each of them once.",
    ),
    ("sync", "in-node"): (
        "SIGKILL ended the process in the node of step 3, after the effect of that step. "
        "Its consumer had seen 2 steps; the thread on disk holds 2.",
        "The second process found 2 steps and ran steps 3, 4, 5 and 6. "
        "Step 3 ran again: the outside world counted it twice.",
    ),
    ("sync", "in-put"): (
        "SIGKILL ended the process in the put of the checkpoint with step 3, before the commit. "
        "Its consumer had seen 2 steps; the thread on disk holds 3, 1 of them in pending writes.",
        "The second process found 3 steps and ran steps 4, 5 and 6. "
        "No step ran twice: the outside world counted each of them once.",
    ),
    ("exit", "seen"): (
        "SIGKILL ended the process when its consumer had seen step 3; there is no thread on disk.",
        "The second process found no thread and had nothing to resume. "
        "The answer is gone, but outside 3 steps have happened.",
    ),
    ("exit", "after-put"): (
        "SIGKILL ended the process after the put of the checkpoint with step 3. "
        "Its consumer had seen 5 steps; the thread on disk holds 6.",
        "The second process found 6 steps and nothing to resume.",
    ),
}


@pytest.mark.parametrize(("durability", "point"), TOLD)
async def test_a_death_and_a_resume_in_words(durability, point):
    async with opened() as lab:
        said = await done(lab, lambda: lab.kill(case(durability=durability, point=point)), lab.second)
        assert said == list(TOLD[durability, point])


async def test_a_seen_step_that_is_lost_in_words():
    """Forced: the saver is slower than the death, and the consumer reads custom beside updates."""
    async with opened() as lab:
        slow = case(stream="custom+updates", saver_delay_s=5)
        said = await done(lab, lambda: lab.kill(slow), lab.second)
        assert said == [
            "SIGKILL ended the process when its consumer had seen step 3; the thread on disk holds 2. "
            "1 of the steps that it had seen is lost.",
            "The second process found 2 steps and ran steps 3, 4, 5 and 6. "
            "Step 3 ran again: the outside world counted it twice.",
        ]


async def test_the_steps_come_one_by_one_and_the_disk_is_read_when_the_process_is_dead():
    seen = []
    async with opened(on_change=lambda: seen.append((lab.stage, lab.seen, lab.ran, lab.on_disk))) as lab:
        await done(lab, lambda: lab.kill(case(delay_s=0.1)), lab.second)
    running = [steps for stage, steps, *_ in seen if stage == "running"]
    assert list(dict.fromkeys(running)) == [0, 1, 2, 3]
    assert {disk for stage, _, _, disk in seen if stage == "running"} == {None}
    resuming = [ran for stage, _, ran, _ in seen if stage == "resuming"]
    assert list(dict.fromkeys(resuming)) == [(), (4,), (4, 5), (4, 5, 6)]


# Many trials


async def test_twenty_more_are_summed_up_with_those_before():
    bar = set()
    async with opened(on_change=lambda: bar.add((lab.done, lab.of))) as lab:
        with pytest.raises(ValueError, match="no trial to show yet: press Kill and Start the second process"):
            lab.results()
        await done(lab, lambda: lab.kill(case()), lab.second)
        assert bar == {(0, 0)}
        said = await done(lab, lambda: lab.more(case()), lambda: lab.more(case(durability="exit")))
        assert said == [
            "20 trials are over, 21 in all. On disk there was: 3 steps in 21 of 21. "
            "No step that the consumer had seen was lost.",
            "20 trials are over, 20 in all. On disk there was: no thread in 20 of 20. "
            "At most 3 steps that the consumer had seen are lost.",
        ]
        assert bar == {(0, 0), *((one, 20) for one in range(21))}
        assert [one.trial for one in lab.kills] == [*range(1, 22), *range(1, 21)]
        assert all(one.intact for one in lab.kills)
        assert lab.results().reset_index().to_dict("split")["data"] == [
            ["seen", "updates", "sync", 3, 3, 3, 3, "3 in 21 of 21"],
            ["seen", "updates", "exit", 3, 0, 0, 0, "no thread in 20 of 20"],
        ]
        assert len(lab.trials()) == 41
        assert lab.stage == "over", "the one that was looked at is still there"


async def test_under_async_twenty_more_say_the_bounds_that_were_seen():
    async with opened() as lab:
        (said,) = await done(lab, lambda: lab.more(case(durability="async", delay_s=0.06)))
        (one,) = lab.summaries
        held = [row.saved or 0 for row in lab.kills]
        assert (one.fewest, one.most, one.trials) == (min(held), max(held), 20)
        assert one.most <= 3
        assert sum(count for _, count in one.outcomes) == 20
        lost = 3 - one.fewest
        assert (f"At most {lost} step" if lost else "No step that") in said


# Presses at every moment


async def test_the_second_process_before_any_death_and_twice():
    async with opened() as lab:
        assert await done(lab, lab.second) == ["No process has died yet: press Kill first."]
        said = await done(lab, lambda: lab.kill(case()), lab.second, lab.second)
        assert said[-1] == "The second process has been here already: press Kill for another death."
        assert len(lab.kills) == 1


async def test_no_press_disturbs_what_is_on_its_way():
    async with opened() as lab:
        presses = (lambda: lab.kill(case()), lab.second, lambda: lab.more(case()))
        for first, doing in zip(
            (lambda: lab.kill(case()), lab.second, lambda: lab.more(case(at=1))),
            ("the process that is to die", "the second process", "20 trials, side by side"),
            strict=True,
        ):
            first()
            for press in presses * 2:
                press()
                assert lab.sentence == f"Still on its way: {doing}. Press again when that is over."
                await asyncio.sleep(0)
            await lab.settled()
            assert "Still" not in lab.sentence
        assert len(lab.kills) == 21


async def test_files_stay_until_the_second_process_has_been_there_or_somebody_else_has_died(own_temp):  # noqa: F811
    async with opened() as lab:
        for press in (lab.second, lambda: lab.kill(case())):
            await done(lab, lambda: lab.kill(case()))
            first = lab.path
            assert first.exists()
            await done(lab, press)
            assert not first.parent.exists()
        await done(lab, lab.second)
        assert (lab.path, list(own_temp.iterdir())) == (None, [])
        await done(lab, lambda: lab.kill(case(at=1)))
        assert (lab.found, lab.ran, lab.happened) == (None, (), (1, 0, 0, 0, 0, 0))
        await done(lab, lambda: lab.more(case(at=2)))
        assert lab.path.exists()


async def test_cancelling_the_one_who_waits_cancels_nothing():
    async with opened() as lab:
        lab.kill(case(delay_s=0.1))
        waits = asyncio.create_task(lab.settled())
        await until(lambda: lab.seen == 1)
        waits.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waits
        await lab.settled()
        assert lab.stage == "dead"


@pytest.mark.parametrize("doing", ["kill", "second", "more", "nothing"])
async def test_closing_ends_the_processes_and_removes_the_files(doing, own_temp):  # noqa: F811
    async with opened() as lab:
        if doing != "more":
            await done(lab, lambda: lab.kill(case()))
        if doing == "kill":
            lab.kill(case(delay_s=5))
            await until(below)
        elif doing == "second":
            lab.second()
            await until(lambda: below() or not lab.busy)
        elif doing == "more":
            lab.more(case(delay_s=5))
            await until(lambda: len(below()) > 1)
        lab.close()
        lab.close()
        await lab.settled()
        assert below() == []
        assert list(own_temp.iterdir()) == []
        if doing in ("kill", "more"):
            assert (lab.on_disk, lab.kills, lab.seen) == (None, (), 0), "nobody waited for the steps of 5 s"
        said = lab.sentence
        await done(lab, lambda: lab.kill(case()), lab.second, lambda: lab.more(case()))
        assert lab.sentence == said


# What goes wrong


@pytest.mark.parametrize("locking", ["NORMAL", "EXCLUSIVE"])
async def test_a_locked_database_is_a_sentence_and_a_second_process_comes_again(locking):
    """With NORMAL others may read, so that the second process runs a step before it is held up."""
    async with opened() as lab:
        await done(lab, lambda: lab.kill(case(at=5)))
        with closing(sqlite3.connect(lab.path, isolation_level=None)) as other:
            other.execute(f"PRAGMA locking_mode = {locking}")
            other.execute("BEGIN EXCLUSIVE")
            said = await done(lab, lab.second)
            assert said == ["Another program has locked the database: end its transaction, then press again."]
            assert (lab.stage, lab.kills) == ("dead", ())
        ran = lab.ran
        assert ran == ((6,) if locking == "NORMAL" else ())
        await done(lab, lab.second)
        assert lab.stage == "over"
        if ran:
            assert lab.sentence == (
                "The second process found 5 steps and ran step 6. "
                "Step 6 ran again: the outside world counted it twice."
            )
        assert len(lab.kills) == (0 if ran else 1), "a thread that was touched between is no trial"


async def test_files_that_somebody_removed_are_a_sentence():
    async with opened() as lab:
        await done(lab, lambda: lab.kill(case()))
        shutil.rmtree(lab.path.parent)
        (said,) = await done(lab, lab.second)
        assert said == "The files of the process are gone: press Kill for another death."
        (said,) = await done(lab, lambda: lab.kill(case()))
        assert said.startswith("SIGKILL ended the process")


async def test_no_temporary_folder_is_a_sentence(monkeypatch, own_temp):  # noqa: F811
    async with opened() as lab:
        monkeypatch.setattr(tempfile, "tempdir", str(own_temp / "nowhere"))
        for press in (lambda: lab.kill(case()), lambda: lab.more(case())):
            (said,) = await done(lab, press)
            assert said.startswith("The lab could not go on, FileNotFoundError: ")
            assert (lab.done, lab.of, lab.kills) == (0, 0, ())
        assert await done(lab, lab.second) == ["No process has died yet: press Kill first."]
        monkeypatch.setattr(tempfile, "tempdir", str(own_temp))
        await done(lab, lambda: lab.kill(case()), lab.second)
        assert len(lab.kills) == 1


FULL = "There is no room in the temporary folder: make room there, then press again."


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), FULL),
        (TrialFailed("trial 1: the child process failed: OperationalError: database or disk is full"), FULL),
        (TrialFailed("trial 1: OSError: [Errno 28] No space left on device: 'effects.txt'"), FULL),
        (
            TrialFailed("trial 1: the signal should have ended the process; it ended with 0"),
            "The trial failed: trial 1: the signal should have ended the process; it ended with 0. "
            "Press again for another one.",
        ),
        (FileProblem("'a' is damaged; use a whole copy of it"), "'a' is damaged; use a whole copy of it."),
    ],
)
async def test_each_problem_says_what_to_do(monkeypatch, error, says):
    @asynccontextmanager
    async def fails(*_, **__):
        raise error
        yield

    monkeypatch.setattr(kill, "killed", fails)
    async with opened() as lab:
        assert await done(lab, lambda: lab.kill(case())) == [says]
        assert lab.stage == "failed"
        assert not lab.busy


async def test_a_disk_that_cannot_be_read_still_lets_the_second_process_look(monkeypatch):
    def fails(_: Path) -> OnDisk:
        raise FileProblem("'thread.sqlite' could not be copied; make room there")

    monkeypatch.setattr(kill, "look", fails)
    async with opened() as lab:
        said = await done(lab, lambda: lab.kill(case()), lab.second)
        assert said[0] == "'thread.sqlite' could not be copied; make room there."
        assert said[1].startswith("The second process found 3 steps")
        assert len(lab.kills) == 1


async def test_trials_that_fail_keep_those_that_were_over(monkeypatch):
    real = kill.run_kills

    async def fails_later(**options):
        await real(**options | {"trials": 2})
        raise TrialFailed("the third one failed")

    monkeypatch.setattr(kill, "run_kills", fails_later)
    async with opened() as lab:
        (said,) = await done(lab, lambda: lab.more(case()))
        assert said == "The trial failed: the third one failed. Press again for another one."
        assert (len(lab.kills), lab.done, lab.of) == (2, 0, 0)


def test_a_look_at_a_file_that_is_none_says_so(tmp_path):
    with pytest.raises(FileProblem, match="there is no file"):
        look(tmp_path / "thread.sqlite")
