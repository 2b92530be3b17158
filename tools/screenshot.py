"""Take a picture of a notebook as JupyterLab shows it.

    python tools/screenshot.py NOTEBOOK --out FILE [--width 800] [--theme dark] [--run] [--cell N]

The picture shows the whole notebook, or one cell, or the first element that a CSS selector finds. JupyterLab
runs on a temporary copy of the project's notebooks, with settings of its own: only FILE is written.

``--run`` runs all cells first. After that widgets can be used; these options may be repeated and are done in
their order: ``--click TEXT`` presses the button with this name, ``--wait TEXT`` waits for an output's text.

    python tools/screenshot.py notebooks/00_start_here.ipynb --out start.png --run --cell 6 --click Press

It also prints what went wrong on the page and, with ``--wide``, what is wider than its place at this width.
Needs the tests' environment (``make test`` makes it) and Chromium; see ``find_chromium`` in tests/browser.
"""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "browser"))

from chromium import NoBrowser, chromium, find_chromium  # noqa: E402
from server import JupyterServer  # noqa: E402


class Step(argparse.Action):
    """Keep options of several names in one list, in the order in which they were given."""

    def __call__(self, parser, namespace, values, option_string=None) -> None:
        """Add one step."""
        steps = list(getattr(namespace, self.dest) or [])
        namespace.steps = [*steps, (option_string.removeprefix("--"), values)]


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("notebook", type=Path)
    parser.add_argument("--out", type=Path, required=True, help="the PNG to write")
    parser.add_argument("--width", type=int, default=1280, help="of the window, in CSS pixels (1280)")
    parser.add_argument("--height", type=int, default=900, help="of the window, in CSS pixels (900)")
    parser.add_argument("--theme", choices=["light", "dark"], default="light")
    parser.add_argument("--scale", type=float, default=1, help="device pixels a CSS pixel (1)")
    parser.add_argument("--run", action="store_true", help="run all cells first")
    parser.add_argument("--click", action=Step, dest="steps", metavar="TEXT")
    parser.add_argument("--wait", action=Step, dest="steps", metavar="TEXT")
    parser.add_argument("--wide", action="store_true", help="print what is too wide")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--cell", type=int, help="counted from 0, Markdown cells included")
    what.add_argument("--selector", help="a CSS selector, looked for in the whole page")
    what.add_argument("--window", action="store_true", help="all that the window shows, menus included")
    chosen = parser.parse_args(arguments)
    if not chosen.notebook.is_file():
        parser.error(f"{chosen.notebook} is no file: give the path of a notebook")
    return chosen


def place(notebook: Path, root: Path) -> str:
    """Return the notebook's path in the server's root, where one from outside the project is copied to."""
    path = notebook.resolve()
    if path.is_relative_to(ROOT) and (root / path.relative_to(ROOT)).is_file():
        return path.relative_to(ROOT).as_posix()
    shutil.copy(path, root / path.name)
    return path.name


def main(chosen: argparse.Namespace) -> int:
    """Take the picture; return 1 when something went wrong on the page."""
    try:
        program = find_chromium()
    except NoBrowser as missing:
        sys.exit(str(missing))
    from lab import lab_page

    with (
        tempfile.TemporaryDirectory() as folder,
        JupyterServer(Path(folder)) as server,
        chromium(program) as browser,
        lab_page(browser, server, width=chosen.width, height=chosen.height, scale=chosen.scale) as lab,
    ):
        lab.open(place(chosen.notebook, server.root), theme=chosen.theme)
        if chosen.run:
            lab.run_all()
        for step, text in chosen.steps or []:
            if step == "click":
                lab.click(text)
            else:
                lab.wait_for_text(text)
        if chosen.wide:
            print(*lab.overflows(), sep="\n")
        target = None
        if chosen.cell is not None:
            target = lab.cell(chosen.cell)
        elif chosen.selector:
            target = lab.page.locator(chosen.selector).first
        lab.picture(chosen.out, of=target, whole=not chosen.window)
        errors = lab.errors()
        print(*errors, sep="\n", end="\n" if errors else "")
        return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(parse()))
