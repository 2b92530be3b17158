"""What a newcomer sees after `make lab`: chapter 00, no pop-up, a quiet terminal; and Ctrl-C ends it all."""

import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from server import PROJECT, copy_shown, end, listed, marked, private_environment, wait

if TYPE_CHECKING:
    from playwright.sync_api import Browser

FIRST = "notebooks/00_start_here.ipynb"


@contextmanager
def made_lab(folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """Do what the last line of `make lab` does, on a copy, with a browser that only keeps the address.

    Yields the process and the address that was opened; its terminal is ``folder / "terminal"``. After the
    block nothing of it may be left running.
    """
    import pty  # not on Windows

    project, opened, browser = folder / "project", folder / "opened", folder / "browser.sh"
    project.mkdir()
    copy_shown(project)
    shutil.copytree(PROJECT / "tools", project / "tools")
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > "{opened}.part"\nmv "{opened}.part" "{opened}"\n')
    browser.chmod(0o755)
    mark = secrets.token_hex(16)
    env = private_environment(folder, mark=mark, progress=folder / "progress.json") | {
        "BROWSER": str(browser)
    }
    # Without a keyboard Jupyter takes Ctrl-C for a crash and leaves its kernels to themselves.
    ours, keyboard = pty.openpty()
    with (folder / "terminal").open("wb") as terminal:
        process = subprocess.Popen(
            [sys.executable, "tools/lab.py", "--ServerApp.port=0", "--LabApp.expose_app_in_browser=True"],
            cwd=project, env=env, stdin=keyboard, stdout=terminal, stderr=terminal,
        )  # fmt: skip
    os.close(keyboard)
    try:

        def has_opened() -> bool:
            assert process.poll() is None, (folder / "terminal").read_text()
            return opened.exists()

        wait(has_opened, lambda: f"no browser was opened: {(folder / 'terminal').read_text()}")
        yield process, opened.read_text()
        wait(lambda: not marked(mark), lambda: f"still running: {listed(marked(mark))}")
    finally:
        end(marked(mark))
        process.wait()
        os.close(ours)


@pytest.mark.skipif(os.name == "nt", reason="needs a shell script and a terminal")
def test_opens_the_first_chapter_quietly_and_ends_by_ctrl_c(browser: "Browser", tmp_path: Path) -> None:
    with made_lab(tmp_path) as (process, address):
        context = browser.new_context(viewport={"width": 1280, "height": 900}, locale="en-US")
        page = context.new_page()
        page.set_default_timeout(120_000)
        page.goto(address)
        page.wait_for_url(re.compile(rf"/lab/tree/{FIRST}(\?|$)"))
        page.wait_for_function(
            """path => {
                const panel = window.jupyterapp?.shell?.currentWidget;
                return panel?.context?.path === path
                    && panel.sessionContext?.session?.kernel?.status === 'idle';
            }""",
            arg=FIRST,
        )
        # By now a pop-up would be there: it comes with the application's start, before the kernel answers.
        page.evaluate("() => jupyterapp.restored")
        assert page.evaluate("() => jupyterapp.commands.execute('notebook:run-all-cells')") is True
        assert page.locator(".jp-Dialog").all_inner_texts() == []
        assert page.locator(".Toastify__toast").all_inner_texts() == []
        context.close()

        process.send_signal(signal.SIGINT)
        process.wait(timeout=120)

    terminal = (tmp_path / "terminal").read_text()
    assert "Traceback" not in terminal
    assert re.findall(r"^.*(?:\[[WE] |WARNING|ERROR|Warning).*$", terminal, flags=re.MULTILINE) == []
