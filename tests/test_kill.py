"""Processes that die in the middle of a run: what the thread holds, what runs again, and nothing is left."""

import asyncio
import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import dying
import psutil
import pytest
from jupyter_client.manager import start_new_kernel

from fixtures import processes
from fixtures.experiments import kill
from fixtures.experiments.deaths import TrialFailed, to_its_end, until_killed
from fixtures.experiments.kill import Case, killed, run_kills, run_once, summarise
from fixtures.experiments.kill_process import Found, Ran, Resumed, Seen, Struck
from fixtures.experiments.once import run_charges
from fixtures.experiments.options import BadOption
from fixtures.records import Kill, as_frame
from fixtures.views import charts, tables

pytestmark = pytest.mark.skipif(os.name == "nt", reason="tells POSIX signals apart")

TIME_LIMIT_S = 120
SHORT_S = 0.01
"""A pause where the outcome does not depend on it."""


@pytest.fixture(autouse=True)
def own_temp(tmp_path, monkeypatch) -> Path:
    """A temporary folder of each test's own: after the test nothing is in it, and no child is left."""
    processes.ask(os.getpid, time_limit_s=TIME_LIMIT_S)  # the fork server has a folder in the usual place
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []
    assert multiprocessing.active_children() == []
    assert below() == []


def below() -> list[psutil.Process]:
    """The processes below this one's fork server: there is none between two trials."""
    return [one for child in psutil.Process().children() for one in child.children(recursive=True)]


def happened(one: Kill) -> dict[int, int]:
    """Steps whose effect did not happen exactly once."""
    return {step: times for step, times in enumerate(one.happened, start=1) if times != 1}


# --- what the thread holds ----------------------------------------------------------------------------------


async def test_an_update_that_was_seen_under_sync_survives_kill_9_and_exit_leaves_no_thread():
    seen = await run_kills(trials=2)
    assert [(one.durability, one.trial) for one in seen] == [
        (durability, trial) for durability in ("sync", "async", "exit") for trial in (1, 2)
    ]
    assert {one.seen for one in seen} == {3}
    for one in seen[:2]:
        assert (one.saved, one.in_checkpoint, one.resumed, one.finished) == (3, 3, (4, 5, 6), True)
        assert happened(one) == {}
    for one in seen[2:4]:
        assert one.saved is None or 1 <= one.saved <= 3
        if one.saved is not None:
            assert one.resumed == tuple(range(one.saved + 1, 7))
            assert happened(one) == dict.fromkeys(range(one.saved + 1, 4), 2)
    for one in seen[4:]:
        assert (one.saved, one.in_checkpoint, one.resumed, one.finished) == (None, None, None, False)
        assert one.happened == (1, 1, 1, 0, 0, 0)
        assert one.lost == 3
    assert all(one.intact for one in seen)


async def test_sigint_lets_every_durability_save():
    seen = await run_kills(signals=["int"], trials=1)
    assert [(one.saved, one.resumed, one.intact) for one in seen] == [(3, (4, 5, 6), True)] * 3


async def test_sigterm_is_as_final_as_sigkill():
    seen = await run_kills(signals=["term"], durabilities=["sync", "exit"], trials=1, delay_s=SHORT_S)
    assert [one.saved for one in seen] == [3, None]


async def test_each_point_about_the_put_of_a_step():
    points = ["in-node", "before-put", "in-put", "after-put"]
    seen = await run_kills(points=points, durabilities=["sync", "exit"], trials=1, delay_s=SHORT_S)
    of = {(one.point, one.durability): one for one in seen}

    def held(point: str) -> tuple:
        one = of[point, "sync"]
        return one.saved, one.in_checkpoint, one.resumed, happened(one)

    assert held("in-node") == (2, 2, (3, 4, 5, 6), {3: 2})
    assert held("before-put") == (2, 2, (3, 4, 5, 6), {3: 2})
    # put_writes came first: the step is in the thread, and does not run again.
    assert held("in-put") == (3, 2, (4, 5, 6), {})
    assert held("after-put") == (3, 3, (4, 5, 6), {})
    assert [of[point, "exit"].saved for point in points] == [None, None, None, 6]
    assert of["after-put", "exit"].resumed is None
    assert of["after-put", "exit"].finished is False
    assert all(one.intact for one in seen)


async def test_the_last_update_comes_when_all_is_saved():
    seen = await run_kills(at=[6], trials=1, delay_s=SHORT_S)
    assert [(one.saved, one.resumed) for one in seen] == [(6, None)] * 3


# --- the promise --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("delay_s", "saver_delay_s"), [(0, 0), (SHORT_S, 0), (0, 0.1)])
async def test_under_sync_with_updates_alone_nothing_that_was_seen_is_lost(delay_s, saver_delay_s):
    seen = await run_kills(
        signals=["kill", "term"], durabilities=["sync"], at=range(1, 7), trials=1,
        delay_s=delay_s, saver_delay_s=saver_delay_s,
    )  # fmt: skip
    assert len(seen) == 12
    assert {one.lost for one in seen} == {0}
    assert all(one.seen == one.at and one.intact for one in seen)


@pytest.mark.parametrize("stream", ["custom+updates", "messages+updates"])
async def test_beside_custom_or_messages_a_seen_update_can_be_lost_even_under_sync(stream):
    """Forced: the saver is slower than the death. The same saver with updates alone loses nothing (above)."""
    (seen,) = await run_kills(
        durabilities=["sync"], trials=1, stream=stream, delay_s=SHORT_S, saver_delay_s=5
    )
    assert (seen.seen, seen.saved, seen.lost) == (3, 2, 1)
    assert (seen.resumed, happened(seen)) == ((3, 4, 5, 6), {3: 2})


# --- exactly once -------------------------------------------------------------------------------------------


async def test_sync_is_not_exactly_once_for_a_step_a_sibling_and_a_task():
    done = []
    charges = await run_charges(on_done=done.append)
    assert [(one.work, one.written) for one in charges] == [
        (work, written) for work in ("step", "parallel sibling", "@task") for written in (True, False)
    ]
    assert [one.charges for one in charges] == [1, 2] * 3
    assert [one.writes > 0 for one in charges] == [True, False] * 3
    assert {(one.before, one.in_checkpoint, one.finished, one.intact) for one in charges} == {
        (1, False, True, True)
    }
    assert sorted(map(repr, done)) == sorted(map(repr, charges))
    frame = tables.charges(charges)
    assert frame.loc["@task", "done"].to_list() == ["not done", "1, then 1"]
    assert frame.loc["@task", "not done"].to_list() == ["not done", "1, then 2"]


async def test_an_unknown_work_is_named():
    with pytest.raises(BadOption, match="work must be one of step, parallel sibling, @task; got 'prayer'"):
        await run_charges(works=["prayer"])


# --- trials that fail ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (
            dying.survive,
            r"trial 1: the signal should have ended the process with exit code -15; it ended with 0",
        ),
        (dying.miss_its_point, r"trial 1: the process ended with exit code 0 before it came to its point"),
        (dying.break_down, r"trial 1: the child process failed: ValueError: broken on purpose"),
        (dying.vanish, r"trial 1: the process ended with exit code 7 before it came to its point"),
    ],
)
async def test_a_child_that_the_signal_did_not_end_fails_its_trial(function, says):
    with pytest.raises(TrialFailed, match=says):
        await until_killed("trial 1", "term", function)


async def test_a_child_that_is_deaf_to_its_signal_is_killed_and_fails_its_trial():
    told = []
    with pytest.raises(TrialFailed, match=r"trial 1: the child process was still there after 3 s"):
        await until_killed("trial 1", "term", dying.fall_deaf, time_limit_s=3, on_message=told.append)
    assert Struck() in told
    assert not psutil.pid_exists(told[0])


async def test_a_second_process_that_fails_fails_the_trial():
    with pytest.raises(
        TrialFailed, match="trial 1: the second process ended in the middle, with exit code 7"
    ):
        await to_its_end("trial 1", dying.vanish)


async def test_one_failed_trial_ends_the_others(monkeypatch):
    real = kill.run_once

    async def fails_once(case, *, trial):
        if trial == 2:
            raise TrialFailed("the second trial failed")
        return await real(case, trial=trial)

    monkeypatch.setattr(kill, "run_once", fails_once)
    with pytest.raises(TrialFailed, match="the second trial failed"):
        await run_kills(durabilities=["sync"], trials=4, delay_s=5)


# --- in a lab -----------------------------------------------------------------------------------------------


async def test_what_happens_is_told_as_it_happens():
    told = []
    async with killed(
        Case(durability="sync", at=2, steps=3, delay_s=SHORT_S), on_message=told.append
    ) as dead:
        assert told == [Seen(1), Seen(2), Struck()]
        assert dead.seen == 2
        assert dead.database.exists()
        assert dead.effects.in_order() == ["step 1", "step 2"]
        told.clear()
        seen = await dead.resume(on_message=told.append)
    assert told == [
        Found(saved=2, in_checkpoint=2, scheduled=True, intact=True),
        Ran(3),
        Resumed(finished=True, intact=True),
    ]
    assert seen.resumed == (3,)
    assert not dead.database.exists()


async def test_records_come_as_trials_end():
    done = []
    seen = await run_kills(durabilities=["exit", "sync"], trials=2, delay_s=0, on_done=done.append)
    assert [one.durability for one in seen] == ["exit", "exit", "sync", "sync"]
    assert sorted(map(repr, done)) == sorted(map(repr, seen))


@pytest.mark.parametrize("after_s", [0.0, 0.02, 0.1, 0.4])
async def test_nothing_is_left_after_a_cancel(after_s):
    await run_once(Case(delay_s=0))
    task = asyncio.create_task(run_kills(trials=3, delay_s=0.2))
    await asyncio.sleep(after_s)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_trials_wait_side_by_side():
    """The children's pauses alone are 8 × 3 × 0.5 s = 12 s: one after the other they can't take less."""
    await run_once(Case(delay_s=0))
    start = time.monotonic()
    await run_kills(durabilities=["sync"], trials=8, delay_s=0.5)
    assert time.monotonic() - start < 12


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"signals": ["hup"]}, "signal must be one of kill, term, int; got 'hup'"),
        ({"points": ["later"]}, "point must be one of seen, in-node, before-put, in-put, after-put"),
        ({"durabilities": ["default"]}, "durability must be one of sync, async, exit; got 'default'"),
        ({"stream": "values"}, r"stream must be one of updates, custom\+updates, messages\+updates"),
        ({"at": [0]}, "at must be from 1 to the 6 steps of a run; got 0"),
        ({"at": [7]}, "at must be from 1 to the 6 steps of a run; got 7"),
        ({"steps": 0}, "steps must be from 1 to 100; got 0"),
        ({"trials": 0}, "trials must be from 1 to 1000; got 0"),
        ({"delay_s": -1}, "delay_s must be from 0 to 10 seconds; got -1"),
        ({"delay_s": float("nan")}, "delay_s must be from 0 to 10 seconds; got nan"),
        ({"saver_delay_s": 11}, "saver_delay_s must be from 0 to 10 seconds; got 11"),
        ({"at_once": 0}, "at_once must be 1 or more; got 0"),
    ],
)
async def test_a_bad_option_is_named_with_what_is_allowed(options, says):
    with pytest.raises(BadOption, match=says):
        await run_kills(**options)


# --- where it runs ------------------------------------------------------------------------------------------


def test_a_script_that_ignores_sigint_and_has_no_main_guard(tmp_path):
    """An idle kernel ignores SIGINT, and so does all that it starts; a script is not run anew in a child."""
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent("""
            import asyncio, signal
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            from fixtures.experiments.kill import run_kills
            print([one.saved for one in asyncio.run(run_kills(signals=["int"], trials=1))])
        """)
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=TIME_LIMIT_S)
    assert (done.stdout, done.stderr) == ("[3, 3, 3]\n", "")


def until_they_run(folder: Path, *, processes: int = 1) -> None:
    """Wait until so many processes have opened their databases."""
    until = time.monotonic() + TIME_LIMIT_S
    while (opened := len(list(folder.glob("fixtures-*/thread.sqlite")))) < processes:
        assert time.monotonic() < until, f"{opened} processes have opened a database, not {processes}"
        time.sleep(0.05)


def test_a_button_in_an_idle_kernel_a_cell_and_the_stop_button(own_temp):
    """The cell has ended when the button's task starts its processes: the kernel is idle, ignoring SIGINT."""
    code = """
        import asyncio, multiprocessing, signal, tempfile
        from fixtures.experiments.kill import run_kills
        seen = []

        async def press():
            while signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
                await asyncio.sleep(0.01)
            kills = await run_kills(signals=["kill", "int"], durabilities=["sync"], trials=1)
            seen.append([one.saved for one in kills])

        pressed = asyncio.get_running_loop().create_task(press())
    """
    manager, client = start_new_kernel(kernel_name="python3", startup_timeout=TIME_LIMIT_S)

    def run(source: str, **expressions: str) -> dict:
        reply = client.execute_interactive(
            textwrap.dedent(source),
            user_expressions=expressions,
            timeout=TIME_LIMIT_S,
            output_hook=lambda message: printed.append(message["content"]),
        )["content"]
        assert reply["status"] == "ok", reply
        return {name: value["data"]["text/plain"] for name, value in reply["user_expressions"].items()}

    printed: list[dict] = []
    try:
        run(code)
        until = time.monotonic() + TIME_LIMIT_S
        button = "[]"
        while button == "[]" and time.monotonic() < until:
            time.sleep(1)  # the kernel is idle meanwhile
            button = run("", seen="seen")["seen"]
        cell = run(
            'kills = await run_kills(signals=["int"], trials=1)', saved="[one.saved for one in kills]"
        )["saved"]
        client.execute(f"tempfile.tempdir = {str(own_temp)!r}; await run_kills(delay_s=5)")
        until_they_run(own_temp)
        manager.interrupt_kernel()
        stopped = client.get_shell_msg(timeout=TIME_LIMIT_S)["content"]
        left = run("", left="multiprocessing.active_children()")["left"]
        assert list(own_temp.glob("fixtures-*")) == []
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    assert button == "[[3, 3]]"
    assert cell == "[3, 3, 3]"
    assert (stopped["status"], left) == ("error", "[]")
    assert stopped["ename"] in ("CancelledError", "KeyboardInterrupt")
    assert [one for one in printed if one.get("name") == "stderr"] == []


def test_ctrl_c_and_kill_9_end_a_command_with_all_its_processes():
    # In the usual place: a fork server's socket can't have a path of more than about 100 characters.
    folders = [Path(tempfile.mkdtemp(dir=os.environ.get("TMPDIR"))) for _ in range(2)]
    commands, families = [], []
    for folder in folders:
        commands.append(
            subprocess.Popen(
                [sys.executable, "-m", "fixtures", "kills", "--delay", "10", "--at", "5", "--trials", "2"],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
                env={**os.environ, "TMPDIR": str(folder)},
            )
        )  # fmt: skip
    for folder, command in zip(folders, commands, strict=True):
        # All: one that is killed while it is started has the fork server print a traceback.
        until_they_run(folder, processes=6)
        families += psutil.Process(command.pid).children(recursive=True)
    stopped, killed_hard = commands
    os.killpg(stopped.pid, signal.SIGINT)  # as a terminal does it: to all of them
    killed_hard.kill()
    out, err = stopped.communicate(timeout=TIME_LIMIT_S)
    assert (out, err, stopped.returncode) == ("", "python -m fixtures kills: stopped\n", 130)
    assert len(families) > 4  # for each the fork server, multiprocessing's tracker, and the trials' own
    _, alive = psutil.wait_procs(families, timeout=6)  # by itself a process would end after 50 s
    assert alive == []
    assert killed_hard.communicate(timeout=TIME_LIMIT_S) == ("", "")  # which its processes hold open
    assert list(folders[0].iterdir()) == []
    for folder in folders:  # nobody is left who could remove the second one's files
        shutil.rmtree(folder)


# --- what is shown ------------------------------------------------------------------------------------------


def a_kill(**changes) -> Kill:
    given = {
        "durability": "async", "signal": "kill", "point": "seen", "at": 3, "trial": 1, "saved": 2,
        "resumed": (3, 4, 5, 6), "intact": True, "stream": "updates", "steps": 6, "seen": 3,
        "in_checkpoint": 2, "happened": (1, 1, 2, 1, 1, 1), "finished": True,
    }  # fmt: skip
    return Kill(**{**given, **changes})


def test_a_summary_counts_what_was_seen():
    kills = [a_kill(saved=saved) for saved in (2, 2, None, 3)] + [a_kill(durability="sync", saved=3)]
    async_, sync = summarise(kills)
    assert (async_.durability, async_.trials) == ("async", 4)
    assert (async_.fewest, async_.median, async_.most, async_.most_lost) == (0, 2, 3, 3)
    assert async_.outcomes == ((None, 1), (2, 2), (3, 1))
    assert (sync.fewest, sync.median, sync.most, sync.most_lost, sync.outcomes) == (3, 3, 3, 0, ((3, 1),))


def test_a_table_has_fewest_median_most_and_how_often_each_was_seen():
    frame = tables.recovered(summarise([a_kill(saved=saved) for saved in (3, None, 2, 2)]))
    assert frame.loc["SIGKILL", "async", 3].to_list() == [
        0, 2, 3, "no thread in 1 of 4, 2 in 2 of 4, 3 in 1 of 4"
    ]  # fmt: skip
    assert as_frame([a_kill(), a_kill(saved=None)])["saved"].to_list()[0] == 2


def test_a_heatmap_has_its_numbers_and_states_the_finding():
    kills = [
        a_kill(durability="sync", at=at, seen=at, saved=at) for at in (1, 2)
    ] + [a_kill(at=at, seen=at, saved=saved) for at, saved in ((1, 0), (2, 1), (2, 2))] + [
        a_kill(durability="exit", at=at, seen=at, saved=None) for at in (1, 2)
    ] + [
        a_kill(signal="int", durability=durability, at=2, seen=2, saved=2)
        for durability in ("sync", "async", "exit")
    ]  # fmt: skip
    chart = charts.heatmap(summarise(kills))
    assert chart.png.startswith(b"\x89PNG")
    assert chart.alt == (
        "After SIGKILL, sync lost no step that had been seen; async lost at most 1 of the steps that had "
        "been seen; exit left no thread after step 1 or 2. After SIGINT, sync, async and exit lost no step "
        "that had been seen."
    )
    assert len(chart.table) == 9
    assert "1 in 1 of 2, 2 in 1 of 2" in chart.table.to_string()


def test_records_are_plain_json():
    assert json.loads(json.dumps(a_kill().resumed)) == [3, 4, 5, 6]
