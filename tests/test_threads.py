"""Reading threads back: the same as LangGraph says, from any file, running nothing, leaving nothing."""

import importlib.util
import json
import operator
import os
import pickle
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import deque
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, TypedDict
from uuid import UUID
from zoneinfo import ZoneInfo

import ormsgpack
import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.serde import _msgpack
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, Interrupt, Overwrite, Send

from fixtures import _copy_file, _sqlite_copy, threads
from fixtures._safe_values import Named, Unread, as_text, decode, quoted
from fixtures.views.labels import Labels
from fixtures.views.tree import tree

DATA = Path(__file__).parent / "data"
OLD_FILE = DATA / "old_langgraph.sqlite"
OLD_ANSWERS = json.loads(OLD_FILE.with_suffix(".json").read_text(encoding="utf-8"))


def load_maker():
    spec = importlib.util.spec_from_file_location("make_old_file", DATA / "make_old_file.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A file of the installed LangGraph, and what that says of it."""
    path = tmp_path_factory.mktemp("made") / "new.sqlite"
    return path, load_maker().make_threads(path)


@pytest.fixture
def copies(tmp_path, monkeypatch):
    """The folder in which temporary copies are made."""
    folder = tmp_path / "copies"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


class State(TypedDict, total=False):
    seen: Annotated[list, operator.add]
    value: object


def counting():
    builder = StateGraph(State)
    builder.add_node("step", lambda state: {"seen": [len(state.get("seen", []))]})
    builder.add_edge(START, "step")
    return builder


def folder_state(folder: Path) -> dict:
    """Everything about a folder that a reader could change."""
    paths = [folder, *sorted(folder.rglob("*"))]
    return {
        path: (
            status.st_mtime_ns,
            status.st_ctime_ns,
            status.st_ino,
            status.st_mode,
            path.read_bytes() if path.is_file() else None,
        )
        for path in paths
        for status in [path.stat()]
    }


def put_checkpoint(
    connection, thread_id, checkpoint_id, parent=None, *, namespace="", type_="msgpack", data=None
):
    """Put in a row as a stranger could make it."""
    if data is None:
        checkpoint = empty_checkpoint() | {"id": checkpoint_id, "channel_values": {"value": 1}}
        data = JsonPlusSerializer().dumps_typed(checkpoint)[1]
    connection.execute(
        "INSERT INTO checkpoints VALUES (?, ?, ?, ?, ?, ?, ?)",
        (thread_id, namespace, checkpoint_id, parent, type_, data, b'{"source": "loop", "step": 1}'),
    )


@pytest.fixture
def empty_tables(tmp_path):
    """A file with LangGraph's tables, and a connection to it."""
    folder = tmp_path / "tables"
    folder.mkdir()
    path = folder / "t.sqlite"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        SqliteSaver(connection).setup()
        yield path, connection


# --- as LangGraph says


def assert_agrees(path, name, snapshots, *, old=False):
    thread = threads.read_history(path, name)
    found = {(checkpoint.namespace, checkpoint.id): checkpoint for checkpoint in thread.checkpoints}
    assert len(found) == len(snapshots) == len(thread.checkpoints)
    for snapshot in snapshots:
        checkpoint = found[snapshot["namespace"], snapshot["id"]]
        assert checkpoint.parent_id == snapshot["parent"]
        assert (checkpoint.step, checkpoint.source) == (snapshot["step"], snapshot["source"])
        assert checkpoint.created_at == snapshot["created_at"]
        assert checkpoint.problem is None
        if old and name == "function":
            # The one thing that this file does not tell: the name of a function that has not finished once.
            assert checkpoint.next == ("__start__",)
            continue
        assert list(checkpoint.next) == snapshot["next"]
        assert [task.id for task in checkpoint.tasks] == snapshot["tasks"]
        if isinstance(snapshot["values"], dict):
            # LangGraph lists a reducer's key before its first write, with the empty value of its type.
            assert dict(checkpoint.values) == {
                key: value for key, value in snapshot["values"].items() if key in checkpoint.values
            }
            assert all(not value for key, value in snapshot["values"].items() if key not in checkpoint.values)
        if snapshot["live_next"] is not None:
            assert checkpoint == thread.head(snapshot["namespace"])
            # 1.2.9 took an answered question for a finished task, while the node still has one to ask.
            wrong = old and name == "asking twice"
            assert list(checkpoint.unfinished) == (["ask"] if wrong else snapshot["live_next"])


@pytest.mark.parametrize("name", OLD_ANSWERS)
def test_next_tasks_and_values_are_those_of_langgraph(made, name):
    path, answers = made
    installed_is_old = not any(write.node for write in threads.rows(path, "function").writes)
    assert_agrees(path, name, answers[name], old=installed_is_old)


@pytest.mark.parametrize("name", OLD_ANSWERS)
def test_a_file_of_1_2_9_reads_as_1_2_9_said(name):
    assert_agrees(OLD_FILE, name, OLD_ANSWERS[name], old=True)


@pytest.mark.parametrize("file", ["new", "old"])
def test_the_threads_of_a_file_in_order(made, file):
    path, answers = made if file == "new" else (OLD_FILE, OLD_ANSWERS)
    summaries = threads.list_threads(path)
    assert [summary.id for summary in summaries] == list(answers)
    for summary in summaries:
        assert summary.checkpoints == len(answers[summary.id])
        assert summary.namespaces == len({snapshot["namespace"] for snapshot in answers[summary.id]})
    heads = {summary.id: summary.head for summary in summaries}
    for name in ("chain", "send failed", "answered", "join failed"):
        # the newest checkpoint alone tells as much as the whole thread
        assert heads[name] == threads.read_history(path, name).head()


@pytest.mark.parametrize("file", ["new", "old"])
def test_writes_name_their_nodes(made, file):
    path = made[0] if file == "new" else OLD_FILE
    head = threads.read_history(path, "failed beside").head()
    assert [(write.node, write.channel) for write in head.pending_writes] == [
        ("b", "__error__"),
        ("c", "seen"),
    ]
    assert [write.is_output for write in head.pending_writes] == [False, True]
    sends = threads.read_history(path, "send failed").head()
    assert {write.node for write in sends.pending_writes} == {"worker", "b"}
    assert sends.unfinished == ("worker",)


def test_forks_are_branches(made):
    thread = threads.read_history(made[0], "forked")
    forks = {parent: following for parent, following in thread.children().items() if len(following) > 1}
    assert len(forks) == 2
    reached = [checkpoint for following in thread.children().values() for checkpoint in following]
    assert sorted(checkpoint.id for checkpoint in reached) == sorted(c.id for c in thread.within())
    assert thread.head().values["value"] == "again"


def test_subgraphs_come_after_the_graph_and_know_where_they_started(made):
    thread = threads.read_history(made[0], "nested")
    outer, middle, inner = thread.namespaces
    assert (outer, middle.split(":")[0], inner.count("|")) == ("", "middle", 1)
    started = {checkpoint.within[""] for checkpoint in thread.within(inner)}
    assert started == {thread.head().id}
    assert thread.head(inner).unfinished == ("ask",)


def test_changed_keys_are_those_written_since_the_parent(made):
    thread = threads.read_history(made[0], "answered")
    assert [checkpoint.changed for checkpoint in thread.checkpoints] == [(), ("seen",), ("seen",), ("value",)]


def test_a_delta_channel_is_said_to_keep_its_values_in_the_writes(tmp_path):
    channels = pytest.importorskip("langgraph.channels")
    if not hasattr(channels, "DeltaChannel"):
        pytest.skip("this LangGraph has no DeltaChannel")

    def extend(before, batch):
        return [*(before or []), *(item for update in batch for item in update)]

    class Delta(TypedDict, total=False):
        seen: Annotated[list, channels.DeltaChannel(extend)]

    builder = StateGraph(Delta)
    builder.add_node("step", lambda state: {"seen": ["x"]})
    builder.add_edge(START, "step")
    path = tmp_path / "d.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        builder.compile(checkpointer=saver).invoke({"seen": ["in"]}, {"configurable": {"thread_id": "1"}})
    head = threads.read_history(path, "1").head()
    assert "seen" in head.changed
    assert ("seen" in head.values) != ("seen" in head.not_stored)


# --- rows and labels


def test_rows_come_in_the_order_they_were_put_in_or_in_that_of_the_history(made):
    path, _ = made
    rows = threads.rows(path, "chain")
    with closing(sqlite3.connect(path)) as connection:
        writes = connection.execute(
            "SELECT task_id, idx, channel, LENGTH(value) FROM writes WHERE thread_id = 'chain' ORDER BY rowid"
        ).fetchall()
        ids = connection.execute(
            "SELECT checkpoint_id FROM checkpoints WHERE thread_id = 'chain' ORDER BY rowid"
        ).fetchall()
    assert [(row.task, row.idx, row.channel, row.size_bytes) for row in rows.writes] == writes
    assert [(row.checkpoint,) for row in rows.checkpoints] == ids
    rows = threads.rows(path, "chain", order="history")
    assert [row.step for row in rows.checkpoints] == [-1, 0, 1, 2, 3]
    assert rows.checkpoints[-1].values == "{'seen': ['in', 'a', 'b', 'c']}"
    labels = Labels.of(threads.read_history(path, "chain"))
    assert [row["checkpoint"] for row in labels.checkpoint_rows(rows)] == ["c0", "c1", "c2", "c3", "c4"]
    assert [row["parent"] for row in labels.checkpoint_rows(rows)] == ["-", "c0", "c1", "c2", "c3"]
    assert [(row["task"], row["channel"], row["value"]) for row in labels.write_rows(rows)] == [
        ("t1", "seen", "['in']"),
        ("t1", "branch:to:a", "None"),
        ("t2", "seen", "['a']"),
        ("t2", "branch:to:b", "None"),
        ("t3", "seen", "['b']"),
        ("t3", "branch:to:c", "None"),
        ("t4", "seen", "['c']"),
    ]
    with pytest.raises(ValueError, match="'inserted' or 'history', got 'newest'"):
        threads.rows(path, "chain", order="newest")


def test_long_and_binary_values_are_shortened(tmp_path):
    path = tmp_path / "v.sqlite"
    builder = StateGraph(State)
    builder.add_node("big", lambda state: {"value": {"text": "x" * 1_000_000, "raw": b"\0" * 5000}})
    builder.add_edge(START, "big")
    with SqliteSaver.from_conn_string(str(path)) as saver:
        builder.compile(checkpointer=saver).invoke({}, {"configurable": {"thread_id": "1"}})
    (write,) = [row for row in threads.rows(path, "1").writes if row.channel == "value"]
    assert len(write.value) < 150
    assert "1,000,000 characters" in write.value
    assert write.size_bytes > 1_000_000
    assert as_text(b"\0" * 5000) == "5,000 bytes"


@pytest.mark.parametrize("name", ["chain", "send", "asking", "failed beside", "join", "two subgraphs"])
def test_labels_of_a_file_and_of_a_history_agree(made, name):
    path, _ = made
    thread = threads.read_history(path, name)
    with closing(sqlite3.connect(path, check_same_thread=False)) as connection:
        runnable = load_maker().graphs(SqliteSaver(connection))[name]
        history = Labels.of_history(runnable.get_state_history({"configurable": {"thread_id": name}}))
    of_file = Labels.of(thread)
    for number, checkpoint in enumerate(thread.within()):
        assert of_file.checkpoint(checkpoint.id) == history.checkpoint(checkpoint.id) == f"c{number}"
        for task in checkpoint.tasks:
            assert of_file.task(task.id) == history.task(task.id)
    assert of_file.id_of("c1") == thread.checkpoints[1].id
    assert of_file.task(threads.INPUT_TASK) == "input"
    with pytest.raises(KeyError, match="c99"):
        of_file.id_of("c99")


# --- any saver, any moment, nothing left behind


async def test_files_of_both_savers_open_or_closed_and_nothing_is_left(tmp_path, copies):
    config = {"configurable": {"thread_id": "1"}}
    folder = tmp_path / "files"
    folder.mkdir()
    async with AsyncSqliteSaver.from_conn_string(str(folder / "a.sqlite")) as saver:
        await counting().compile(checkpointer=saver).ainvoke({"seen": []}, config)
        assert (folder / "a.sqlite-wal").stat().st_size > 0
        before = folder_state(folder)
        while_open = threads.read_history(folder / "a.sqlite", "1")
        assert folder_state(folder) == before
    assert not (folder / "a.sqlite-wal").exists()
    before = folder_state(folder)
    assert threads.read_history(folder / "a.sqlite", "1") == while_open
    assert [checkpoint.step for checkpoint in while_open.checkpoints] == [-1, 0, 1]
    assert folder_state(folder) == before
    assert list(copies.iterdir()) == []


def test_a_wal_left_by_a_dead_process_in_a_read_only_folder(tmp_path, copies):
    live, dead = tmp_path / "live", tmp_path / "dead"
    live.mkdir()
    with SqliteSaver.from_conn_string(str(live / "t.sqlite")) as saver:
        counting().compile(checkpointer=saver).invoke({"seen": []}, {"configurable": {"thread_id": "1"}})
        dead.mkdir()
        for suffix in ("", "-wal"):
            (dead / f"t.sqlite{suffix}").write_bytes((live / f"t.sqlite{suffix}").read_bytes())
    assert (dead / "t.sqlite").stat().st_size < (dead / "t.sqlite-wal").stat().st_size
    for path in (*dead.iterdir(), dead):
        path.chmod(path.stat().st_mode & 0o555)
    before = folder_state(dead)
    try:
        assert len(threads.read_history(dead / "t.sqlite", "1").checkpoints) == 3
        assert len(threads.list_threads(dead / "t.sqlite")) == 1
        assert len(threads.rows(dead / "t.sqlite", "1").checkpoints) == 3
        assert folder_state(dead) == before
    finally:
        dead.chmod(0o755)
    assert list(copies.iterdir()) == []


def test_the_copy_goes_away_when_the_reader_fails(copies, made):
    def read_until_stopped():
        with _sqlite_copy.open_copy(made[0]):
            assert list(copies.iterdir()) != []
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        read_until_stopped()
    assert list(copies.iterdir()) == []
    with pytest.raises(threads.FileProblem):
        threads.read_history(made[0], "no such thread")
    assert list(copies.iterdir()) == []


def test_a_link_finds_the_wal_beside_the_file_itself(tmp_path):
    with SqliteSaver.from_conn_string(str(tmp_path / "t.sqlite")) as saver:
        counting().compile(checkpointer=saver).invoke({"seen": []}, {"configurable": {"thread_id": "1"}})
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        (elsewhere / "link").symlink_to(tmp_path / "t.sqlite")
        assert len(threads.read_history(elsewhere / "link", "1").checkpoints) == 3


@pytest.mark.skipif(os.name == "nt", reason="only POSIX drops a process's locks at a close")
def test_locks_that_this_process_holds_on_the_file_stay(empty_tables):
    path, connection = empty_tables
    put_checkpoint(connection, "1", "a")
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.execute("BEGIN IMMEDIATE")
    assert len(threads.list_threads(path)) == 1
    code = "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=0).execute('DELETE FROM checkpoints')"
    other = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True)
    assert "database is locked" in other.stderr
    connection.execute("ROLLBACK")


WRITER = """
import sqlite3, sys, time
path, mode, pause_s = sys.argv[1], sys.argv[2], float(sys.argv[3])
connection = sqlite3.connect(path, isolation_level=None, timeout=30)
connection.execute(f"PRAGMA journal_mode = {mode}")
connection.execute("PRAGMA synchronous = OFF")
connection.execute("PRAGMA wal_autocheckpoint = 40")
number = 0
while True:
    number += 1
    connection.execute("BEGIN IMMEDIATE")
    # as much as a page or two a row, in two tables: a torn copy would break the pair or the chain
    connection.execute(
        "INSERT INTO checkpoints VALUES ('1', '', ?, ?, 'bytes', ?, ?)",
        (f"{number:09d}", f"{number - 1:09d}", b"c" * 3000, '{"source": "loop", "step": %d}' % number),
    )
    connection.execute(
        "INSERT INTO writes (thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel, type, value) "
        "VALUES ('1', '', ?, 't', 0, 'c', 'bytes', ?)",
        (f"{number:09d}", b"w" * 3000),
    )
    same = (bytes([number % 256]) * 3000,)
    connection.execute("UPDATE checkpoints SET checkpoint = ? WHERE checkpoint_id < 4", same)
    connection.execute("COMMIT")
    if number == 1:
        print("writing", flush=True)
    time.sleep(pause_s)
"""


# Without a -wal, a copy needs a moment without a write: such a writer must pause now and then.
@pytest.mark.parametrize(("mode", "pause_s"), [("wal", 0.003), ("delete", 0.08)])
def test_a_file_that_another_process_is_writing(empty_tables, mode, pause_s):
    path, connection = empty_tables
    connection.close()
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, path, mode, str(pause_s)], stdout=subprocess.PIPE
    )
    lengths = []
    try:
        assert writer.stdout.readline() == b"writing\n"
        end = time.monotonic() + 20
        while len(set(lengths)) < 4 and time.monotonic() < end:
            with _sqlite_copy.open_copy(path) as copy:
                assert copy.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
                newest = {
                    row[0]
                    for row in copy.execute("SELECT checkpoint FROM checkpoints WHERE checkpoint_id < 4")
                }
            thread = threads.read_history(path, "1")
            steps = [checkpoint.step for checkpoint in thread.checkpoints]
            assert steps == list(range(1, len(steps) + 1))
            assert all(len(checkpoint.pending_writes) == 1 for checkpoint in thread.checkpoints)
            assert len(newest) == 1
            lengths.append(len(steps))
        assert writer.poll() is None
    finally:
        writer.kill()
        writer.wait()
        writer.stdout.close()
    assert len(set(lengths)) >= 4, "the writer stood still"


def test_a_transaction_cut_by_a_crash_is_rolled_back_in_the_copy_alone(empty_tables):
    path, connection = empty_tables
    connection.execute("BEGIN")
    for number in range(200):
        put_checkpoint(connection, "1", f"{number:03d}", data=b"old" * 300, type_="bytes")
    connection.execute("COMMIT")
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()
    committed = path.read_bytes()
    code = """
import os, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA cache_size = 1")
connection.execute("BEGIN IMMEDIATE")
connection.execute("UPDATE checkpoints SET checkpoint = ?", (b"new" * 300,))
os._exit(0)
"""
    subprocess.run([sys.executable, "-c", code, path], check=True)
    assert path.with_name(path.name + "-journal").stat().st_size > 0
    assert b"newnewnew" in path.read_bytes()
    assert b"newnewnew" not in committed
    before = folder_state(path.parent)
    thread = threads.read_history(path, "1")
    assert [checkpoint.stored.data for checkpoint in thread.checkpoints] == [b"old" * 300] * 200
    assert folder_state(path.parent) == before


def test_giving_up_on_a_file_that_never_stands_still(made, monkeypatch, copies):
    monkeypatch.setattr(_sqlite_copy, "GIVE_UP_AFTER_S", -1)
    with pytest.raises(threads.FileProblem, match=r"is being written to all the time.*try again"):
        threads.list_threads(made[0])
    assert list(copies.iterdir()) == []


def test_what_makes_a_copy_count_as_consistent(tmp_path, monkeypatch):
    source, target = str(tmp_path / "s"), str(tmp_path / "t")
    Path(source).write_bytes(b"main")
    assert not _copy_file.copy_once(source, target)  # as young as a tick of the clock
    os.utime(source, (1, 1))
    assert _copy_file.copy_once(source, target)
    copy = _copy_file.copy

    def meanwhile(change):
        def copy_and_change(source, target):
            copy(source, target)
            change()

        monkeypatch.setattr(_copy_file, "copy", copy_and_change)
        return _copy_file.copy_once(source, target)

    assert not meanwhile(lambda: Path(source).write_bytes(b"main!"))
    os.utime(source, (1, 1))
    assert not meanwhile(lambda: Path(source + "-journal").write_bytes(b"j" * 40))
    Path(source + "-journal").unlink()
    salts = iter(range(100))
    assert not meanwhile(lambda: Path(source + "-wal").write_bytes(next(salts).to_bytes(40, "little")))
    # pages move from the -wal to the main file, and frames are added, without a new round
    assert meanwhile(lambda: (Path(source).write_bytes(b"moved"), os.truncate(source + "-wal", 80)))
    assert Path(target + "-wal").stat().st_size == 80
    assert not meanwhile(lambda: Path(source + "-wal").unlink(missing_ok=True))
    os.utime(source, (1, 1))
    monkeypatch.setattr(_copy_file, "copy", copy)
    assert _copy_file.copy_once(source, target)
    assert not Path(target + "-wal").exists()


# --- files that are none, threads that are not there


def other_database(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE customers (id)")
        connection.execute("CREATE TABLE checkpoints (what)")


def other_columns(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE checkpoints (what)")
        connection.execute("CREATE TABLE writes (what)")


def views_in_disguise(path):
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT i AS thread_id FROM n"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"CREATE VIEW checkpoints AS {endless}")
        connection.execute(f"CREATE VIEW writes AS {endless}")


PROBLEMS = {
    "missing": (lambda path: None, "there is no file"),
    "folder": (lambda path: path.mkdir(), "is a folder"),
    "fifo": (lambda path: os.mkfifo(path), "is not an ordinary file"),
    "dangling link": (lambda path: path.symlink_to("nowhere"), "there is no file"),
    "loop of links": (lambda path: path.symlink_to(path), "can't be opened"),
    "empty": (lambda path: path.touch(), "is empty"),
    "text": (lambda path: path.write_text("not a database\n" * 100), "is not a SQLite file"),
    "other database": (other_database, r"without LangGraph's tables, writes missing \(it has customers\)"),
    "other columns": (other_columns, "the table checkpoints in .* is not LangGraph's"),
    "views": (views_in_disguise, "without LangGraph's tables"),
}


@pytest.mark.parametrize("kind", PROBLEMS)
def test_what_is_no_langgraph_file_is_one_sentence(tmp_path, kind, copies):
    make, message = PROBLEMS[kind]
    if kind == "fifo" and not hasattr(os, "mkfifo"):
        pytest.skip("no FIFOs here")
    folder = tmp_path / "folder"
    folder.mkdir()
    path = folder / "what is\nthis"
    make(path)
    before = sorted(folder.iterdir())
    for read in (
        threads.list_threads,
        lambda p: threads.read_history(p, "1"),
        lambda p: threads.rows(p, "1"),
    ):
        with pytest.raises(threads.FileProblem, match=message) as caught:
            read(path)
        assert "\n" not in str(caught.value)
        assert "what is\\nthis" in str(caught.value)
    assert sorted(folder.iterdir()) == before
    assert list(copies.iterdir()) == []


def test_a_path_that_no_file_can_have():
    with pytest.raises(threads.FileProblem, match="can't be opened"):
        threads.list_threads("a\0b")


def test_a_file_cut_short_anywhere_is_never_read_as_a_whole_one(tmp_path):
    whole = OLD_FILE.read_bytes()
    path = tmp_path / "cut.sqlite"
    for length in (1, 15, 50, 99, 100, 512, 4096, 5000, len(whole) // 2, len(whole) - 4096, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(threads.FileProblem, match=r"cut short.*; use a whole copy of it"):
            threads.list_threads(path)


def test_a_damaged_file_is_one_sentence(tmp_path):
    path = tmp_path / "damaged.sqlite"
    whole = bytearray(OLD_FILE.read_bytes())
    whole[4096:-4096] = b"\xff" * (len(whole) - 8192)
    path.write_bytes(whole)
    with pytest.raises(threads.FileProblem, match=r"damaged, SQLite says '.*'; use a whole copy"):
        threads.list_threads(path)


def test_a_file_that_may_not_be_read(made, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # the tests may run as root
    with pytest.raises(threads.FileProblem, match="may not read"):
        threads.list_threads(made[0])


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full is needed")
def test_no_room_for_the_copy(made, monkeypatch, tmp_path):
    script = tmp_path / "copy.py"
    script.write_text(
        f"import sys; sys.path.insert(0, {str(Path(_copy_file.__file__).parent)!r}); import _copy_file\n"
        "sys.exit(_copy_file.main(sys.argv[1], '/dev/full', sys.argv[3]))"
    )
    monkeypatch.setattr(_copy_file, "__file__", str(script))
    with pytest.raises(threads.FileProblem, match=r"could not be copied .*No space left.*make room"):
        threads.list_threads(made[0])


def test_an_unknown_thread_is_told_from_a_few_known_ones(made):
    with pytest.raises(
        threads.FileProblem, match=r"has no thread nobody; it has chain, parallel, .* 18 more$"
    ):
        threads.read_history(made[0], "nobody")


def test_a_file_without_threads(empty_tables):
    path, _ = empty_tables
    assert threads.list_threads(path) == ()
    with pytest.raises(threads.FileProblem, match="it has no threads"):
        threads.read_history(path, "1")


ODD_IDS = [
    "", " ", "None", "1", "Grüße 🧵", "two\nlines", "\x1b[31mred\x1b[0m", "x" * 5000, "it's", '"',
    "\\n", "a\0b", "'; DROP TABLE checkpoints; --", "--help", "\u202eright to left", "%", "tenant-a:task|7",
]  # fmt: skip


def test_odd_thread_ids(tmp_path):
    path = tmp_path / "odd.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        graph = counting().compile(checkpointer=saver)
        for number, thread_id in enumerate(ODD_IDS):
            graph.invoke({"seen": [], "value": number}, {"configurable": {"thread_id": thread_id}})
    assert [summary.id for summary in threads.list_threads(path)] == ODD_IDS
    for number, thread_id in enumerate(ODD_IDS):
        head = threads.read_history(path, thread_id).head()
        assert (head.thread_id, head.values["value"]) == (thread_id, number)
        # what a person sees finds the thread again, and is one plain line
        seen = quoted(thread_id)
        assert seen.isprintable()
        assert threads.read_history(path, seen).id == thread_id
    assert len({quoted(thread_id) for thread_id in ODD_IDS}) == len(ODD_IDS)
    assert threads.read_history(path, 1).id == "1"


def test_ids_that_are_no_text(empty_tables):
    path, connection = empty_tables
    put_checkpoint(connection, b"blob", b"a\xff")
    connection.execute("UPDATE checkpoints SET thread_id = CAST(x'ff41' AS TEXT) WHERE thread_id = 'x'")
    put_checkpoint(connection, "x", "b")
    connection.execute("UPDATE checkpoints SET thread_id = CAST(x'ff41' AS TEXT) WHERE thread_id = 'x'")
    assert [summary.checkpoints for summary in threads.list_threads(path)] == [1, 1]
    for summary in threads.list_threads(path):
        assert len(threads.read_history(path, summary.id).checkpoints) == 1
        assert tree(threads.read_history(path, summary.id)).isascii()


# --- rows that mean harm


def external(code: int, *parts) -> bytes:
    """A msgpack value that names something to call."""
    return ormsgpack.packb(ormsgpack.Ext(code, ormsgpack.packb(parts)))


class Bomb:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


def test_a_crafted_row_runs_code_by_default_and_not_here(empty_tables, tmp_path, monkeypatch):
    path, connection = empty_tables
    harm = str(tmp_path / "harm")
    put_checkpoint(connection, "1", "a", data=external(0, "os", "mkdir", harm))
    connection.execute(
        "INSERT INTO writes (thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel, type, value) "
        "VALUES ('1', '', 'a', 't', 0, 'c', 'msgpack', ?)",
        (external(1, "os", "mkdir", [harm]),),
    )
    thread = threads.read_history(path, "1")
    assert not os.path.exists(harm)
    assert thread.head().problem == "not a checkpoint"
    assert thread.head().pending_writes[0].value == Named("os", "mkdir", [harm])
    assert threads.rows(path, "1").writes[0].value.startswith("os.mkdir(['")
    assert threads.list_threads(path)[0].head.problem
    assert not os.path.exists(harm)
    # That the row is a real danger: LangGraph as it comes makes the folder.
    monkeypatch.setattr(_msgpack, "STRICT_MSGPACK_ENABLED", False)
    SqliteSaver(connection).get_tuple({"configurable": {"thread_id": "1", "checkpoint_ns": ""}})
    assert os.path.isdir(harm)


@pytest.mark.parametrize("code", range(9))
def test_no_module_is_imported_whatever_way_it_is_named(code, tmp_path, monkeypatch):
    harm = tmp_path / "harm"
    (tmp_path / "harmful_module.py").write_text(f"open({str(harm)!r}, 'w').close()\n")
    monkeypatch.syspath_prepend(tmp_path)
    sys.modules.pop("harmful_module", None)
    for parts in (
        ("harmful_module", "x", {"a": 1}, "run"),
        ("datetime", "datetime", "2020-01-01", "__init__"),
    ):
        decode("msgpack", external(code, *parts))
    assert not harm.exists()


def test_a_class_of_ones_own_is_text_and_nobody_is_warned(caplog, capfd):
    @dataclass
    class Money:
        amount: int

    value = decode(*JsonPlusSerializer().dumps_typed({"price": Money(5), "prices": deque([Money(6)])}))
    assert value["price"] == Named(__name__, "Money", {"amount": 5})
    assert value["prices"] == deque([Named(__name__, "Money", {"amount": 6})])
    assert as_text(value["price"]) == f"{__name__}.Money({{'amount': 5}})"
    assert caplog.records == []
    assert capfd.readouterr() == ("", "")


def test_no_pickle_is_opened(tmp_path):
    harm = tmp_path / "harm"
    found = decode("pickle", pickle.dumps(Bomb(str(harm))))
    assert isinstance(found, Unread)
    assert "never opened" in as_text(found)
    assert not harm.exists()


def test_json_of_old_versions_names_classes_and_no_secrets(monkeypatch):
    monkeypatch.setenv("A_KEY", "secret")
    text = json.dumps(
        [
            {"lc": 1, "type": "secret", "id": ["A_KEY"]},
            {"lc": 1, "type": "constructor", "id": ["langchain_core", "prompts", "P"], "kwargs": {"a": 1}},
            {"lc": 2, "type": "constructor", "id": ["subprocess", "run"], "args": ["true"]},
        ]
    )
    found = decode("json", text.encode())
    assert found[0] == Named("", "A_KEY", None)
    assert found[1] == Named("langchain_core.prompts", "P", {"a": 1})
    assert found[2] == Named("subprocess", "run", ["true"])


def test_bytes_that_make_no_sense_are_told_and_the_rest_is_read(empty_tables):
    path, connection = empty_tables
    nested = b"\xc0"
    for _ in range(3000):
        nested = ormsgpack.packb(ormsgpack.Ext(0, nested))
    bad = [
        b"",
        b"\xc1",
        b"\x91" * 100_000 + b"\xc0",
        nested,
        ormsgpack.packb([1]),
        ormsgpack.packb({"id": 5}),
    ]
    for number, data in enumerate(bad):
        put_checkpoint(connection, "1", f"{number}", data=data)
    for number, value in enumerate(
        [{"channel_values": 5}, {"channel_values": {5: 6}, "versions_seen": {"a": 7}}]
    ):
        put_checkpoint(
            connection, "1", f"x{number}", data=ormsgpack.packb(value, option=ormsgpack.OPT_NON_STR_KEYS)
        )
    put_checkpoint(connection, "1", "y", type_="json", data=b"{" * 100_000)
    put_checkpoint(connection, "1", "z")
    thread = threads.read_history(path, "1")
    assert len(thread.checkpoints) == len(bad) + 4
    assert thread.head().values == {"value": 1}
    assert sum(checkpoint.problem is not None for checkpoint in thread.checkpoints) >= 5
    assert len(tree(thread).splitlines()) == len(bad) + 4 + 2


def test_an_encrypted_file_shows_that_it_is(tmp_path):
    from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

    class Upside:
        def encrypt(self, plaintext):
            return "upside", plaintext[::-1]

        def decrypt(self, ciphername, ciphertext):
            return ciphertext[::-1]

    path = tmp_path / "e.sqlite"
    with closing(sqlite3.connect(path, check_same_thread=False)) as connection:
        saver = SqliteSaver(connection, serde=EncryptedSerializer(Upside()))
        counting().compile(checkpointer=saver).invoke({"seen": []}, {"configurable": {"thread_id": "1"}})
    head = threads.read_history(path, "1").head()
    assert head.problem == "stored as msgpack+upside"
    assert (head.step, head.source, head.values) == (1, "loop", {})


SAFE = [
    datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), timedelta(days=1), UUID(int=7), Decimal("1.5"), {1, "a"},
    frozenset({2}), deque([1, 2], maxlen=5), ip_address("10.0.0.1"), Path("a/b"), ZoneInfo("UTC"),
    Send("node", {"deep": {3}}), Interrupt("why?", id="5"), Command(goto="x", update={"a": 1}),
    Overwrite([1]), Document(page_content="text"), HumanMessage("hi", id="1"),
    AIMessage("yes", tool_calls=[{"name": "f", "args": {"a": 1}, "id": "2", "type": "tool_call"}]),
    (1, None, True, 2.5), b"bytes", bytearray(b"array"), None, {1: "int key"},
]  # fmt: skip


@pytest.mark.parametrize("value", SAFE, ids=lambda value: type(value).__name__)
def test_safe_types_read_as_langgraph_reads_them(value):
    strict = JsonPlusSerializer(allowed_msgpack_modules=None)
    for whole in (value, {"in": [value]}):
        stored = strict.dumps_typed(whole)
        assert decode(*stored) == strict.loads_typed(stored)
        assert "0x" not in as_text(decode(*stored))


def test_text_of_a_value_is_the_same_every_time_and_bounded():
    assert as_text({"b", "a", "c"}) == "{'a', 'b', 'c'}"
    assert as_text(Interrupt("why?", id="5")) == "Interrupt('why?')"
    assert as_text(HumanMessage("hi", id="5")) == "HumanMessage('hi')"
    assert as_text("\x1b[31m\n") == "'\\x1b[31m\\n'"
    assert as_text(list(range(1000)), 20) == "[0, 1, 2, 3, 4, 5, … (1,000 items)]"
    deep = []
    for _ in range(100_000):
        deep = [deep]
    for value in (
        deep,
        10**5000,
        "x" * 10**6,
        {"k" * 1000: "v" * 1000},
        [["y" * 500] * 500] * 500,
        -(10**400),
    ):
        assert len(as_text(value, 60)) <= 95


# --- long and tangled histories


def test_a_thousand_checkpoints(empty_tables):
    path, connection = empty_tables
    before = None
    connection.execute("BEGIN")
    for number in range(1000):
        put_checkpoint(connection, "1", f"{number:06d}", before)
        before = f"{number:06d}"
    connection.execute("COMMIT")
    thread = threads.read_history(path, "1")
    lines = tree(thread).splitlines()
    assert len(lines) == 1002
    assert max(map(len, lines)) < 100
    assert lines[-1].startswith("c999 ")


def test_a_fork_at_every_checkpoint_and_branches_off_branches(empty_tables):
    path, connection = empty_tables
    connection.execute("BEGIN")
    for number in range(400):
        # each hangs on the one two before: branches off branches, 200 deep
        put_checkpoint(connection, "deep", f"{number:06d}", f"{number - 2:06d}" if number > 1 else None)
        put_checkpoint(connection, "wide", f"{number:06d}", "000000" if number else None)
        put_checkpoint(
            connection, "comb", f"{number:06d}", f"{number - 1 - number % 2:06d}" if number > 1 else None
        )
    connection.execute("COMMIT")
    for thread_id in ("deep", "wide", "comb"):
        thread = threads.read_history(path, thread_id)
        lines = tree(thread).splitlines()
        assert len(lines) == 402
        for number in range(400):
            assert (
                sum(f"c{number} " in f"{line} " and f"after c{number} " not in f"{line} " for line in lines)
                == 1
            )
        assert max(map(len, lines)) < 140


def test_rings_orphans_and_stray_writes(empty_tables):
    path, connection = empty_tables
    for checkpoint_id, parent in [("a", "c"), ("b", "a"), ("c", "b"), ("d", "d"), ("e", "gone"), ("f", "c")]:
        put_checkpoint(connection, "1", checkpoint_id, parent)
    connection.execute(
        "INSERT INTO writes (thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel, type, value) "
        "VALUES ('1', '', 'never', 't', 0, 'c', 'null', NULL), ('2', '', 'never', 't', 0, 'c', 'null', NULL)"
    )
    thread = threads.read_history(path, "1")
    children = thread.children()
    assert sorted(c.id for following in children.values() for c in following) == list("abcdef")
    assert [c.id for c in children[None]] == ["a", "d", "e"]
    assert [write.checkpoint_id for write in thread.stray_writes] == ["never"]
    text = tree(thread)
    assert len(text.splitlines()) == 10
    assert "1 writes beside a checkpoint that was never saved" in text
    assert "(its parent is gone)" in text
    only_writes = threads.list_threads(path)[-1]
    assert (only_writes.id, only_writes.checkpoints, only_writes.head) == ("2", 0, None)
    assert threads.read_history(path, "2").head() is None
    assert "0 checkpoints" in tree(threads.read_history(path, "2"))


def test_a_history_is_read_without_importing_a_graph_library():
    code = """
import sys
from fixtures import threads
from fixtures.views.tree import tree
assert threads.list_threads(sys.argv[1])
for name in ("answered", "send failed", "nested"):
    assert tree(threads.read_history(sys.argv[1], name))
print([name for name in ("pandas", "langgraph.types", "langchain_core.messages") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code, OLD_FILE], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
