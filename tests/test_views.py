"""Tables, charts and graph pictures: the right numbers, and text for those who can't see a picture."""

from dataclasses import replace

import pandas as pd
import pytest

from fixtures.experiments.matrix import run_matrix, trial
from fixtures.experiments.modes import watch_modes
from fixtures.graphs import chunks as graphs
from fixtures.records import as_frame
from fixtures.threads import read_history
from fixtures.views import charts, mermaid, tables


async def test_reproduced_says_yes_no_and_not_published():
    run = (await run_matrix(shapes=["long_node"], endings=["cancel"], durabilities=["exit"]))[0]
    changed = replace(run, saved=2)
    unknown = replace(run, durability="later")
    frame = tables.beside_published([run, changed, unknown])
    assert list(frame["reproduced"]) == ["yes", "no", "not published"]
    assert list(frame["published"]) == ["3 0 1 ?", "3 0 1 ?", ""]


def test_groups_of_rows_have_a_heading_and_text_is_escaped():
    frame = pd.DataFrame({"shape": ["a<b", "a<b", "c"], "seen_by": ["x", "y", "<z>"]})
    table = tables.grouped(frame, by=["shape"])
    page = table._repr_html_()
    assert page.count("colspan") == 2
    assert "a&lt;b" in page
    assert "&lt;z&gt;" in page
    assert "<z>" not in page
    assert page.splitlines()[0] == "<div>"
    assert repr(table) == frame.to_string(index=False)


async def test_a_column_with_nothing_to_count_stays_a_column_of_whole_numbers():
    frame = as_frame(await run_matrix(shapes=["stepwise"], saver="memory", delay_s=0))
    assert frame["checkpoints"].isna().all()
    assert frame["checkpoints"].dtype == pd.Int64Dtype()
    assert frame["consistent"].dtype == bool


def test_no_records_is_said():
    with pytest.raises(ValueError, match="no records to show"):
        as_frame([])


async def test_a_threads_checkpoints_and_writes_have_labels_for_ids():
    async with trial(graphs.build("long_node"), durability="sync", cancel_after=3) as cut:
        thread = read_history(cut.path, cut.thread_id)
        assert cut.row_counts() == (2, 7)
    frame = tables.checkpoints(thread, ["status", "emitted_chunks"])
    assert list(frame.index) == ["c0", "c1"]
    assert list(frame["emitted_chunks"]) == ["–", "[]"]
    writes = tables.pending_writes(thread)
    assert list(writes.index) == ["c0"] * 6 + ["c1"]
    assert writes["value"].iloc[-1] == "'CancelledError()'"
    text = frame.to_string() + writes.to_string()
    assert not any(chunk.strip() in text for chunk in graphs.PUBLISHED_CHUNKS)


async def test_a_timeline_has_its_numbers_and_says_its_finding():
    arrivals = await watch_modes(delay_s=0.02)
    chart = charts.timeline(arrivals)
    assert chart.png.startswith(b"\x89PNG")
    assert "custom, messages" in chart.alt
    assert len(chart.table) == len(arrivals)
    page = chart._repr_html_()
    assert f'alt="{chart.alt}"' in page
    assert "<table" in page
    assert repr(chart).startswith(chart.alt)


def test_a_graph_is_drawn_as_mermaid_with_a_title():
    source = mermaid.graph_source(graphs.stepwise(), "One node that goes round")
    assert source.splitlines() == [
        "```mermaid",
        "flowchart LR",
        "    accTitle: One node that goes round",
        '    __start__(["start"])',
        '    __end__(["end"])',
        "    __start__ --> step;",
        "    step -.-> __end__;",
        "    step -.-> step;",
        "```",
    ]
