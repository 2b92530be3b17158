"""Run tests and notebooks, browser left out, on other Pythons and on the oldest supported LangGraph.

``python -m tools.versions`` takes Python 3.11, 3.12 and 3.13, as far as they are found, with the pinned
packages, then the oldest LangGraph on 3.11, this one cut off from every network where that can be. Names
after it choose: ``python -m tools.versions 3.13 oldest``; ``--short`` leaves the labs and the like out. A
version that was named and is not found is a failure; one that was not named is left out, and said so.
"""

import subprocess
import sys
import time
from pathlib import Path

from tools.check import run
from tools.environment import OLDEST, named
from tools.namespace import namespace

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = ("3.11", "3.12", "3.13")
ONCE = (
    "tests/browser", "tests/test_course.py", "tests/test_nbval.py", "tests/test_notebook_hygiene.py",
    "tests/test_offline.py", "tests/test_setup.py",
)  # fmt: skip
"""What ``make test`` looks at and no version changes: the browser, the files, the set-up."""
NO_GRAPH = (
    "tests/test_button.py", "tests/test_course_map.py", "tests/test_effects.py", "tests/test_judge.py",
    "tests/test_predictions.py", "tests/test_progress.py", "tests/test_progress_bar.py",
)  # fmt: skip
"""What another Python may change and another LangGraph does not: left out for the oldest LangGraph."""
SHORT = (
    *NO_GRAPH, "tests/test_approval_lab.py", "tests/test_approval_panel.py", "tests/test_batches.py",
    "tests/test_cancel_lab.py", "tests/test_cancel_panel.py", "tests/test_choose.py", "tests/test_cli.py",
    "tests/test_kill.py", "tests/test_kill_lab.py", "tests/test_kill_panel.py", "tests/test_ladder.py",
    "tests/test_setup_check.py", "tests/test_show.py", "tests/test_timeline_lab.py",
    "tests/test_timeline_panel.py", "tests/test_two_process.py", "tests/test_views.py",
)  # fmt: skip
"""Left out by ``--short``: labs, pictures, the terminal, the longest exercises, and the tests of what
chapters 07 and 09 start in processes of their own. Those chapters stay, as all notebooks do, and so do the
tests of what LangGraph does: what a reader is shown is looked at on each version at every commit."""


def main(names: list[str]) -> int:
    """Run each and print one line for each; return 0 when all passed."""
    short = "--short" in names
    names = [name for name in names if name != "--short"]
    unknown = [name for name in names if name not in (*PYTHONS, "oldest")]
    if unknown:
        print(f"no version is called {unknown[0]!r}; use {', '.join(PYTHONS)} or oldest", file=sys.stderr)
        return 2
    lines, failed = [], False
    for name in names or (*PYTHONS, "oldest"):
        version = "3.11" if name == "oldest" else name
        what = f"Python {version}, {', '.join(OLDEST) if name == 'oldest' else 'pinned packages'}"
        python = _find(version)
        if python is None:
            lines.append(f"{what}: {'FAILED, ' if names else 'left out, '}no such Python on PATH or in pyenv")
            failed = failed or bool(names)
            continue
        print(f"\n== {what}", flush=True)
        started = time.monotonic()
        code = subprocess.run([python, str(ROOT / "tools" / "environment.py"), name]).returncode
        oldest = name == "oldest"
        left_out = (*ONCE, *(SHORT if short else NO_GRAPH if oldest else ()))
        cut_off = namespace() if oldest else None
        what += ", with no network but loopback" if cut_off else ""
        code = code or run(
            str(named(name).python),
            *("-m", "not nbgrader", *(f"--ignore={path}" for path in left_out)),
            before=cut_off or (),
        )
        lines.append(f"{what}: {'FAILED' if code else 'passed'} in {time.monotonic() - started:.0f} s")
        failed = failed or code != 0
    print("\n" + "\n".join(lines), flush=True)
    return 1 if failed else 0


def _find(version: str) -> str | None:
    found = subprocess.run(["sh", "tools/python.sh", version], cwd=ROOT, capture_output=True, text=True)
    return found.stdout.strip() or None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
