"""What each remedy keeps, what a resume makes of it, and what a cut costs."""

import math

import pytest

from fixtures.experiments.matrix import trial
from fixtures.experiments.options import BadOption
from fixtures.experiments.remedies import REMEDIES, try_cuts, try_remedies
from fixtures.graphs import remedies
from fixtures.graphs.chunks import PUBLISHED_CHUNKS

EXPECTED = {
    # remedy: (thread, thread under exit, outside, resumed, resumed under exit)
    "none: one long node": (0, 0, 0, 6, 6),
    "smaller steps": (3, 3, 0, 6, 6),
    "node catches the cancel": (3, 0, 0, 3, 6),
    "save partial text": (3, 3, 0, 6, 6),
    "save partial text, as_node": (3, 3, 0, 3, 3),
    "run log": (0, 0, 3, 6, 6),
    "copy in the page": (0, 0, 3, 6, 6),
}


async def test_what_each_remedy_keeps_and_what_a_resume_makes_of_it():
    assert set(EXPECTED) == set(REMEDIES)
    for run in await try_remedies():
        thread, thread_exit, outside, resumed, resumed_exit = EXPECTED[run.remedy]
        at_exit = run.durability == "exit"
        assert run.seen == 3
        assert run.thread == (thread_exit if at_exit else thread), run
        assert run.outside == outside, run
        assert run.resumed == (resumed_exit if at_exit else resumed), run
        assert run.finished == (run.resumed == 6), run
        assert (run.entries == 0) == (run.resumed == 3), run


async def test_a_step_of_k_chunks_loses_at_most_k_minus_1_and_costs_its_checkpoints():
    for cut in await try_cuts(sizes=[1, 2, 3, 4, 5, 6]):
        assert cut.most_lost == cut.chunks_a_step - 1
        assert cut.checkpoints == math.ceil(6 / cut.chunks_a_step) + 2


async def test_under_exit_every_cut_costs_one_checkpoint():
    assert {cut.checkpoints for cut in await try_cuts(durability="exit")} == {1}


@pytest.mark.parametrize(("async_router", "routed", "in_the_end"), [(False, False, 3), (True, True, 6)])
async def test_the_trap_needs_an_ordinary_router(async_router, routed, in_the_end):
    builder = remedies.announced(PUBLISHED_CHUNKS, delay_s=0.03, async_router=async_router)
    async with trial(builder, durability="sync", cancel_after=3) as cut:
        newest = await cut.saver.aget_tuple(cut.config)
        assert await cut.saved() == list(PUBLISHED_CHUNKS[:3])
        assert any(channel.startswith("branch:to:") for _, channel, _ in newest.pending_writes) is routed
        await cut.graph.ainvoke(None, cut.config)
        state = await cut.graph.aget_state(cut.config)
    assert len(state.values["emitted_chunks"]) == in_the_end
    assert state.next == ()


@pytest.mark.parametrize(
    ("call", "options", "says"),
    [
        (try_remedies, {"names": ["prayer"]}, "remedy must be one of none: one long node"),
        (try_remedies, {"durabilities": ["never"]}, "durability must be one of"),
        (try_remedies, {"cancel_after": 6}, "cancel_after must be from 1 to 5; got 6"),
        (try_cuts, {"sizes": [0]}, "sizes must be from 1 to 6; got 0"),
        (try_cuts, {"durability": "never"}, "durability must be one of"),
    ],
)
async def test_a_bad_option_is_named_with_what_is_allowed(call, options, says):
    with pytest.raises(BadOption, match=says):
        await call(**options)


def test_a_batch_has_a_chunk():
    with pytest.raises(ValueError, match="at least 1 chunk, got 0"):
        remedies.batches(PUBLISHED_CHUNKS, 0, delay_s=0)
