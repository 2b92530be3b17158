"""Make one of the project's environments, or see in a moment that it is there and up to date.

``python tools/environment.py lab`` makes ``.venv`` (what a learner needs), ``test`` makes ``.venv-test``
(that, and what the tests need), ``3.13`` and ``oldest`` make ``.venv-3.13`` and ``.venv-oldest`` for
``make test-versions``. Needs nothing but the standard library: it runs before anything is installed.
uv does the work when it is on PATH, else pip. The last thing written is a stamp inside the environment, so
one that was left half made is seen and made anew.
"""

import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

OLDEST = ("langgraph==1.2.9", "langgraph-checkpoint-sqlite==3.1.0")
"""The oldest supported LangGraph, installed over the pins: the versions of the published experiments."""


@dataclass(frozen=True)
class Environment:
    """An environment of the project: where it is and what goes into it."""

    path: Path
    requirements: Path
    """The pinned file; it ends with ``-e .``."""
    over: tuple[str, ...] = ()
    """Requirements installed over the pinned ones afterwards."""

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.path / ("Scripts/python.exe" if os.name == "nt" else "bin/python")

    @property
    def stamp(self) -> Path:
        """Written when everything is installed; says from what."""
        return self.path / "made-from.json"

    def made_from(self, python: str) -> dict[str, str]:
        """Return what the environment depends on: another interpreter or place asks for a new one."""
        digest = hashlib.sha256()
        for file in (self.requirements, ROOT / "pyproject.toml"):
            digest.update(file.read_bytes())
        return {
            "python": os.path.realpath(python),
            "version": platform.python_version(),
            "place": str(self.path),
            "requirements": digest.hexdigest(),
            "over": " ".join(self.over),
        }


def named(name: str) -> Environment:
    """Return the environment called ``lab``, ``test``, ``oldest`` or by a Python version (``3.13``)."""
    if name == "lab":
        return Environment(ROOT / ".venv", ROOT / "requirements.txt")
    over = OLDEST if name == "oldest" else ()
    return Environment(ROOT / f".venv-{name}", ROOT / "requirements-dev.txt", over)


def ensure(environment: Environment) -> bool:
    """Make the environment with the running interpreter if it is missing, half made or out of date.

    Returns:
        Whether anything had to be done.

    Raises:
        SystemExit: it could not be made; the message says why and what to do.
    """
    # An environment's own interpreter may be the one that runs this: the new one must not depend on it.
    python = getattr(sys, "_base_executable", None) or sys.executable
    wanted = environment.made_from(python)
    found = _read(environment.stamp)
    if found == wanted and _works(environment.python):
        return False

    name, started = environment.path.name, time.monotonic()
    uv = shutil.which("uv")
    keys = ("python", "version", "place", "over")
    usable = all(found.get(key) == wanted[key] for key in keys) and _works(environment.python)
    if not uv and usable and not _works(environment.python, "import pip"):
        usable = False
    if usable:
        _say(f"{name}: requirements have changed, installing the new ones")
    else:
        if environment.path.exists():
            _say(f"{name} is incomplete, has moved, or was made for another Python: making it anew")
            shutil.rmtree(environment.path)
        _say(f"{name}: making it with Python {wanted['version']} and {'uv' if uv else 'pip'}")
        _create(environment, python=python, uv=uv)
    environment.stamp.unlink(missing_ok=True)
    _install(environment, uv=uv)
    environment.stamp.write_text(json.dumps(wanted, indent=1) + "\n", encoding="utf-8")
    _say(f"{name}: ready after {time.monotonic() - started:.0f} s")
    return True


def _create(environment: Environment, *, python: str, uv: str | None) -> None:
    if uv:
        _run([uv, "venv", "--quiet", "--no-project", "--python", python, str(environment.path)])
        return
    try:
        import ensurepip  # noqa: F401
    except ImportError:
        major, minor = sys.version_info[:2]
        sys.exit(
            f"{python} can make no environment, as its ensurepip module is missing: install it "
            f"(Debian, Ubuntu: sudo apt install python{major}.{minor}-venv), then run the same command again."
        )
    _run([python, "-m", "venv", str(environment.path)])


def _install(environment: Environment, *, uv: str | None) -> None:
    steps = [["-r", str(environment.requirements)]]
    if environment.over:
        steps.append(list(environment.over))
    python = str(environment.python)
    for step in steps:
        if uv:
            # uv compiles only when asked to; without bytecode each start of a kernel takes seconds longer.
            _run([uv, "pip", "install", "--quiet", "--compile-bytecode", "--python", python, *step])
        else:
            options = ["--quiet", "--compile", "--disable-pip-version-check", "--no-input"]
            _run([python, "-m", "pip", "install", *options, *step])


def _run(command: list[str]) -> None:
    # The variable would keep pip from compiling, and uv's own environment variable would install elsewhere.
    without = ("PYTHONDONTWRITEBYTECODE", "VIRTUAL_ENV", "PIP_TARGET", "PIP_USER", "PIP_REQUIRE_VIRTUALENV")
    env = {key: value for key, value in os.environ.items() if key not in without}
    try:
        subprocess.run(command, cwd=ROOT, env=env, check=True)
    except subprocess.CalledProcessError as error:
        sys.exit(
            f"{Path(command[0]).name} failed with exit code {error.returncode}, see its message above: "
            "check the network and the space on the disk, then run the same command again."
        )


def _works(python: Path, code: str = "import encodings") -> bool:
    try:
        return subprocess.run([python, "-c", code], capture_output=True).returncode == 0
    except OSError:
        return False


def _read(stamp: Path) -> dict[str, str]:
    try:
        return json.loads(stamp.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def _say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("give the environment to make: lab, test, oldest or a Python version such as 3.13")
    ensure(named(sys.argv[1]))
