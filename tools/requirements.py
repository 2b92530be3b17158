"""Pin what ``pyproject.toml`` asks for, in ``requirements.txt`` and ``requirements-dev.txt`` (tests).

``python tools/requirements.py`` needs uv on PATH. One file serves every system and Python from 3.11 on.
Pins that still fit are kept; ``--upgrade`` takes the newest versions of everything.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HEADER = """\
# {what}
# Made from pyproject.toml by `make requirements`: change that file, not this one.
"""
FILES = {
    "requirements.txt": ("What a learner needs, for Python 3.11 or newer on any system.", []),
    "requirements-dev.txt": (
        "What the tests need: requirements.txt and the extra `dev`.",
        ["--extra", "dev"],
    ),
}


def compile_pins(*, name: str, upgrade: bool) -> str:
    """Return the new text of one of the two files."""
    what, options = FILES[name]
    with tempfile.TemporaryDirectory() as folder:
        output, learner = Path(folder) / name, Path(folder) / "learner.txt"
        if not upgrade:
            # uv reads the file it is about to write, and keeps the pins that still fit.
            output.write_text(_pins(name), encoding="utf-8")
        if name != "requirements.txt":
            # The tests run on what the learner has, never on a newer version.
            learner.write_text(_pins("requirements.txt"), encoding="utf-8")
            options = [*options, "--constraint", str(learner)]
        subprocess.run(
            ["uv", "pip", "compile", "--quiet", "--universal", "--python-version", "3.11",
             "--no-header", "--no-annotate", "--no-emit-index-url", "--no-emit-find-links",
             *options, "--output-file", str(output), "pyproject.toml"],
            cwd=ROOT, check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        return HEADER.format(what=what) + output.read_text(encoding="utf-8") + "-e .\n"


def _pins(name: str) -> str:
    """Return the pins that the file holds now, without ``-e .``; empty when there is no file yet."""
    file = ROOT / name
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return "".join(f"{line}\n" for line in lines if not line.startswith("-e"))


def main() -> None:
    """Write both files and say so."""
    if shutil.which("uv") is None:
        sys.exit("uv is not on PATH: install it (pip install uv), then run make requirements again.")
    for name in FILES:
        text = compile_pins(name=name, upgrade="--upgrade" in sys.argv[1:])
        (ROOT / name).write_text(text, encoding="utf-8", newline="\n")
        print(f"{name}: {sum('==' in line for line in text.splitlines())} pins")


if __name__ == "__main__":
    main()
