"""JupyterLab and Chromium for the tests in this folder: one server a session, one page a file."""

import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat
import pytest
from chromium import NoBrowser, chromium, find_chromium
from server import JupyterServer

if TYPE_CHECKING:
    from lab import Lab, Pages
    from playwright.sync_api import Browser

HERE = Path(__file__).parent
KERNEL = {"kernelspec": {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}}
CALLED = pytest.StashKey[pytest.TestReport]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.browser)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    report = yield
    if call.when == "call":
        item.stash[CALLED] = report
    return report


@pytest.fixture(scope="session")
def chromium_program() -> Path:
    """Chromium's path. Without one the test is skipped, or fails where a browser is required."""
    try:
        return find_chromium()
    except NoBrowser as missing:
        if os.environ.get("FIXTURES_REQUIRE_BROWSER", "0") not in ("", "0"):
            pytest.fail(f"{missing} (FIXTURES_REQUIRE_BROWSER is set)", pytrace=False)
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def _running(chromium_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JupyterServer]:
    with JupyterServer(tmp_path_factory.mktemp("jupyter")) as server:
        yield server


@pytest.fixture
def jupyter(_running: JupyterServer) -> Iterator[JupyterServer]:
    """The session's JupyterLab; after each test no kernel is left and its files are as they were."""
    yield _running
    _running.reset()


# Not for the whole session: while playwright runs, no other test of this process can use asyncio.run.
@pytest.fixture(scope="module")
def browser(chromium_program: Path) -> Iterator["Browser"]:
    """A Chromium without any page."""
    with chromium(chromium_program) as running:
        yield running


@pytest.fixture(scope="module")
def _pages(browser: "Browser", _running: JupyterServer) -> Iterator["Pages"]:
    from lab import Pages

    with closing(Pages(browser, _running)) as pages:
        yield pages


@pytest.fixture
def lab(_pages: "Pages", jupyter: JupyterServer, request: pytest.FixtureRequest) -> Iterator["Lab"]:
    """A page of JupyterLab with nothing open. After a failure its picture and the server's log are kept."""
    from lab import ARTEFACTS

    page = _pages.take()
    yield page
    report = request.node.stash.get(CALLED, None)
    if report is None or not report.passed:
        name = f"failed-{re.sub(r'[^A-Za-z0-9]+', '-', request.node.name).strip('-')}"
        try:
            page.screenshot(name)
            shutil.copy(jupyter.log, ARTEFACTS / f"{name}.log")
            print(*page.problems, sep="\n")
        finally:
            _pages.give_up()
    else:
        page.close_all()


@pytest.fixture
def notebook(jupyter: JupyterServer) -> Callable[..., str]:
    """A function that keeps cells as a notebook in the server's root and returns its path there."""

    def write(*cells: nbformat.NotebookNode, name: str = "made.ipynb") -> str:
        nbformat.write(nbformat.v4.new_notebook(cells=list(cells), metadata=KERNEL), jupyter.root / name)
        return name

    return write
