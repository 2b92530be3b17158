"""The command line: a table for people, JSON for programs, one line for a wrong option."""

import json
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
def test_a_wrong_option_is_one_line_and_exit_2(words, says):
    done = subprocess.run(
        [sys.executable, "-m", "fixtures", "matrix", *words], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert says in done.stderr


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
