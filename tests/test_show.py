"""The command ``show``: what a person sees of a file, and what never gets to the terminal."""

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph

from fixtures import cli_show
from fixtures.__main__ import main

OLD_FILE = Path(__file__).parent / "data" / "old_langgraph.sqlite"


def show(capsys, *arguments) -> tuple[int, str, str]:
    capsys.readouterr()
    status = main(["show", *map(str, arguments)])
    return status, *capsys.readouterr()


def cells(line: str) -> list[str]:
    return re.split(r"\s{2,}", line.strip())


def test_the_threads_of_a_file(capsys):
    status, out, err = show(capsys, OLD_FILE)
    lines = out.splitlines()
    assert (status, err) == (0, "")
    assert cells(lines[0]) == ["thread", "checkpoints", "newest step", "next", "pending writes"]
    assert len(lines) == 24
    rows = {cells(line)[0]: cells(line)[1:] for line in lines[1:]}
    assert rows["chain"] == ["5", "3", "-", "-"]
    assert rows["asking"] == ["3", "1", "ask", "ask: __interrupt__"]
    assert rows["'failed beside'"] == ["3", "1", "b", "b: __error__; c: seen"]
    assert rows["'send failed'"] == [
        "3",
        "1",
        "worker",
        "worker: __error__, seen ×2, branch:to:b ×2; b: seen",
    ]
    assert rows["subgraph"] == ["6 in 2 graphs", "1", "inner", "inner: __interrupt__"]


def test_the_history_of_a_thread(capsys):
    status, out, err = show(capsys, OLD_FILE, "--thread", "answered")
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "thread answered: 4 checkpoints; newest c3, nothing left to run"
    assert [cells(line) for line in lines[1:]] == [
        ["step", "source", "next", "changed", "writes"],
        ["c0", "-1", "input", "__start__", "-", "__start__: seen, branch:to:a"],
        ["c1", "0", "loop", "a", "seen", "a: seen, branch:to:ask"],
        ["c2", "1", "loop", "ask", "seen", "input: __resume__; ask: __resume__, __interrupt__, value"],
        ["c3", "2", "loop", "-", "value", "-"],
    ]


def test_forks_are_set_off_and_the_newest_branch_goes_straight_down(capsys):
    _, out, _ = show(capsys, OLD_FILE, "--thread", "forked")
    lines = out.splitlines()[2:]
    names = [re.match(r"(├─ |│  )*c\d+( after c\d+)?", line).group() for line in lines]
    assert len(names) == int(re.search(r"(\d+) checkpoints", out).group(1))
    assert names[:2] == ["c0", "c1"]
    assert any(name.startswith("├─ c") for name in names)
    assert any(name.startswith("│  c") for name in names)
    newest = re.search(r"newest (c\d+)", out).group(1)
    assert names[-1].startswith(newest)
    assert re.search(r"^c\d+ after c\d+ ", out, re.MULTILINE)
    assert {"fork", "update"} <= {cells(line)[2] for line in lines}


def test_subgraphs_are_shown_apart(capsys):
    _, out, _ = show(capsys, OLD_FILE, "--thread", "nested")
    assert "2 subgraph runs" in out.splitlines()[0]
    headings = [line for line in out.splitlines() if line.startswith("subgraph ")]
    assert len(headings) == 2
    assert re.fullmatch(r"subgraph middle:t\d+, started at c2", headings[0])
    assert re.fullmatch(r"subgraph middle:t\d+\|inner:t\d+, started at c\d+", headings[1])


def test_pending_writes_are_those_that_no_checkpoint_holds(capsys):
    _, out, _ = show(capsys, OLD_FILE, "--thread", "failed beside")
    pending = [line for line in out.splitlines() if "pending" in line]
    assert len(pending) == 1
    assert pending[0].startswith("c2 ")
    assert pending[0].endswith("pending b: __error__; c: seen")


@pytest.mark.parametrize(
    ("file", "thread", "says"),
    [
        ("nowhere.sqlite", None, "there is no file 'nowhere.sqlite'; give the path of a SQLite file"),
        (Path(__file__).parent, None, "is a folder"),
        (__file__, None, "is not a SQLite file"),
        (OLD_FILE, "nobody", "has no thread nobody; it has chain, parallel"),
        (OLD_FILE, "", "has no thread ''"),
        (OLD_FILE, "\x1b[2J\n", "has no thread '\\x1b[2J\\n'"),
        ("\x1b[2J\n", None, "there is no file '\\x1b[2J\\n'"),
    ],
)
def test_what_can_not_be_shown_is_one_line_and_status_2(capsys, file, thread, says):
    status, out, err = show(capsys, file, *([] if thread is None else ["--thread", thread]))
    assert (status, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1
    assert err.endswith("\n")
    assert err[:-1].isprintable()


def test_a_wrong_option_is_one_line_and_status_2(capsys):
    with pytest.raises(SystemExit) as left:
        show(capsys, OLD_FILE, "--tread", "x")
    assert left.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


HOSTILE = "\x1b]0;owned\x07\x1b[31m\r\n\t\u202e\u200b\x00\x9b2J"


def test_nothing_from_the_file_drives_the_terminal(capsys, tmp_path):
    path = tmp_path / "hostile.sqlite"
    builder = StateGraph(dict)
    builder.add_node("go", lambda state: {"fine": 1})
    builder.add_edge(START, "go")
    with SqliteSaver.from_conn_string(str(path)) as saver:
        builder.compile(checkpointer=saver).invoke({"x": 1}, {"configurable": {"thread_id": HOSTILE}})
        metadata = json.dumps({"source": HOSTILE, "step": 7})
        saver.conn.execute("UPDATE checkpoints SET metadata = ? WHERE metadata LIKE '%loop%'", (metadata,))
        for column in ("channel", "task_id", "task_path"):
            have = {row[1] for row in saver.conn.execute("PRAGMA table_info(writes)")}
            if column in have:
                saver.conn.execute(f"UPDATE writes SET {column} = {column} || ?", (HOSTILE,))
        odd_type = "msg" + HOSTILE
        saver.conn.execute(
            "INSERT INTO checkpoints VALUES (?, ?, 'z', NULL, ?, x'00', x'00')",
            (HOSTILE, f"sub{HOSTILE}:{HOSTILE}", odd_type),
        )
        saver.conn.commit()
    for arguments in ((path,), (path, "--thread", HOSTILE)):
        status, out, err = show(capsys, *arguments)
        assert (status, err) == (0, "")
        assert "owned" in out
        assert out.replace("\n", "").isprintable()
        assert all(len(line) < 1000 for line in out.splitlines())
    # the id as the list shows it opens the thread as well
    _, listed, _ = show(capsys, path)
    seen = re.match(r"'.*?[^\\]'(?:… \(\d+ characters\))?", listed.splitlines()[1]).group()
    assert show(capsys, path, "--thread", seen)[0] == 0


def test_long_lists_are_cut_with_their_size(capsys, tmp_path):
    path = tmp_path / "wide.sqlite"
    builder = StateGraph(dict)
    builder.add_node("n" * 500, lambda state: {"k": 1})
    builder.add_edge(START, "n" * 500)
    with SqliteSaver.from_conn_string(str(path)) as saver:
        builder.compile(checkpointer=saver).invoke({}, {"configurable": {"thread_id": "1"}})
        saver.conn.executemany(
            "INSERT INTO writes (thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel) "
            "SELECT '1', '', MAX(checkpoint_id), ?, 0, ? FROM checkpoints",
            [(f"t{number % 50}-{number}", f"channel-{number}") for number in range(500)],
        )
        saver.conn.commit()
    _, out, _ = show(capsys, path, "--thread", "1")
    assert "(500 characters)" in out
    assert "… (500 in all)" in out
    assert max(map(len, out.splitlines())) < 700


def test_an_empty_database_of_langgraph(capsys, tmp_path):
    with closing(sqlite3.connect(tmp_path / "new.sqlite")) as connection:
        SqliteSaver(connection).setup()
    assert show(capsys, tmp_path / "new.sqlite") == (0, "no threads yet\n", "")


def test_a_terminal_without_line_characters():
    done = subprocess.run(
        [sys.executable, "-m", "fixtures", "show", OLD_FILE, "--thread", "forked"],
        env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
        capture_output=True,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"+- c" in done.stdout


def test_a_reader_that_has_seen_enough():
    command = [sys.executable, "-m", "fixtures", "show", OLD_FILE]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0


@pytest.mark.skipif(os.name == "nt", reason="Windows ends a process without asking it")
def test_a_polite_end_removes_the_copy():
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as left, cli_show._cleaning_up_when_terminated():
        os.kill(os.getpid(), signal.SIGTERM)
    assert left.value.code == 128 + signal.SIGTERM
    assert signal.getsignal(signal.SIGTERM) == before
