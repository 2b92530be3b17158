import asyncio
import sqlite3

import psutil
import pytest
from langgraph.graph import START, StateGraph

from fixtures.savers import SAVERS, open_saver


def graph_over(saver):
    builder = StateGraph(dict).add_node("add", lambda state: {"total": state["total"] + 1})
    return builder.add_edge(START, "add").compile(checkpointer=saver)


@pytest.mark.parametrize("name", SAVERS)
async def test_each_saver_keeps_a_thread(name, tmp_path):
    path = None if name == "memory" else tmp_path / "threads.sqlite"
    config = {"configurable": {"thread_id": "one"}}
    async with open_saver(name, path) as saver:
        graph = graph_over(saver)
        if name == "sqlite":
            graph.invoke({"total": 1}, config)
            state = graph.get_state(config)
        else:
            await graph.ainvoke({"total": 1}, config)
            state = await graph.aget_state(config)
    assert state.values == {"__root__": {"total": 2}} or state.values == {"total": 2}


@pytest.mark.parametrize("name", ["sqlite", "async_sqlite"])
async def test_tables_are_there_before_the_first_run_and_the_file_is_closed_after(name, tmp_path):
    path = tmp_path / "threads.sqlite"
    async with open_saver(name, path) as saver:
        assert path.exists()
        connection = saver.conn
    with sqlite3.connect(path) as look:
        tables = {row[0] for row in look.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    look.close()
    assert {"checkpoints", "writes"} <= tables
    with pytest.raises((sqlite3.ProgrammingError, ValueError)):
        await _ask(connection)


async def _ask(connection):
    answer = connection.execute("SELECT 1")
    if not isinstance(answer, sqlite3.Cursor):
        await answer


@pytest.mark.parametrize("turns", [0, 1, 2, 5])
async def test_a_cancel_while_it_opens_leaves_no_connection(tmp_path, turns):
    async def use():
        async with open_saver("async_sqlite", tmp_path / "threads.sqlite"):
            await asyncio.sleep(10)

    for _ in range(10):
        task = asyncio.create_task(use())
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    left = [file.path for file in psutil.Process().open_files() if "threads.sqlite" in file.path]
    assert left == []


@pytest.mark.parametrize(
    ("name", "path", "says"),
    [
        ("postgresql", None, "no saver is called 'postgresql'; use one of memory, sqlite, async_sqlite"),
        ("memory", "file", "keeps no file"),
        ("sqlite", None, "needs the path of its database file"),
        ("async_sqlite", None, "needs the path of its database file"),
    ],
)
async def test_a_wrong_name_or_path_is_said_in_one_sentence(name, path, says):
    with pytest.raises(ValueError, match=says):
        async with open_saver(name, path):
            pass


@pytest.mark.parametrize(("wait", "kept"), [(True, 2), (False, 0)], ids=["full", "off"])
@pytest.mark.parametrize("name", ["sqlite", "async_sqlite"])
async def test_a_commit_waits_for_the_disk_unless_told_not_to(tmp_path, name, wait, kept):
    async with open_saver(name, tmp_path / "file.sqlite", wait_for_disk=wait) as saver:
        asked = saver.conn.execute("PRAGMA synchronous")
        cursor = await asked if name == "async_sqlite" else asked
        row = cursor.fetchone()
        assert (await row if name == "async_sqlite" else row) == (kept,)
