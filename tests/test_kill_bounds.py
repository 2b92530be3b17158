"""The bounds of what chapter 09 shows and nbval does not compare: what races when a process dies."""

import os

import pytest

from fixtures.experiments.kill import run_kills, summarise
from fixtures.views import charts, tables

pytestmark = pytest.mark.skipif(os.name == "nt", reason="tells POSIX signals apart")

ALL = ("sync", "async", "exit")


async def test_what_the_heatmap_of_chapter_09_may_show():
    kills = []
    for signal, durabilities in (("kill", ALL), ("term", ("exit",)), ("int", ALL)):
        kills += await run_kills(signals=[signal], durabilities=durabilities, at=[1, 3, 5], trials=2)
    assert len(kills) == 42
    for one in kills:
        assert one.intact
        assert one.seen == one.at
        if one.signal == "int" or one.durability == "sync":
            assert one.saved == one.at, one
        elif one.durability == "exit":
            assert one.saved is None, one
        else:
            assert one.saved is None or 0 <= one.saved <= one.at, one
        assert one.finished == (one.saved is not None), one
    chart = charts.heatmap(summarise(kills))
    assert chart.alt.startswith("After SIGKILL, sync lost no step that had been seen; async l")
    assert "After SIGTERM, exit left no thread after step 1, 3 or 5." in chart.alt
    assert chart.alt.endswith("After SIGINT, sync, async and exit lost no step that had been seen.")
    assert len(chart.table) == 21


async def test_what_custom_beside_updates_may_lose_under_sync():
    kills = await run_kills(durabilities=["sync"], at=[3], stream="custom+updates", trials=5)
    for one in kills:
        assert (one.seen, one.intact, one.finished) == (3, True, True)
        assert one.saved in (2, 3), one
        assert one.resumed == tuple(range(one.saved + 1, 7)), one
    assert len(tables.recovered(summarise(kills))) == 1
