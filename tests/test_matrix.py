"""The sixteen runs: as published, at other sizes, with other savers; and nothing is left behind."""

import asyncio
import gc
import threading
from pathlib import Path

import psutil
import pytest
from langgraph.graph import END, START, StateGraph

from fixtures.experiments import matrix
from fixtures.experiments.matrix import Page, run_matrix, trial
from fixtures.experiments.options import BadOption
from fixtures.graphs import chunks as graphs
from fixtures.records import as_dicts, published_runs


async def test_the_published_table_is_reproduced():
    runs = await run_matrix()
    published = published_runs()
    assert len(published) == len(runs) == 16
    for run, row in zip(runs, published, strict=True):
        assert (run.shape, run.ending, run.durability) == (row.shape, row.ending, row.durability)
        assert (run.visible, run.saved, run.checkpoints) == (row.visible, row.saved, row.checkpoints), run
        assert row.writes is None or run.writes == row.writes, run


async def test_three_saved_means_two_in_the_checkpoint_and_one_in_pending_writes():
    runs = await run_matrix(shapes=["stepwise"], endings=["cancel"])
    assert {(run.saved, run.in_checkpoint, run.lost, run.consistent) for run in runs} == {(3, 2, 0, True)}


async def test_with_updates_alone_the_checkpoint_is_there_first():
    runs = await run_matrix(shapes=["stepwise"], endings=["cancel"], stream="updates")
    seen = [(run.durability, run.saved, run.in_checkpoint, run.checkpoints) for run in runs]
    assert seen == [("default", 3, 3, 5), ("sync", 3, 3, 5), ("async", 3, 3, 5), ("exit", 3, 3, 1)]


async def test_a_cancelled_long_node_saves_nothing_and_says_so():
    runs = await run_matrix(shapes=["long_node"], endings=["cancel"])
    assert {(run.visible, run.saved, run.lost, run.consistent) for run in runs} == {(3, 0, 3, False)}


@pytest.mark.parametrize(("chunks", "cancel_after"), [(2, 1), (4, 1), (9, 8)])
async def test_any_size_and_cancel_point(chunks, cancel_after):
    runs = await run_matrix(chunks=chunks, cancel_after=cancel_after, delay_s=0.04, durabilities=["sync"])
    seen = {(run.shape, run.ending): run for run in runs}
    assert seen["long_node", "complete"].saved == seen["stepwise", "complete"].saved == chunks
    assert seen["stepwise", "complete"].checkpoints == chunks + 2
    assert seen["long_node", "cancel"].saved == 0
    assert seen["long_node", "cancel"].lost == cancel_after
    assert seen["stepwise", "cancel"].saved == cancel_after
    assert seen["stepwise", "cancel"].in_checkpoint == cancel_after - 1
    assert seen["stepwise", "cancel"].checkpoints == cancel_after + 1


async def test_without_pauses_what_was_seen_is_within_bounds():
    for run in await run_matrix(delay_s=0):
        assert run.visible == 6 if run.ending == "complete" else 3 <= run.visible <= 6
        assert 0 <= run.in_checkpoint <= run.saved <= 6
        assert run.lost == max(0, run.visible - run.saved)


async def test_the_memory_saver_holds_the_same_and_has_no_rows():
    memory, sqlite = await run_matrix(saver="memory"), await run_matrix()
    for run, other in zip(as_dicts(memory), as_dicts(sqlite), strict=True):
        assert run.pop("checkpoints") is None
        assert run.pop("writes") is None
        del other["checkpoints"], other["writes"]
        assert run == other


async def test_runs_are_reported_as_they_end():
    done = []
    runs = await run_matrix(delay_s=0.01, on_done=done.append)
    assert sorted(map(repr, done)) == sorted(map(repr, runs))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"shapes": ["round"]}, "shape must be one of long_node, stepwise; got 'round'"),
        ({"durabilities": ["never"]}, "durability must be one of default, sync, async, exit; got 'never'"),
        ({"endings": ["crash"]}, "ending must be one of complete, cancel; got 'crash'"),
        ({"saver": "sqlite3"}, "saver must be one of memory, sqlite; got 'sqlite3'"),
        ({"stream": "values"}, "stream must be one of custom\\+updates, updates; got 'values'"),
        ({"chunks": 1}, "chunks must be from 2 to 1000; got 1"),
        ({"cancel_after": 6}, "cancel_after must be from 1 to 5"),
        ({"cancel_after": 0}, "cancel_after must be from 1 to 5"),
        ({"delay_s": -1}, "delay_s must be from 0 to 60 seconds; got -1"),
        ({"delay_s": float("nan")}, "delay_s must be from 0 to 60 seconds; got nan"),
    ],
)
async def test_a_bad_option_is_named_with_what_is_allowed(options, says):
    with pytest.raises(BadOption, match=says):
        await run_matrix(**options)


def test_a_page_appends_events_and_takes_an_updates_list():
    page = Page()
    page.read({"type": "custom", "data": {"kind": "visible_chunk", "chunk": "a", "text": "a"}})
    page.read({"type": "custom", "data": {"kind": "other"}})
    page.read({"type": "updates", "data": {"step": None}})
    assert page.chunks == ["a"]
    page.read({"type": "updates", "data": {"step": {"emitted_chunks": ["a", "b"]}}})
    assert page.chunks == ["a", "b"]
    assert page.parts == {"custom": 2, "updates": 2}


# --- nothing is left behind ---------------------------------------------------------------------------------


class Left:
    """What a process has open: files, connections, threads, tasks, temporary folders."""

    def __init__(self, folder: Path):
        self.folder, self.process = folder, psutil.Process()

    def now(self) -> dict:
        gc.collect()
        return {
            "descriptors": self.process.num_fds() if hasattr(self.process, "num_fds") else 0,
            "databases": sorted(file.path for file in self.process.open_files() if "sqlite" in file.path),
            "threads": sorted(t.name for t in threading.enumerate() if "asyncio_" not in t.name),
            "tasks": len([task for task in asyncio.all_tasks() if not task.done()]),
            "on disk": sorted(path.name for path in self.folder.iterdir()),
        }


@pytest.fixture
async def left(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    await run_matrix(delay_s=0, durabilities=["sync"])
    return Left(tmp_path)


async def test_nothing_is_left_after_success(left):
    before = left.now()
    for _ in range(3):
        await run_matrix(delay_s=0.01)
    assert left.now() == before
    assert before["on disk"] == []


async def test_nothing_is_left_after_a_node_failed(left):
    async def fails(state):
        raise RuntimeError("the node fails")

    builder = StateGraph(graphs.Answer).add_node("fails", fails).add_edge(START, "fails")
    before = left.now()
    for _ in range(3):
        with pytest.raises(RuntimeError, match="the node fails"):
            async with trial(builder):
                pass
    assert left.now() == before


async def test_one_failing_run_cancels_the_others_and_is_raised_itself(left, monkeypatch):
    real = graphs.stepwise

    def broken(chunks, **_):
        async def step(state):
            await asyncio.sleep(0.02)
            raise RuntimeError("one run fails")

        builder = StateGraph(graphs.Answer).add_node("step", step)
        return builder.add_edge(START, "step").add_edge("step", END)

    before = left.now()
    monkeypatch.setattr(graphs, "stepwise", broken)
    with pytest.raises(RuntimeError, match="one run fails"):
        await run_matrix()
    monkeypatch.setattr(graphs, "stepwise", real)
    assert left.now() == before


@pytest.mark.parametrize("after_s", [0.0, 0.01, 0.05, 0.2])
async def test_nothing_is_left_after_a_cancel(left, after_s):
    before = left.now()
    task = asyncio.create_task(run_matrix())
    await asyncio.sleep(after_s)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert left.now() == before


async def test_nothing_is_left_when_the_reader_of_a_thread_fails(left):
    before = left.now()
    with pytest.raises(ZeroDivisionError):
        async with trial(graphs.build("stepwise", delay_s=0.01), cancel_after=2):
            1 / 0  # noqa: B018
    assert left.now() == before


async def test_runs_share_one_loop_and_finish_side_by_side():
    """The sum of all pauses is 12 times the longest run's: side by side it can't take half of the sum."""
    delay_s, loop = 0.1, asyncio.get_running_loop()
    start = loop.time()
    await run_matrix(delay_s=delay_s)
    pauses = 8 * 6 * delay_s + 8 * 3 * delay_s
    assert loop.time() - start < pauses / 2
    assert matrix.PUBLISHED_CANCEL_AFTER == 3
