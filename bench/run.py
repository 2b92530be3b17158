"""Costs as ratios of two things measured in the same run, so that they mean the same on every machine.

    make bench          (or: python bench/run.py [--json])

Each line says what is compared, the ratio, and the bound that the project keeps to.
"""

import argparse
import asyncio
import json
import multiprocessing
import operator
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph

from fixtures import processes
from fixtures.experiments import kill, matrix
from fixtures.graphs import chunks as graphs
from fixtures.labs.timeline import timeline
from fixtures.savers import open_saver

ROUNDS = 7
"""Repetitions of each measurement; the median counts."""


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """Two things measured in one run."""

    what: str
    measured_s: float
    against_s: float
    at_most: float | None

    @property
    def ratio(self) -> float:
        return self.measured_s / self.against_s

    def line(self) -> str:
        bound = "" if self.at_most is None else f"   (at most {self.at_most:.2f})"
        return (
            f"{self.what:<58} {self.measured_s:7.3f} s / {self.against_s:6.3f} s = {self.ratio:5.3f}{bound}"
        )


def timed(run: Callable[[], None]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def medians(*runs: Callable[[], None], rounds: int = ROUNDS) -> list[float]:
    """Return each run's median time; the runs take turns, so that a busy moment hits all of them."""
    times = [[timed(run) for run in runs] for _ in range(rounds)]
    return [statistics.median(column) for column in zip(*times, strict=True)]


async def floor() -> None:
    """Sleep what the longest single run sleeps, and do nothing else."""
    for _ in graphs.PUBLISHED_CHUNKS:
        await graphs.pause(graphs.PUBLISHED_DELAY_S)


async def one_after_another() -> None:
    for shape in graphs.SHAPES:
        for ending in matrix.ENDINGS:
            for durability in matrix.DURABILITIES:
                await matrix.run_once(shape, ending, durability)


async def our_reader() -> None:
    async with open_saver("memory") as saver:
        graph = graphs.stepwise().compile(checkpointer=saver)
        await matrix.read_stream(graph, graphs.new_input(), {"configurable": {"thread_id": "1"}})


async def bare_astream() -> None:
    async with open_saver("memory") as saver:
        graph = graphs.stepwise().compile(checkpointer=saver)
        parts = graph.astream(
            graphs.new_input(),
            {"configurable": {"thread_id": "1"}},
            stream_mode=["custom", "updates"],
            version="v2",
        )
        async with aclosing(parts):
            async for _ in parts:
                pass


TRIALS = 20
"""Processes killed in one measurement with the fork server; with fresh interpreters it is one a processor."""


def kills(trials: int) -> None:
    """Kill processes under sync, without pauses, one a processor side by side."""
    asyncio.run(kill.run_kills(durabilities=["sync"], trials=trials, delay_s=0))


def kills_by_fresh_interpreters() -> None:
    """Do the same, each process a fresh interpreter."""
    forkserver = processes.context
    processes.context = lambda: multiprocessing.get_context("spawn")
    try:
        kills(os.cpu_count())
    finally:
        processes.context = forkserver


CHECKPOINTS = 1_000
"""The length of the thread that the Timeline lab shows."""


def long_thread(path: Path) -> None:
    """Let a thread of so many checkpoints, with a list that grows, be saved in a file."""

    class State(TypedDict):
        steps: Annotated[list[int], operator.add]

    builder = StateGraph(State)
    builder.add_node("step", lambda state: {"steps": [len(state["steps"])]})
    builder.add_edge(START, "step")
    # input, step 0 and one more a step
    last = CHECKPOINTS - 2
    builder.add_conditional_edges("step", lambda state: END if len(state["steps"]) == last else "step")
    with SqliteSaver.from_conn_string(str(path)) as saver:
        graph = builder.compile(checkpointer=saver)
        graph.invoke({"steps": []}, {"configurable": {"thread_id": "1"}}, durability="async")


async def timeline_of(path: Path) -> tuple[float, float]:
    """Return the median seconds to the lab's first picture of a file, and of a pick."""
    pictures, picks = [], []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        lab = timeline(path, "1")
        await lab.settled()
        pictures.append(time.perf_counter() - start)
        for number in (0, CHECKPOINTS // 2, CHECKPOINTS - 1):
            start = time.perf_counter()
            lab.pick(f"c{number}")
            await lab.settled()
            picks.append(time.perf_counter() - start)
        lab.retire()
    return statistics.median(pictures), statistics.median(picks)


def importing(module: str) -> Callable[[], None]:
    return lambda: subprocess.run([sys.executable, "-c", f"import {module}"], check=True)


def measure() -> list[Ratio]:
    """Return all ratios; takes about a minute."""
    asyncio.run(matrix.run_matrix(delay_s=0))
    sixteen, least = medians(lambda: asyncio.run(matrix.run_matrix()), lambda: asyncio.run(floor()))
    side, after = medians(
        lambda: asyncio.run(matrix.run_matrix()), lambda: asyncio.run(one_after_another()), rounds=3
    )
    ours, bare = medians(lambda: asyncio.run(our_reader()), lambda: asyncio.run(bare_astream()))
    fixtures, langgraph = medians(importing("fixtures"), importing("langgraph.graph"))
    instant, second = medians(
        lambda: asyncio.run(matrix.run_matrix(delay_s=0)), lambda: time.sleep(1), rounds=5
    )
    with tempfile.TemporaryDirectory() as folder:
        long_thread(Path(folder) / "long.sqlite")
        picture, pick = asyncio.run(timeline_of(Path(folder) / "long.sqlite"))
    kills(1)
    forked, fresh = medians(lambda: kills(TRIALS), kills_by_fresh_interpreters, rounds=3)
    return [
        Ratio(
            what="a killed trial by the fork server : by fresh interpreters",
            measured_s=forked / TRIALS,
            against_s=fresh / os.cpu_count(),
            at_most=1 / 25,
        ),
        Ratio(
            what="sixteen runs : the longest one's pauses", measured_s=sixteen, against_s=least, at_most=1.35
        ),
        Ratio(
            what="sixteen runs side by side : one after another",
            measured_s=side,
            against_s=after,
            at_most=0.2,
        ),
        Ratio(
            what="sixteen runs without pauses : one second",
            measured_s=instant,
            against_s=second,
            at_most=0.25,
        ),
        Ratio(
            what="Timeline lab, 1,000 checkpoints, first picture : one second",
            measured_s=picture,
            against_s=second,
            at_most=1,
        ),
        Ratio(
            what="Timeline lab, 1,000 checkpoints, a pick : one second",
            measured_s=pick,
            against_s=second,
            at_most=0.3,
        ),
        Ratio(what="our reader of a stream : bare astream", measured_s=ours, against_s=bare, at_most=1.05),
        Ratio(
            what="import fixtures : import langgraph.graph",
            measured_s=fixtures,
            against_s=langgraph,
            at_most=1.1,
        ),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print one JSON array, and nothing else")
    options = parser.parse_args()
    ratios = measure()
    if options.json:
        print(json.dumps([{**asdict(one), "ratio": one.ratio} for one in ratios], indent=1))
    else:
        print(*(one.line() for one in ratios), sep="\n")
    over = [one.what for one in ratios if one.at_most is not None and one.ratio > one.at_most]
    if over:
        print(f"over its bound: {'; '.join(over)}", file=sys.stderr)
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
