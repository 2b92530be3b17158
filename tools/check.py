"""Run all tests and all notebooks in one go: ``python tools/check.py [pytest options]``.

Run by the Python of an environment that has the tests' requirements. Notebooks are run by nbval in strict
mode: each stored output must come out again.
"""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OPTIONS = (
    "tests", "notebooks", "--nbval", "--nbval-current-env", "--nbval-cell-timeout=120",
    "-n", str(min(4, 2 * (os.cpu_count() or 1))), "--dist", "loadfile",
    # As listed, so that the browser's files, few and long, come first.
    "--no-loadscope-reorder",
)  # fmt: skip


def run(python: str, *options: str, env: dict[str, str] | None = None, before: tuple[str, ...] = ()) -> int:
    """Run the suite with this Python, ``before`` being words to put before it; return pytest's exit code."""
    return subprocess.run(
        [*before, python, "-m", "pytest", *OPTIONS, *options], cwd=ROOT, env={**os.environ, **(env or {})}
    ).returncode


if __name__ == "__main__":
    sys.exit(run(sys.executable, *sys.argv[1:]))
