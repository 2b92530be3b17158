"""Pack the learner's bundle: the course without solutions, answers, tests and the tools of its authors.

``python -m tools.release`` writes ``dist/durable-execution-course-VERSION.zip`` from the last commit.
"""

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

LEFT_OUT = (
    ".ci", ".github", "bench", "solutions", "tests", "CONTRIBUTING.md", "nbgrader_config.py",
)  # fmt: skip
"""What a learner does not get; folders with all that is in them."""

TOOLS = ("tools/environment.py", "tools/jupyter", "tools/lab.py", "tools/python.sh", "tools/reset.py")
"""The tools that a learner gets; all others are left out."""

TELLTALE = (b"BEGIN SOLUTION", b"BEGIN HIDDEN TESTS")
"""What no file of the bundle may hold."""


def pack(root: Path = ROOT, folder: Path | None = None) -> Path:
    """Write the bundle into ``folder`` (default: ``dist`` below ``root``) and return its path.

    Raises:
        ValueError: a file of the bundle holds a part of a solution; the bundle is removed again.
        subprocess.CalledProcessError: ``root`` is no git checkout with a commit.
    """
    with (root / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    name = f"{project['name']}-{project['version']}"
    bundle = (folder or root / "dist") / f"{name}.zip"
    bundle.parent.mkdir(parents=True, exist_ok=True)
    into = (f"--prefix={name}/", f"--output={bundle.resolve()}")
    tools = subprocess.run(
        ["git", "ls-tree", "--name-only", "HEAD", "tools/"],
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    without = (f":(exclude){one}" for one in (*LEFT_OUT, *(set(tools) - set(TOOLS))))
    subprocess.run(
        ["git", "archive", "--format=zip", *into, "HEAD", "--", ".", *without],
        cwd=root, check=True, capture_output=True, text=True,
    )  # fmt: skip
    with zipfile.ZipFile(bundle) as packed:
        given_away = [one for one in packed.namelist() if any(mark in packed.read(one) for mark in TELLTALE)]
    if given_away:
        bundle.unlink()
        raise ValueError(
            f"these files would give a solution away, so there is no bundle: {', '.join(given_away)}"
        )
    return bundle


if __name__ == "__main__":
    try:
        made = pack()
    except ValueError as error:
        sys.exit(f"{error}.")
    except (subprocess.CalledProcessError, OSError) as error:
        sys.exit(f"git could not pack the course: {getattr(error, 'stderr', None) or error}")
    print(f"{made}: the course as of the last commit, without solutions, answers and tests.")
