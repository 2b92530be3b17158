"""Write the generated parts of the README: the table of chapters, and what commands print.

``python tools/readme.py`` writes them, ``--check`` only says whether they are up to date (exit 1 when not).
A part stands between ``<!-- begin NAME -->`` and ``<!-- end NAME -->``.
"""

import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

from fixtures.views import course_map

ROOT = Path(__file__).resolve().parents[1]
MARKED = re.compile(r"(<!-- begin (?P<name>[\w-]+) -->\n).*?(<!-- end (?P=name) -->)", re.DOTALL)


@cache
def _printed_by(*arguments: str) -> str:
    """Return a block with the command as a person types it, and all that it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "fixtures", *arguments],
        cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True, encoding="utf-8",
    )  # fmt: skip
    lines = "\n".join(line.rstrip() for line in done.stdout.splitlines())
    return f"```console\n$ python -m fixtures {' '.join(arguments)}\n{lines}\n```"


PARTS: dict[str, Callable[[], str]] = {
    "chapters": lambda: course_map.table(links_from="."),
    "matrix": lambda: _printed_by("matrix"),
    # Of the points of a kill this one has the same outcome each time, for async too.
    "kills": lambda: _printed_by("kills", "--point", "in-put", "--trials", "1"),
}
"""How each part is made."""


def written(text: str) -> str:
    """Return the README's text with each part made anew.

    Raises:
        ValueError: a part has no place in the text, or a place has no part.
    """
    places = [match["name"] for match in MARKED.finditer(text)]
    if sorted(places) != sorted(PARTS):
        raise ValueError(f"README.md has places for {sorted(places)}, and the parts are {sorted(PARTS)}")
    return MARKED.sub(lambda match: f"{match[1]}{PARTS[match['name']]()}\n{match[3]}", text)


def main(arguments: list[str]) -> int:
    """Write or check, as the arguments say."""
    readme = ROOT / "README.md"
    old = readme.read_text(encoding="utf-8")
    new = written(old)
    if new == old:
        print("README.md is up to date")
        return 0
    if "--check" in arguments:
        print("README.md is out of date: run make readme", file=sys.stderr)
        return 1
    readme.write_text(new, encoding="utf-8", newline="\n")
    print("README.md: written")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
