"""A real Chromium: found on the machine, started, and gone at the end."""

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from playwright.sync_api import Browser

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
OPTIONS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
END_S = 60
"""Seconds that Chromium may take to end."""


class NoBrowser(Exception):
    """There is no Chromium, or nothing to drive it with; the message says how to get it."""


def find_chromium(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the Chromium to use: ``$FIXTURES_CHROMIUM``, else the first known name on the PATH.

    Raises:
        NoBrowser: there is none, the variable does not name a program, or playwright is missing.
    """
    try:
        import playwright  # noqa: F401
    except ImportError:
        raise NoBrowser(
            "playwright is not installed: run `make test`, or `pip install -e '.[dev]'`."
        ) from None
    path = environment.get("PATH")
    if wanted := environment.get("FIXTURES_CHROMIUM"):
        if found := shutil.which(wanted, path=path):
            return Path(found)
        raise NoBrowser(
            f"FIXTURES_CHROMIUM is {wanted!r}, which is no program: give it the path of Chromium."
        )
    for name in NAMES:
        if found := shutil.which(name, path=path):
            return Path(found)
    raise NoBrowser(
        f"No Chromium on the PATH (looked for {', '.join(NAMES)}): install it, on Debian and Ubuntu with "
        "`apt-get install -y --no-install-recommends chromium`, or set FIXTURES_CHROMIUM to its path."
    )


@contextmanager
def chromium(program: Path) -> Iterator["Browser"]:
    """Run Chromium; it ends with the block.

    Inside the block the thread counts as one with a running event loop (that is how playwright works), so no
    ``asyncio.run`` there.

    Raises:
        RuntimeError: at the end, when a process of it had to be killed.
    """
    from playwright.sync_api import sync_playwright

    before = set(psutil.Process().children())
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(OPTIONS))
        started = set(psutil.Process().children()) - before
        try:
            yield browser
        finally:
            started |= {child for one in started for child in one.children(recursive=True)}
            browser.close()
    _, left = psutil.wait_procs(started, timeout=END_S)
    for one in left:
        one.kill()
    if left:
        raise RuntimeError(f"{END_S} s after Chromium was told to stop these ran on: {left}")
