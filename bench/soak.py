"""Kill a thousand processes at varied points, and see that every promise holds and that nothing is left.

    make soak           (or: python bench/soak.py [--trials N] [--seed S])

Signal, point, step, durability, stream modes and pauses are drawn from a seed. Exit status 1 when a trial
failed, a promise was broken, or a process, a file or a descriptor was left.
"""

import argparse
import asyncio
import gc
import multiprocessing
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import psutil
from tqdm import tqdm

from fixtures.experiments import kill
from fixtures.experiments.kill import Case, TrialFailed
from fixtures.records import Kill

TRIALS = 1000
STEPS = 6
PAUSES_S = (0.0, 0.0, 0.002, 0.01, 0.03)
AT_ONCE = 2 * (os.cpu_count() or 1)


def draw(rng: random.Random) -> Case:
    """Return the conditions of one trial."""
    return Case(
        durability=rng.choice(kill.DURABILITIES),
        signal=rng.choice(kill.SIGNALS),
        point=rng.choice(kill.POINTS),
        at=rng.randint(1, STEPS),
        steps=STEPS,
        delay_s=rng.choice(PAUSES_S),
        stream=rng.choice(kill.STREAMS),
    )


async def run(cases: Sequence[Case]) -> tuple[list[Kill], list[str]]:
    """Run all trials, some side by side; return what was seen, and what failed."""
    gate = asyncio.Semaphore(AT_ONCE)
    seen: list[Kill] = []
    failed: list[str] = []

    async def one(number: int, case: Case) -> None:
        async with gate:
            try:
                seen.append(await kill.run_once(case, trial=number))
            except TrialFailed as problem:
                failed.append(str(problem))
        bar.update()

    with tqdm(total=len(cases), unit="trial", leave=False, disable=not sys.stderr.isatty()) as bar:
        async with asyncio.TaskGroup() as group:
            for number, case in enumerate(cases, start=1):
                group.create_task(one(number, case))
    return seen, failed


def broken(one: Kill) -> list[str]:
    """Return the promises that a trial broke, in words."""
    said = []
    if not one.intact:
        said.append("the database fails its integrity check")
    if one.durability == "sync" and one.stream == "updates" and one.lost:
        said.append("under sync, with updates alone, an update that was seen is lost")
    # The one checkpoint of exit comes at the end: a signal that is not handled comes before it.
    early = one.durability == "exit" and one.point != "after-put" and one.at < STEPS
    if early and one.signal != "int" and one.saved is not None:
        said.append("under exit a thread exists that nothing can have written")
    if one.resumed and one.resumed[0] != (one.saved or 0) + 1:
        said.append("the resume did not begin at the step after the last one saved")
    if one.finished and 0 in one.happened:
        said.append("the run is finished, and a step never happened")
    if max(one.happened) > 2:
        said.append("a step happened more often than there were processes")
    return said


def stuck(one: Kill) -> bool:
    """Say whether a resume left an unfinished run unfinished: a trap that chapter 08 shows, not a fault."""
    return one.resumed is not None and not one.finished


def table(seen: Sequence[Kill]) -> pd.DataFrame:
    """Return one row for each signal, durability and kind of stream: what was lost, how often."""
    rows: dict[tuple, list[Kill]] = {}
    for one in seen:
        stream = "updates" if one.stream == "updates" else "with custom or messages"
        rows.setdefault((one.signal, one.durability, stream), []).append(one)
    names = (*kill.SIGNALS, *kill.DURABILITIES)
    return pd.DataFrame(
        [
            {
                "signal": signal, "durability": durability, "stream": stream, "trials": len(group),
                "no thread": sum(one.saved is None for one in group),
                "seen and lost": " ".join(
                    f"{lost}:{count}" for lost, count in sorted(Counter(one.lost for one in group).items())
                ),
                "effects twice": sum(2 in one.happened for one in group),
                "stuck": sum(map(stuck, group)),
            }
            for (signal, durability, stream), group in sorted(
                rows.items(), key=lambda row: (names.index(row[0][0]), names.index(row[0][1]), row[0][2])
            )
        ]
    )  # fmt: skip


def below() -> list[str]:
    """Return the processes below this one that are none of multiprocessing's own two."""
    return [
        f"process {one.pid} ({one.status()})"
        for child in psutil.Process().children()
        for one in child.children(recursive=True)
    ]


def left(folder: Path, descriptors: int) -> list[str]:
    """Return what is left of the trials: processes, files, open descriptors, in words."""
    gc.collect()
    said = [f"{child.name} is left" for child in multiprocessing.active_children()]
    said += [f"{name} is left" for name in below()]
    said += [f"{path.name} is left on disk" for path in folder.iterdir()]
    if hasattr(psutil.Process, "num_fds") and (now := psutil.Process().num_fds()) > descriptors:
        said.append(f"{now} descriptors are open, {descriptors} were before")
    return said


def main() -> int:
    """Run, print the summary, return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=TRIALS, metavar="N", help=f"how many ({TRIALS})")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="what the trials are drawn from (1)")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    cases = [draw(rng) for _ in range(options.trials)]
    asyncio.run(kill.run_once(Case(delay_s=0)))  # the fork server has its own folder and descriptors
    descriptors = psutil.Process().num_fds() if hasattr(psutil.Process, "num_fds") else 0
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        tempfile.tempdir = folder
        started = time.perf_counter()
        seen, failed = asyncio.run(run(cases))
        took_s = time.perf_counter() - started
        tempfile.tempdir = None
        remains = left(Path(folder), descriptors)
    print(table(seen).to_string(index=False))
    promises = Counter(what for one in seen for what in broken(one))
    print(
        f"\n{len(seen)} trials, {took_s * 1000 / len(cases):.0f} ms each, {AT_ONCE} side by side; "
        f"seed {options.seed}; all databases intact: {'yes' if all(one.intact for one in seen) else 'NO'}"
    )
    problems = [
        *failed,
        *(f"{what}: {count} trials" for what, count in promises.items()),
        *remains,
    ]
    print(*problems, sep="\n", file=sys.stderr, end="\n" if problems else "")
    print(
        f"{len(failed)} trials failed, {sum(promises.values())} promises broken, "
        f"{len(remains)} processes, files or descriptors left"
    )
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
