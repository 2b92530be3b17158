"""The Cancel lab's panel, its real widgets pressed: without a browser, in kernels, and under nbval strict."""

import asyncio
import os
import queue
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import nbformat
import pytest
from jupyter_client.manager import start_new_kernel
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook
from panels import in_use, until

from fixtures.graphs import chunks
from fixtures.labs.button import ButtonTest
from fixtures.labs.cancel_panel import CancelLab
from fixtures.labs.panel import Panel

SENTENCE = "The Cancel lab is here once you run this cell: click into it and press Shift + Enter."


def panel(**options):
    return in_use(CancelLab(**{"pace_s": 0.05, "kept_s": 0.1} | options))


def shown(lab: CancelLab) -> str:
    return lab._lanes.value + lab._moments.value + lab._said.value


async def test_every_button():
    async with panel() as lab:
        lab.cancel_at.value = 3
        lab.start.click()
        await lab.settled()
        assert shown(lab).count("page only") == 3
        assert "Cancelled when the page showed 3 chunks. The thread holds no chunk." in lab._said.value
        lab.refresh.click()
        await lab.settled()
        assert shown(lab).count("· lost") == 3
        assert "3 lost" in lab._lanes.value
        lab.resume.click()
        await lab.settled()
        assert shown(lab).count("· saved") == 6
        lab.next_message.click()
        await lab.settled()
        lab.cancel_at.value, lab.shape.value, lab.durability.value = 0, "stepwise", "exit"
        lab.start.click()
        lab.cancel.click()
        await lab.settled()
        lab.start.click()
        await until(lambda: len(lab.session.page.chunks) == 2)
        lab.lose_page.click()
        await lab.settled()
        assert "After 0.1 s, the stream still referred to: <b>" in lab._moments.value
        assert "Then, the last reference dropped: <b>" in lab._moments.value
        lab.compare.click()
        await lab.settled()
        assert lab._beside.value.count("<tr") == 18
        assert list(lab.results()["begun"]) == ["start", "continue", "next message", "start", "start"]
        assert len(lab.beside_automatic()) == 16


async def test_more_and_rows_as_text():
    async with panel() as lab:
        assert lab._hidden.layout.display == "none"
        lab.more.value = True
        await lab.settled()
        assert lab._hidden.layout.display is None
        assert lab.more.description == "Less ▾"
        lab.text_shown.value = True
        await lab.settled()
        assert lab.text.layout.display == "none", "there is no row yet"
        lab.start.click()
        await lab.settled()
        assert lab.text.layout.display is None
        assert lab.text.value == lab.results_text()
        assert lab.text.value.splitlines()[1].startswith("1\tstart\tlong_node\tdefault\tcomplete\t6\t6")


async def test_fewer_chunks_than_the_cancel_asks_for():
    async with panel() as lab:
        lab.cancel_at.value = 5
        lab.chunks.value = 4
        await lab.settled()
        assert lab.cancel_at.value == 0
        assert [value for _, value in lab.cancel_at.options] == [0, 1, 2, 3, 4]
        lab.start.click()
        await lab.settled()
        assert lab.session.page.chunks == list(chunks.PUBLISHED_CHUNKS[:4])


async def test_presses_from_another_thread():
    async with panel(pace_s=0.3) as lab:
        await asyncio.to_thread(lab.start.click)
        await until(lambda: lab.session.page.chunks)
        await asyncio.to_thread(lab.cancel.click)
        await lab.settled()
        assert [run.ending for run in lab.session.runs] == ["cancel by hand"]


async def test_double_clicks_and_presses_out_of_order():
    async with panel() as lab:
        for button in (lab.resume, lab.refresh, lab.next_message, lab.lose_page, lab.cancel):
            button.click()
        await lab.settled()
        assert lab.session.runs == ()
        for button in (lab.start, lab.start, lab.cancel, lab.cancel, lab.start, lab.resume, lab.compare):
            button.click()
        await lab.settled()
        assert len(lab.session.runs) == 1


async def test_an_error_in_the_graph_is_shown_as_text():
    def build(shape, texts, **options):
        raise ValueError("<img src=x onerror=alert(1)>")

    async with panel(build=build) as lab:
        lab.start.click()
        await lab.settled()
        assert "<img" not in lab._said.value
        assert "&lt;img src=x onerror=alert(1)&gt;" in lab._said.value


async def test_chunks_of_another_graph_are_text_too():
    hostile = "<script>alert(1)</script>"

    def build(shape, texts, *, delay_s, on_chunk):
        return chunks.build(shape, [hostile, *texts[1:]], delay_s=delay_s, on_chunk=on_chunk)

    async with panel(build=build) as lab:
        lab.start.click()
        await lab.settled()
        assert "<script" not in shown(lab)
        assert lab._lanes.value.count("&lt;script&gt;alert(1)&lt;/script&gt;</span>") == 2


async def test_a_newer_panel_retires_the_older_one():
    async with panel(pace_s=0.3) as old:
        folder = Path(old.session._folder.name)
        old.start.click()
        await until(lambda: old.session.page.chunks)
        start, view = old.start, old._view
        async with panel() as new:
            assert old.retired
            assert "A newer Cancel lab has taken the place of this one" in view.children[0].value
            await old.settled()
            await until(lambda: not folder.exists())
            start.click()
            await old.settled()
            assert not old.busy()
            new.start.click()
            await new.settled()
            assert len(new.session.runs) == 1
        assert CancelLab not in Panel._newest


async def test_it_reads_as_a_sentence():
    async with panel() as lab:
        assert repr(lab) == SENTENCE
        shown = lab._repr_mimebundle_()
        data = shown[0] if isinstance(shown, tuple) else shown
        assert data["text/plain"] == SENTENCE
        assert "application/vnd.jupyter.widget-view+json" in data


def test_without_a_loop_it_says_what_it_needs():
    with pytest.raises(RuntimeError, match="no running event loop for the Cancel lab"):
        CancelLab()


async def test_a_panel_of_another_kind_retires_nothing():
    async with panel() as lab:
        other = ButtonTest()
        assert not lab.retired
        other.button.click()
        await other.settled()
        assert "you pressed once" in other.answer.value
        other.retire()
        assert not lab.retired


# In a kernel

MAKE = "from fixtures.labs.cancel_panel import CancelLab\nlab = CancelLab(pace_s=0.2)\nlab"


class Kernel:
    def __init__(self, manager, client):
        self.manager, self.client = manager, client

    def run(self, code: str) -> str:
        """Run code and return what it printed, and the name of what it raised."""
        said = []

        def note(message) -> None:
            content = message["content"]
            said.append(content.get("text") or content.get("ename") or "")

        self.client.execute_interactive(code, timeout=120, output_hook=note)
        return "".join(said)

    def run_until(self, code: str, seen: str) -> None:
        """Begin to run code, and return when it has printed ``seen``."""
        # Else a kernel that is interrupted here would leave out what it is asked next.
        number = self.client.execute(code, stop_on_error=False)
        end = time.monotonic() + 120
        while time.monotonic() < end:
            try:
                message = self.client.get_iopub_msg(timeout=1)
            except queue.Empty:
                continue
            if message["parent_header"].get("msg_id") == number and seen in message["content"].get(
                "text", ""
            ):
                return
        raise AssertionError(f"the kernel did not print {seen!r}")


@contextmanager
def kernel() -> Iterator[Kernel]:
    manager, client = start_new_kernel(kernel_name="python3")
    try:
        yield Kernel(manager, client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel()


def test_interrupting_the_kernel_does_not_break_a_run():
    with kernel() as python:
        python.run(MAKE)
        for cell in ("await lab.settled()", "import time; time.sleep(60)"):
            python.run_until(f"lab.start.click(); print('begun', flush=True); {cell}", "begun")
            python.manager.interrupt_kernel()
            python.client.get_shell_msg(timeout=120)
            ended = python.run(
                "await lab.settled(); print(lab.session.runs[-1].ending, lab.session.sentence)"
            )
            assert ended.startswith("complete The run has ended by itself; the page shows 6 chunks.")


def test_a_kernel_that_ends_in_the_middle_of_a_run_ends_at_once_and_leaves_no_folder():
    with kernel() as python:
        python.run(MAKE.replace("0.2", "5"))
        folder = Path(python.run("print(lab.session._folder.name)").strip())
        began = (
            "lab.start.click()\nimport asyncio\nwhile not lab.session.page.chunks: await asyncio.sleep(0.01)"
        )
        assert python.run(f"{began}\nprint('reading')").strip() == "reading"
        assert folder.exists()
        python.client.shutdown()
        end = time.monotonic() + 60
        while python.manager.is_alive() and time.monotonic() < end:
            time.sleep(0.05)
        assert not python.manager.is_alive(), "a thread of the database keeps the kernel alive"
        assert not folder.exists()


def test_a_notebook_cell_presses_the_buttons_under_nbval_strict(tmp_path: Path):
    cells = [
        "from fixtures.labs.cancel_panel import CancelLab",
        "lab = CancelLab(pace_s=0.1)\nlab",
        "lab.cancel_at.value = 3\nlab.start.click()\nawait lab.settled()\nprint(lab.session.sentence)",
        "lab.shape.value, lab.durability.value = 'stepwise', 'sync'\nlab.start.click()\nawait lab.settled()",
        "print(lab.session.sentence)",
        "lab.refresh.click()\nlab.resume.click()\nawait lab.settled()\nlab.results()",
        "lab.compare.click()\nawait lab.settled()\nlab.beside_automatic()",
    ]
    made = new_notebook(cells=[new_code_cell(cell) for cell in cells])
    made.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    file = tmp_path / "lab.ipynb"
    ran = NotebookClient(made, timeout=300, store_widget_state=False).execute()
    assert ran.cells[1].outputs[0]["data"]["text/plain"] == SENTENCE
    assert "The thread holds no chunk." in ran.cells[2].outputs[0]["text"]
    assert "2 in its newest checkpoint, 1 in pending writes" in ran.cells[4].outputs[0]["text"]
    nbformat.write(ran, file)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--nbval",
        "--nbval-current-env",
        "-q",
        "-p",
        "no:cacheprovider",
        file,
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout
    assert f"{len(cells)} passed" in done.stdout


def test_importing_the_panel_makes_no_folder_and_no_thread(tmp_path: Path):
    code = "import threading, fixtures.labs.cancel_panel; print(threading.active_count())"
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stdout.strip() == "1"
    assert list(tmp_path.iterdir()) == []
