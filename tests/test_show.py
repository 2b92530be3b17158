"""The command ``show``: what a person sees of a file, and what never gets to the terminal."""

import functools
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph

from fixtures import cli_show
from fixtures.__main__ import main
from fixtures.threads import list_threads, read_history

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


# --json


def as_json(capsys, *arguments):
    status, out, err = show(capsys, *arguments, "--json")
    assert (status, err) == (0, "")
    assert out.replace("\n", "").isprintable()
    assert out.isascii()
    return json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


def test_the_threads_as_json(capsys):
    threads = as_json(capsys, OLD_FILE)
    assert len(threads) == 23
    assert {tuple(one) for one in threads} == {
        (
            "thread", "checkpoints", "namespaces", "newest", "step", "source", "created_at", "next",
            "pending_writes", "problem",
        )
    }  # fmt: skip
    by_id = {one["thread"]: one for one in threads}
    assert by_id["subgraph"] | {"newest": "", "created_at": ""} == {
        "thread": "subgraph", "checkpoints": 6, "namespaces": 2, "newest": "", "step": 1, "source": "loop",
        "created_at": "", "next": ["inner"], "pending_writes": 1, "problem": None,
    }  # fmt: skip
    # what a program finds here leads on
    newest = as_json(capsys, OLD_FILE, "--thread", "subgraph")
    assert by_id["subgraph"]["newest"] in [one["checkpoint"] for one in newest]


def test_a_history_as_json_is_what_the_library_reads(capsys):
    for summary in list_threads(OLD_FILE):
        history = read_history(OLD_FILE, summary.id)
        found = as_json(capsys, OLD_FILE, "--thread", summary.id)
        assert [one["checkpoint"] for one in found if one["problem"] != "never saved"] == [
            one.id for one in history.checkpoints
        ]
        for one, checkpoint in zip(found, history.checkpoints, strict=False):
            assert one["next"] == list(checkpoint.next)
            assert one["unfinished"] == list(checkpoint.unfinished)
            assert one["parent"] == checkpoint.parent_id
            assert sorted(one["values"]) == sorted(checkpoint.values)
            assert len(one["pending_writes"]) == len(checkpoint.pending_writes)
    answered = as_json(capsys, OLD_FILE, "--thread", "answered")
    assert answered[-1]["values"] == {"seen": ["in", "a"], "value": "yes"}
    assert answered[-1]["changed"] == ["value"]
    assert [write["channel"] for write in answered[2]["pending_writes"]] == [
        "__resume__", "__resume__", "__interrupt__", "value",
    ]  # fmt: skip
    assert [write["node"] for write in answered[2]["pending_writes"]] == [None, "ask", "ask", "ask"]


class Own(NamedTuple):
    """A class that the file names and that is never imported."""

    held: int


def test_values_that_json_does_not_have(capsys, tmp_path):
    path = tmp_path / "values.sqlite"
    values = {
        "text": "<b>\x1b[31m\u202e\x7f</b>",
        "bytes": b"\x00\xff",
        "numbers": [float("nan"), float("-inf"), 1e300, True, None],
        "tuple": (1, (2,)),
        "set": {3},
        "keys": {1: "one", "1": "text"},
        "dollar": {"$class": "forged"},
        "date": datetime(2026, 1, 2, tzinfo=UTC),
        "message": HumanMessage("hi", id="m1"),
        "own": Own(4),
        "long": "x" * 1_000_000,
        "deep": functools.reduce(lambda inside, _: [inside], range(180), 0),
    }
    builder = StateGraph(dict)
    builder.add_node("go", lambda state: values)
    builder.add_edge(START, "go")
    with SqliteSaver.from_conn_string(str(path)) as saver:
        builder.compile(checkpointer=saver).invoke({"x": 1}, {"configurable": {"thread_id": "1"}})
        saver.conn.execute(
            "INSERT INTO writes "
            "(thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel, type, value) "
            "VALUES ('1', '', 'gone', 't', 0, 'k', 'pickle', x'80')"
        )
        saver.conn.commit()
    *_, last, stray = as_json(capsys, path, "--thread", "1")
    found = last["values"]["__root__"]
    assert found["text"] == values["text"]
    assert found["bytes"] == {"$bytes": "AP8="}
    assert found["numbers"] == [{"$number": "nan"}, {"$number": "-inf"}, 1e300, True, None]
    assert (found["tuple"], found["set"]) == ([1, [2]], [3])
    assert found["keys"] == {"$items": [[1, "one"], ["1", "text"]]}
    assert found["dollar"] == {"$items": [["$class", "forged"]]}
    assert found["date"] == {"$class": "datetime.datetime", "value": "2026-01-02 00:00:00+00:00"}
    assert found["message"]["$class"].endswith("HumanMessage")
    assert found["message"]["value"]["content"] == "hi"
    assert found["own"]["$class"].endswith(".Own")
    assert len(found["long"]) == 1_000_000
    assert '{"$unread": "nested deeper than 150 levels", "bytes": null}' in json.dumps(found["deep"])
    assert (stray["checkpoint"], stray["problem"], stray["values"]) == ("gone", "never saved", {})
    assert stray["pending_writes"] == [
        {
            "task": "t",
            "node": None,
            "channel": "k",
            "value": {"$unread": "pickle, never opened", "bytes": 1},
        }
    ]


def test_no_thread_is_an_empty_array(capsys, tmp_path):
    with closing(sqlite3.connect(tmp_path / "new.sqlite")) as connection:
        SqliteSaver(connection).setup()
    assert as_json(capsys, tmp_path / "new.sqlite") == []


@pytest.mark.parametrize(
    ("file", "thread"),
    [("nowhere.sqlite", None), (Path(__file__).parent, None), (__file__, None), (OLD_FILE, "nobody")],
)
def test_what_can_not_be_shown_is_the_same_line_with_json(capsys, file, thread):
    arguments = [file, *([] if thread is None else ["--thread", thread])]
    plain = show(capsys, *arguments)
    assert show(capsys, *arguments, "--json") == plain
    assert plain[0] == 2


def test_the_readme_names_every_key(capsys):
    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    rows = {
        line.split("|")[1].strip(): set(re.findall(r"`(\w+)`", line))
        for line in readme.splitlines()
        if line.startswith(("| a thread", "| a checkpoint", "| a pending write"))
    }
    checkpoints = as_json(capsys, OLD_FILE, "--thread", "answered")
    assert rows["a thread"] == set(as_json(capsys, OLD_FILE)[0])
    assert rows["a checkpoint, with `--thread ID`"] == set(checkpoints[0])
    assert rows["a pending write"] == set(checkpoints[0]["pending_writes"][0])
