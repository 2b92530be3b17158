"""The Approval desk's panel, its real widgets pressed: without a browser, and in kernels.

Chapter 06 shows it under nbval strict.
"""

import asyncio
import shutil
import time
from html import unescape
from pathlib import Path

from panels import in_use, pressed, until
from test_cancel_panel import kernel

from fixtures.experiments.interrupt import DESIGNS
from fixtures.labs.approval import ORDERS, STRANGER, THREADS
from fixtures.labs.approval_panel import ABOUT, ApprovalDesk
from fixtures.labs.cancel_panel import CancelLab
from fixtures.labs.panel import Panel
from fixtures.views.desk import card

SENTENCE = "The Approval desk is here once you run this cell: click into it and press Shift + Enter."
FIRST, SECOND, THIRD = ORDERS


def panel(**options):
    return in_use(ApprovalDesk(**{"mail_s": 0} | options))


async def test_every_button():
    async with panel() as lab:
        lab.design.value = "after"
        await pressed(lab, lab.new_orders)
        assert "asks: <b>order-1?</b>" in lab._cards[FIRST].value
        assert "nobody has started this thread" in lab._cards[STRANGER].value
        assert lab._results.layout.display == "none"
        await pressed(
            lab, lab.yes[FIRST], lab.no[SECOND], lab.yes_twice[THIRD], lab.no[FIRST], lab.yes[STRANGER]
        )
        assert "Now order-9 exists. No order waits." in lab._said.value
        assert "failed: KeyError(&#x27;order&#x27;)" in lab._cards[STRANGER].value
        assert "1 unused answer" in lab._cards[FIRST].value
        assert "'approved': False" in unescape(lab._cards[SECOND].value)
        assert lab._results.value.count("<tr") == 6
        assert lab._results.layout.display is None
        rows = lab.results()
        assert list(rows["answer"]) == ["yes", "no", "yes × 2", "no", "yes"]
        assert list(rows["found"]) == ["waiting", "waiting", "waiting", "finished", "never"]
        assert list(lab.threads()["entries"]) == [2, 2, 3, 1]


async def test_a_mail_delivered_twice_is_said_in_words():
    async with panel() as lab:
        await pressed(lab, lab.new_orders, lab.no[FIRST])
        assert "more than one" in lab._cards[FIRST].value
        assert "1 before the answer" in lab._cards[FIRST].value
        assert "more than one" not in lab._cards[SECOND].value


async def test_a_design_that_is_chosen_but_not_on_the_desk():
    async with panel() as lab:
        assert tuple(lab.design.options) == tuple(DESIGNS) == tuple(ABOUT)
        await pressed(lab, lab.new_orders)
        lab.design.value = "split"
        await lab.settled()
        assert f"{ABOUT['split']} The orders on the desk are still naive." in lab._about.value
        await pressed(lab, lab.new_orders)
        assert "still" not in lab._about.value


async def test_presses_from_another_thread():
    async with panel() as lab:
        await asyncio.to_thread(lab.new_orders.click)
        await lab.settled()
        await asyncio.to_thread(lab.yes_twice[FIRST].click)
        await lab.settled()
        assert [row.answer for row in lab.session.presses] == ["yes × 2"]


async def test_double_clicks_and_presses_out_of_order():
    async with panel(mail_s=0.1) as lab:
        answers = [buttons[thread] for buttons in (lab.yes, lab.no, lab.yes_twice) for thread in THREADS]
        await pressed(lab, *answers)
        assert lab.session.presses == ()
        for button in (lab.new_orders, lab.new_orders, *answers):
            button.click()
        await lab.settled()
        assert lab.session.presses == ()
        for button in (lab.yes[FIRST], lab.yes[FIRST], lab.new_orders, *answers):
            button.click()
        await lab.settled()
        assert [(row.thread, row.answer) for row in lab.session.presses] == [(FIRST, "yes")]
        assert lab.session.seen[FIRST].entries == 2


async def test_a_newer_panel_retires_the_older_one_also_while_two_answers_are_on_their_way():
    async with panel(mail_s=0.2) as old:
        folder = Path(old.session._folder.name)
        await pressed(old, old.new_orders)
        old.yes_twice[FIRST].click()
        await until(old.busy)
        button, view = old.yes[SECOND], old._view
        async with panel() as new:
            assert old.retired
            assert "A newer Approval desk has taken the place of this one" in view.children[0].value
            await old.settled()
            await until(lambda: not folder.exists())
            button.click()
            await old.settled()
            assert not old.busy()
            await pressed(new, new.new_orders, new.yes[FIRST])
            assert len(new.session.presses) == 1
        assert ApprovalDesk not in Panel._newest


async def test_a_folder_that_somebody_removed_is_a_sentence():
    async with panel() as lab:
        await pressed(lab, lab.new_orders)
        shutil.rmtree(lab.session._folder.name)
        await pressed(lab, lab.yes[FIRST])
        assert "The call failed with OperationalError: unable to open database file" in lab._said.value
        await pressed(lab, lab.new_orders)
        assert "The call failed with FileNotFoundError" in lab._said.value
        assert lab.session.presses == ()


async def test_a_panel_of_another_kind_retires_nothing():
    async with panel() as lab:
        other = CancelLab()
        other.retire()
        assert not lab.retired


async def test_it_reads_as_a_sentence():
    async with panel() as lab:
        assert repr(lab) == SENTENCE
        shown = lab._repr_mimebundle_()
        data = shown[0] if isinstance(shown, tuple) else shown
        assert data["text/plain"] == SENTENCE
        assert "application/vnd.jupyter.widget-view+json" in data


def test_what_a_card_shows_is_text():
    hostile = "<img src=x onerror=alert(1)>"
    for status in ("never", "waiting", "failed", "stopped", "finished"):
        made = card(
            hostile,
            status=status,
            question=hostile,
            error=hostile,
            next=(hostile,),
            values={hostile: hostile},
            entered={hostile: 1, "b": 2},
        )
        assert "<img" not in made
        assert made.count("&lt;img") > 3


# In a kernel

MAKE = "from fixtures.labs.approval_panel import ApprovalDesk\nlab = ApprovalDesk(mail_s={mail_s})\nlab"


def test_interrupting_the_kernel_does_not_break_an_answer():
    with kernel() as python:
        python.run(MAKE.format(mail_s=1))
        python.run("lab.design.value = 'after'; lab.new_orders.click(); await lab.settled()")
        cells = ("await lab.settled()", "import time; time.sleep(60)")
        for thread, cell in zip(ORDERS, cells, strict=False):
            python.run_until(
                f"lab.yes_twice['{thread}'].click(); print('begun', flush=True); {cell}", "begun"
            )
            python.manager.interrupt_kernel()
            python.client.get_shell_msg(timeout=120)
            ended = python.run("await lab.settled(); print(lab.session.sentence)")
            assert ended.startswith(
                f"{thread} got two yeses at the same time. Node ask was entered twice more"
            )


def test_a_kernel_that_ends_in_the_middle_of_two_answers_ends_soon_and_leaves_no_folder():
    with kernel() as python:
        python.run(MAKE.format(mail_s=1))
        python.run("lab.new_orders.click(); await lab.settled()")
        folder = Path(python.run("print(lab.session._folder.name)").strip())
        assert python.run("lab.yes_twice['order-1'].click(); print('begun')").strip() == "begun"
        assert folder.exists()
        python.client.shutdown()
        end = time.monotonic() + 60
        while python.manager.is_alive() and time.monotonic() < end:
            time.sleep(0.05)
        assert not python.manager.is_alive(), "a thread of the desk keeps the kernel alive"
        assert not folder.exists()
