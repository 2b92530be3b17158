"""The command line: a table for people, JSON for programs, one line for a wrong option."""

import json
import os
import subprocess
import sys

import pytest

from fixtures.__main__ import main

KEYS = [
    "shape", "ending", "durability", "visible", "saved",
    "in_checkpoint", "lost", "consistent", "checkpoints", "writes",
]  # fmt: skip


def test_json_is_one_array_in_the_pinned_order(capsys):
    assert main(["matrix", "--json"]) == 0
    printed = capsys.readouterr()
    runs = json.loads(printed.out)
    assert [list(run) for run in runs] == [KEYS] * 16
    assert [(run["shape"], run["ending"], run["durability"]) for run in runs] == [
        (shape, ending, durability)
        for shape in ("long_node", "stepwise")
        for ending in ("complete", "cancel")
        for durability in ("default", "sync", "async", "exit")
    ]
    assert printed.err == ""


def test_a_table_for_people(capsys):
    assert main(["matrix", "--shape", "stepwise", "--delay", "0.01"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == KEYS
    assert len(lines) == 9


def test_memory_has_null_counts(capsys):
    assert main(["matrix", "--saver", "memory", "--delay", "0.01", "--json"]) == 0
    runs = json.loads(capsys.readouterr().out)
    assert {(run["checkpoints"], run["writes"]) for run in runs} == {(None, None)}
    assert main(["matrix", "--saver", "memory", "--delay", "0.01", "--shape", "stepwise"]) == 0
    rows = capsys.readouterr().out.splitlines()[1:]
    assert {tuple(row.split()[-2:]) for row in rows} == {("-", "-")}


@pytest.mark.skipif(os.name != "posix", reason="a shell's pipe")
def test_a_reader_that_has_had_enough_gets_no_traceback():
    command = f"'{sys.executable}' -m fixtures matrix --shape stepwise --delay 0 --saver memory | true"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)


def test_the_stream_modes_can_be_chosen(capsys):
    assert main(["matrix", "--shape", "stepwise", "--stream", "updates", "--json"]) == 0
    runs = json.loads(capsys.readouterr().out)
    assert {run["in_checkpoint"] for run in runs if run["ending"] == "cancel"} == {3}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--shape", "round"], "--shape must be one of long_node, stepwise, both; got round"),
        (["--chunks", "1"], "--chunks must be from 2 to 1000; got 1"),
        (
            ["--cancel-after", "6"],
            "--cancel-after must be from 1 to 5, less than the 6 chunks of an answer; got 6",
        ),
        (["--cancel-after", "two"], "--cancel-after must be a whole number; got two"),
        (["--delay", "-1"], "--delay must be from 0 to 60 seconds; got -1.0"),
        (["--delay", "soon"], "--delay must be a number; got soon"),
        (["--saver", "postgres"], "--saver must be one of memory, sqlite; got postgres"),
        (["--stream", "values"], "--stream must be one of custom+updates, updates; got values"),
        (["--nonsense"], "unrecognized arguments: --nonsense"),
    ],
)
def test_a_wrong_option_is_one_line_and_exit_2(words, says, capsys):
    assert_refused(["matrix", *words], says, capsys)


def assert_refused(words, says, capsys):
    """Run the command line here: it must leave by status 2 with one line on stderr and nothing else."""
    try:
        code = main(words)
    except SystemExit as stopped:  # argparse ends the process itself
        code = stopped.code
    printed = capsys.readouterr()
    assert (code, printed.out, printed.err.count("\n")) == (2, "", 1)
    assert says in printed.err


def test_a_wrong_option_ends_the_process_with_2():
    done = subprocess.run(
        [sys.executable, "-m", "fixtures", "matrix", "--chunks", "1"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "--chunks must be from 2 to 1000; got 1" in done.stderr


KILL_KEYS = ["durability", "signal", "point", "at", "trial", "saved", "resumed", "intact"]


def test_kills_are_one_array_in_the_pinned_order(capsys):
    assert main(["kills", "--trials", "2", "--at", "2", "--steps", "4", "--json"]) == 0
    printed = capsys.readouterr()
    kills = json.loads(printed.out)
    assert [list(one) for one in kills] == [KILL_KEYS] * 6
    assert [(one["durability"], one["trial"]) for one in kills] == [
        (durability, trial) for durability in ("sync", "async", "exit") for trial in (1, 2)
    ]
    assert {(one["signal"], one["point"], one["at"]) for one in kills} == {("kill", "seen", 2)}
    assert [(one["saved"], one["resumed"]) for one in kills[:2]] == [(2, [3, 4])] * 2
    assert [(one["saved"], one["resumed"]) for one in kills[4:]] == [(None, None)] * 2
    assert {one["intact"] for one in kills} == {True}
    assert printed.err == ""


def test_kills_as_a_table_for_people(capsys):
    assert main(["kills", "--trials", "1", "--point", "in-put", "--delay", "0", "--signal", "term"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == KILL_KEYS
    assert lines[1] == ["sync", "term", "in-put", "3", "1", "3", "4", "5", "6", "True"]
    assert lines[3] == ["exit", "term", "in-put", "3", "1", "-", "-", "True"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--signal", "hup"], "--signal must be one of kill, term, int; got hup"),
        (
            ["--point", "later"],
            "--point must be one of seen, in-node, before-put, in-put, after-put; got later",
        ),
        (["--stream", "custom"], "--stream must be one of updates, custom+updates; got custom"),
        (["--at", "7"], "--at must be from 1 to the 6 steps of a run; got 7"),
        (["--steps", "0"], "--steps must be from 1 to 100; got 0"),
        (["--trials", "0"], "--trials must be from 1 to 1000; got 0"),
        (["--trials", "many"], "--trials must be a whole number; got many"),
        (["--delay", "-1"], "--delay must be from 0 to 10 seconds; got -1.0"),
    ],
)
def test_a_wrong_option_of_kills_is_one_line_and_exit_2(words, says, capsys):
    assert_refused(["kills", *words], says, capsys)


def test_a_trial_that_fails_is_one_line_and_exit_1(monkeypatch, capsys):
    from fixtures.experiments import kill

    async def fails(**_):
        raise kill.TrialFailed("trial 3: the signal did not end the process")

    monkeypatch.setattr(kill, "run_kills", fails)
    assert main(["kills"]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == "python -m fixtures kills: trial 3: the signal did not end the process\n"


@pytest.mark.parametrize("words", [[], ["nothing"]])
def test_an_unknown_experiment_is_one_line_and_exit_2(words, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(words)
    assert stopped.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_importing_the_library_loads_nothing_heavy():
    script = (
        "import sys, fixtures, fixtures.course;"
        "print([name for name in ('pandas', 'matplotlib', 'ipywidgets', 'langgraph') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
