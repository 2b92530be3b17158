"""Ways to cancel: what the caller is told, and what the node does after it."""

import asyncio
import threading

import pytest

from fixtures.experiments.cancel_kinds import DURABILITIES, KINDS, NOTHING, RESULT, run_cancel_kinds
from fixtures.experiments.options import BadOption
from fixtures.graphs import work
from fixtures.views import tables

EXPECTED = {
    # kind: (told, the node runs on, effects then, later, at the end, the thread holds it, also under exit)
    "async node, cancelled": ("CancelledError", False, 0, 0, 1, False, False),
    "sync node, cancelled": ("CancelledError", True, 0, 1, 2, False, False),
    "sync node, wait_for": ("TimeoutError", True, 0, 1, 2, False, False),
    "node swallows the cancel": (RESULT, False, 1, 1, 1, True, True),
    "node swallows the cancel, wait_for": (RESULT, False, 1, 1, 1, True, True),
    "node swallows the cancel, custom stream": ("CancelledError", False, 1, 1, 1, True, False),
    "break, closed": (NOTHING, False, 0, 0, 1, False, False),
    "break, stream held": (NOTHING, True, 0, 1, 1, True, False),
    "break, stream dropped": (NOTHING, False, 0, 0, 1, False, False),
    "wrapper closed": (NOTHING, True, 0, 1, 1, True, False),
    "wrapper closed that closes the stream": (NOTHING, False, 0, 0, 1, False, False),
    "drain": ("GraphDrained", False, 1, 1, 1, True, True),
}


async def test_what_each_caller_is_told_and_what_the_node_does_after_it():
    assert set(EXPECTED) == set(KINDS)
    seen = await run_cancel_kinds(durabilities=DURABILITIES)
    assert [(one.kind, one.durability) for one in seen] == [
        (kind, durability) for kind in KINDS for durability in DURABILITIES
    ]
    for one in seen:
        told, runs_on, then, later, at_the_end, saved, saved_under_exit = EXPECTED[one.kind]
        assert (one.told, one.runs_on, one.effects_then, one.effects_later) == (told, runs_on, then, later), (
            one
        )
        assert one.saved == (saved_under_exit if one.durability == "exit" else saved), one
        assert one.mailed == (one.told == RESULT), one
        # What the thread does not hold is done again, unless the stream was closed before the resume.
        twice_under_exit = one.durability == "exit" and one.kind == "node swallows the cancel, custom stream"
        assert one.effects == (2 if twice_under_exit else at_the_end), one
        assert one.finished, one


async def test_a_sync_node_is_the_one_whose_effect_happens_twice():
    seen = await run_cancel_kinds()
    assert [one.kind for one in seen if one.effects == 2] == ["sync node, cancelled", "sync node, wait_for"]


async def test_a_table_says_it_in_words():
    frame = tables.cancels(await run_cancel_kinds(kinds=["sync node, wait_for", "drain"]))
    assert frame.columns.to_list() == ["told", "node ran on", "effects", "thread held it"]
    assert frame.loc["sync node, wait_for", "sync"].to_list() == ["TimeoutError", "yes", "0, 1, 2", "no"]
    assert frame.loc["drain", "sync"].to_list() == ["GraphDrained", "no", "1, 1, 1", "yes"]


async def test_records_come_one_by_one():
    done = []
    seen = await run_cancel_kinds(kinds=["drain", "break, closed"], on_done=done.append)
    assert [one.kind for one in seen] == ["drain", "break, closed"]
    assert sorted(map(repr, done)) == sorted(map(repr, seen))


@pytest.mark.parametrize("turns", [0, 1, 5, 20, 100, 400])
async def test_nothing_is_left_after_a_cancel(turns):
    task = asyncio.create_task(run_cancel_kinds(durabilities=DURABILITIES))
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    for _ in range(50):  # what was started and not awaited by anybody gets its turn to end
        await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}
    idle = [one for one in threading.enumerate() if one.name.startswith(("asyncio_", "MainThread"))]
    assert len(threading.enumerate()) == len(idle)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"kinds": ["prayer"]}, "kind must be one of async node, cancelled, sync node, cancelled"),
        ({"durabilities": ["never"]}, "durability must be one of sync, async, exit; got 'never'"),
    ],
)
async def test_a_bad_option_is_named_with_what_is_allowed(options, says):
    with pytest.raises(BadOption, match=says):
        await run_cancel_kinds(**options)


def test_an_unknown_node_is_named():
    with pytest.raises(ValueError, match="no node is called 'lazy'; use one of async, sync, swallows"):
        work.build("lazy", None)
