"""When each stream mode fires: promises of LangGraph that the course shows, asserted without a clock."""

import pytest

from fixtures.experiments.modes import (
    BEFORE,
    MODES,
    MOMENTS,
    RETURNED,
    RUNNING,
    SAVED,
    watch_modes,
    when_modes_fire,
)
from fixtures.experiments.options import BadOption

PARTS = {
    ("custom", "custom event"): RUNNING,
    ("messages", "token"): RUNNING,
    ("tasks", "task start"): BEFORE,
    ("tasks", "task result"): SAVED,
    ("updates", "update"): SAVED,
    ("values", "whole state"): SAVED,
    ("checkpoints", "checkpoint"): SAVED,
    ("debug", "task"): BEFORE,
    ("debug", "task result"): SAVED,
    ("debug", "checkpoint"): SAVED,
}
EARLIER_BESIDE = {("tasks", "task result"), ("updates", "update"), ("debug", "task result")}


def seen(arrivals):
    return {(one.mode, one.part): one.moment for one in arrivals}


async def test_each_mode_read_alone_under_sync():
    assert seen(await when_modes_fire()) == PARTS


@pytest.mark.parametrize("beside", ["custom", "messages"])
async def test_custom_or_messages_beside_it_hands_updates_over_before_the_checkpoint(beside):
    expected = {key: RETURNED if key in EARLIER_BESIDE else moment for key, moment in PARTS.items()}
    assert seen(await when_modes_fire(beside=[beside])) == expected


async def test_values_and_checkpoints_beside_updates_change_nothing():
    for beside in ("values", "checkpoints", "debug", "tasks"):
        arrivals = await when_modes_fire(["updates"], beside=[beside])
        assert {one.moment for one in arrivals} == {SAVED}


async def test_the_clock_of_all_modes_has_the_moments_in_order():
    """The bounds of the tagged cell in chapter 08."""
    arrivals = await watch_modes(delay_s=0.2, put_s=0.2)
    order = [MOMENTS.index(one.moment) for one in arrivals]
    assert order == sorted(order)
    assert {one.mode for one in arrivals} == set(MODES)
    assert {one.mode for one in arrivals if one.moment == RUNNING} == {"custom", "messages"}
    times = [one.at_s for one in arrivals]
    assert times == sorted(times)
    first_event = min(one.at_s for one in arrivals if one.mode == "custom")
    first_update = min(one.at_s for one in arrivals if one.mode == "updates")
    assert first_update - first_event > 0.39


async def test_an_unknown_mode_is_named():
    with pytest.raises(BadOption, match="mode must be one of custom, messages"):
        await watch_modes(["tokens"])
