"""The Kill lab's panel, its real widgets pressed: without a browser, and in kernels.

Chapter 09 shows it under nbval strict.
"""

import asyncio
import html
import re
import subprocess
import sys
import time

import psutil
from panels import in_use, pressed, until
from test_cancel_panel import kernel
from test_kill import below, own_temp  # noqa: F401 (a temporary folder of each test's own, empty at its end)

from fixtures.experiments.kill import DURABILITIES, POINTS, STREAMS
from fixtures.labs.approval_panel import ApprovalDesk
from fixtures.labs.kill_panel import ABOUT, MOMENTS, ONE_PUT, KillLab
from fixtures.labs.panel import Panel
from fixtures.views import charts, deaths

SENTENCE = "The Kill lab is here once you run this cell: click into it and press Shift + Enter."


def panel(**options):
    return in_use(KillLab(**{"pace_s": 0.02} | options))


def chips(lab: KillLab, lane: str) -> list[str]:
    """Return what the chips of a lane say of themselves."""
    (items,) = re.findall(f'aria-label="Steps {lane}">(.*?)</ol>', lab._lanes.value)
    return re.findall(r"\d · (.*?)</span>", items)


def titles(lab: KillLab) -> list[str]:
    found = re.findall('class="fx-title">(.*?)</p>', lab._lanes.value)
    return [html.unescape(re.sub("<.*?>", "", one)) for one in found]


async def test_every_button():
    async with panel() as lab:
        assert titles(lab) == [
            "The consumer has seen 0 of 6",
            "The thread on disk holds ? of 6 · read when the process is dead",
            "The second process ran 0 of 6 · not started",
            "The outside world counted ? effects · counted when the process is dead",
        ]
        assert (lab._results.layout.display, lab._chart.layout.display) == ("none", "none")
        lab.moment.value = "in-put"
        await pressed(lab, lab.kill)
        assert titles(lab)[:2] == [
            "The consumer had seen 2 of 6",
            "The thread on disk holds 3 of 6 · 1 only in pending writes",
        ]
        assert chips(lab, "on disk") == ["checkpoint", "checkpoint", "pending"]
        await pressed(lab, lab.second)
        assert titles(lab)[2] == "The second process ran 3 of 6 · none of them again"

        lab.moment.value, lab.step.value, lab.reads.value = "in-node", 2, "custom+updates"
        await pressed(lab, lab.kill, lab.second)
        assert chips(lab, "that the consumer saw") == ["saved"]
        assert chips(lab, "that the second process ran") == ["again", "ran", "ran", "ran", "ran"]
        assert chips(lab, "whose effect happened") == ["once", "twice", "once", "once", "once", "once"]
        assert titles(lab)[2:] == [
            "The second process ran 5 of 6 · 1 of them again", "The outside world counted 7 effects"
        ]  # fmt: skip

        lab.durability.value, lab.moment.value, lab.reads.value = "exit", "seen", "updates"
        await pressed(lab, lab.kill, lab.second)
        assert chips(lab, "that the consumer saw") == ["lost", "lost"]
        assert titles(lab) == [
            "The consumer had seen 2 of 6 · 2 lost",
            "The thread on disk holds 0 of 6 · there is no thread",
            "The second process ran 0 of 6 · nothing to resume",
            "The outside world counted 2 effects",
        ]
        assert "after step 2" in lab._chart.value
        await pressed(lab, lab.more)
        assert "20 trials are over, 21 in all." in lab._said.value
        assert "no thread in 21 of 21" in lab._results.value
        assert lab._bar.value == ""
        assert list(lab.results().index.get_level_values("moment")) == ["in-put", "in-node", "seen"]
        assert len(lab.trials()) == 23


async def test_the_bar_and_the_table_grow_and_the_picture_says_what_they_say(monkeypatch):
    drawn, draw = [], charts.heatmap
    monkeypatch.setattr(charts, "heatmap", lambda *args, **kw: drawn.append(1) or draw(*args, **kw))
    async with panel() as lab:
        bars, tables = [], []
        lab._bar.observe(lambda change: bars.append(change.new), names="value")
        lab._results.observe(lambda change: tables.append(change.new), names="value")
        await pressed(lab, lab.more)
        assert [re.search(r"(\d+) of 20", bar)[1] for bar in bars[:-1]] == [str(done) for done in range(21)]
        assert 'max="20" value="7" aria-label="Trials that are over"' in bars[7]
        assert [re.search(r"3 in (\d+) of \1", one)[1] for one in tables] == [str(n) for n in range(1, 21)]
        alt = re.search('alt="(.*?)"', lab._chart.value)[1]
        assert alt == (
            "Moment: update seen; the consumer reads updates. "
            "After SIGKILL, sync lost no step that had been seen."
        )
        assert f"<figcaption>{alt}</figcaption>" in lab._chart.value
        lab.step.value = 5
        await lab.settled()
        assert drawn == [1], "a picture is drawn when all trials are over, and never the same one again"


async def test_the_picture_has_a_place_for_each_durability_and_step(monkeypatch):
    drawn = []

    def keep(figure) -> bytes:
        (axes,) = figure.axes
        names = [
            [one.get_text() for one in labels] for labels in (axes.get_yticklabels(), axes.get_xticklabels())
        ]
        drawn.append((*names, [(one.get_position(), one.get_text()) for one in axes.texts]))
        return b""

    monkeypatch.setattr("fixtures.views.charts._png", keep)
    async with panel() as lab:
        lab.durability.value, lab.moment.value, lab.step.value = "exit", "in-node", 2
        await pressed(lab, lab.kill, lab.second)
    rows = [f"SIGKILL · {durability}" for durability in DURABILITIES]
    assert drawn == [(rows, list("123456"), [((1, 2), "no thread")])]


async def test_each_choice_says_when_the_process_dies():
    async with panel() as lab:
        assert tuple(value for _, value in MOMENTS) == POINTS == tuple(ABOUT)
        assert (tuple(lab.durability.options), tuple(lab.reads.options)) == (DURABILITIES, STREAMS)
        assert (lab.step.min, lab.step.max) == (1, 6)
        for point in POINTS:
            for durability in ("sync", "exit"):
                lab.moment.value, lab.durability.value, lab.step.value = point, durability, 4
                await lab.settled()
                assert ABOUT[point].format(4) in lab._about.value
                assert (ONE_PUT in lab._about.value) == (durability == "exit" and "put" in point)


async def test_presses_from_another_thread_and_double_clicks():
    async with panel() as lab:
        await asyncio.to_thread(lab.second.click)
        await lab.settled()
        assert "No process has died yet" in lab._said.value
        lab._pace_s = 1  # longer than the clicks take
        for button in (lab.kill, lab.kill, lab.second, lab.more):
            await asyncio.to_thread(button.click)
        await lab.settled()
        assert lab.session.kills == ()
        for button in (lab.second, lab.second, lab.kill, lab.more):
            button.click()
        await lab.settled()
        assert len(lab.session.kills) == 1


async def test_a_newer_panel_retires_the_older_one_also_in_the_middle_of_trials(own_temp):  # noqa: F811
    async with panel(pace_s=5) as old:
        old.more.click()
        await until(lambda: len(below()) > 1)
        button, view = old.kill, old._view
        async with panel() as new:
            assert old.retired
            assert "A newer Kill lab has taken the place of this one" in view.children[0].value
            await old.settled()
            assert below() == []
            assert list(own_temp.iterdir()) == []
            button.click()
            await old.settled()
            assert not old.busy()
            await pressed(new, new.kill, new.second)
            assert len(new.session.kills) == 1
        assert KillLab not in Panel._newest


async def test_a_panel_of_another_kind_retires_nothing():
    async with panel() as lab:
        other = ApprovalDesk()
        other.retire()
        await other.settled()
        assert not lab.retired


async def test_it_reads_as_a_sentence():
    async with panel() as lab:
        assert repr(lab) == SENTENCE
        shown = lab._repr_mimebundle_()
        data = shown[0] if isinstance(shown, tuple) else shown
        assert data["text/plain"] == SENTENCE
        assert "application/vnd.jupyter.widget-view+json" in data


def test_what_a_lane_shows_is_text():
    hostile = "<img src=x onerror=alert(1)>"
    made = (
        deaths.seen_lane([hostile], seen=1, saved=0, alive=False)
        + deaths.disk_lane([hostile], in_checkpoint=1, note=hostile)
        + deaths.second_lane([hostile], ran=[1], again=[1], note=hostile)
        + deaths.outside_lane([hostile], happened=[3])
    )
    assert "<img" not in made
    assert made.count("&lt;img") == 10
    assert "1 · 3 times" in made


# In a kernel

MAKE = """
import os, tempfile
from fixtures import processes
processes.ask(os.getpid, time_limit_s=60)  # the fork server has a folder in the usual place
tempfile.tempdir = {folder!r}
from fixtures.labs.kill_panel import KillLab
lab = KillLab(pace_s={pace_s})
lab
"""


def children(pid: int) -> list[psutil.Process]:
    """The processes that die or resume: below the kernel's fork server."""
    return [one for child in psutil.Process(pid).children() for one in child.children(recursive=True)]


def began(python, press: str) -> str:
    """Press, wait in the cell until processes of the lab run, and return the kernel's process id."""
    return python.run(
        f"import asyncio, multiprocessing\n{press}\nawait asyncio.sleep(0)\n"
        "while lab.busy() and not multiprocessing.active_children(): await asyncio.sleep(0.01)\n"
        "print(os.getpid() if lab.busy() else lab.session.sentence)"
    )


def test_a_kernel_that_is_interrupted_goes_on_and_one_that_ends_leaves_nothing(tmp_path):
    folder = tmp_path / "of the kernel"
    folder.mkdir()
    with kernel() as python:
        python.run(MAKE.format(folder=str(folder), pace_s=0.3))
        for cell in ("await lab.settled()", "import time; time.sleep(60)"):
            pid = int(began(python, "lab.kill.click()"))
            python.run_until(f"print('begun', flush=True); {cell}", "begun")
            python.manager.interrupt_kernel()
            python.client.get_shell_msg(timeout=120)
            ended = python.run("await lab.settled(); print(lab.session.sentence)")
            assert ended.strip() == (
                "SIGKILL ended the process when its consumer had seen step 3; the thread on disk holds 3."
            )
            assert children(pid) == []
            assert len(list(folder.iterdir())) == 1, "what the newest death left"

        python.run("lab._pace_s = 5")
        began(python, "lab.more.click()")
        end = time.monotonic() + 60
        while len(list(folder.glob("*/thread.sqlite"))) < 3 and time.monotonic() < end:
            time.sleep(0.05)
        family = psutil.Process(pid).children(recursive=True)
        assert len(children(pid)) > 1
        python.client.shutdown()
        while python.manager.is_alive() and time.monotonic() < end:
            time.sleep(0.05)
        assert not python.manager.is_alive()
        _, alive = psutil.wait_procs(family, timeout=60)
        assert alive == []
        assert list(folder.iterdir()) == []


def test_importing_the_panel_is_cheap():
    """Pictures and tables are imported when there is something to draw."""
    script = """
import asyncio, sys
from fixtures.labs.kill_panel import KillLab

async def make():
    KillLab()

asyncio.run(make())
print([name for name in ("matplotlib", "pandas") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("[]\n", "")
