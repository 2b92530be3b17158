"""The Approval desk's model: every answer at every moment, told truthfully, with nothing left behind."""

import asyncio
import gc
import os
import sqlite3
import threading
from collections import Counter
from contextlib import asynccontextmanager, closing
from pathlib import Path

import psutil
import pytest
from langgraph.types import Command
from panels import until

from fixtures.experiments.interrupt import DESIGNS, try_designs
from fixtures.experiments.options import BadOption
from fixtures.labs import approval
from fixtures.labs.approval import ORDERS, STRANGER, THREADS, Session
from fixtures.savers import open_saver

FIRST, SECOND, THIRD = ORDERS
ASKS_AFTER_A_MAIL = {"naive": 1, "after": 0, "split": 0, "keyed": 1}
"""Mails that a design sends before anybody can answer."""


@asynccontextmanager
async def opened(design: str | None = None, **options):
    session = Session(**{"mail_s": 0} | options)
    try:
        if design is not None:
            session.place(design)
            await session.settled()
        yield session
    finally:
        session.close()
        await session.settled()


async def answered(desk: Session, *answers) -> None:
    for thread, value in answers:
        desk.answer(thread, value)
        await desk.settled()


async def twice(desk: Session, thread: str, value=True) -> None:
    desk.answer_twice(thread, value)
    await desk.settled()


def counts(desk: Session, thread: str) -> tuple[int, int, int]:
    one = desk.seen[thread]
    return one.entries, one.handed_in, one.delivered


def threads() -> int:
    """Count threads, without those that asyncio keeps in store for ordinary functions, such as the nodes."""
    return sum(not one.name.startswith("asyncio_") for one in threading.enumerate())


# Questions and answers


@pytest.mark.parametrize("design", DESIGNS)
async def test_three_orders_wait_and_nobody_has_placed_the_fourth(design):
    async with opened(design) as desk:
        mails = ASKS_AFTER_A_MAIL[design]
        for order in ORDERS:
            seen = desk.seen[order]
            assert (seen.status, seen.question, seen.next) == ("waiting", order, ("ask",))
            assert (seen.values, seen.entered) == ({"order": order}, {"ask": 1})
            assert (seen.before_answer, seen.handed_in, seen.delivered) == (mails, mails, mails)
        stranger = desk.seen[STRANGER]
        assert (stranger.status, stranger.next, stranger.values) == ("never", (), {})
        assert stranger.entries == stranger.handed_in == 0
        told = "3 mails were" if mails else "No mails were"
        assert desk.sentence == f"3 orders wait for an answer. {told} handed in before any answer."


@pytest.mark.parametrize("design", DESIGNS)
async def test_each_answer_counts_as_in_the_chapter(design):
    answers = (True, False, "no")
    async with opened(design) as desk:
        await answered(desk, *zip(ORDERS, answers, strict=True))
        for order, known in zip(ORDERS, try_designs(designs=[design], answers=answers), strict=True):
            seen = desk.seen[order]
            assert (seen.before_answer, seen.handed_in, seen.delivered) == (
                known.sent_before,
                known.sent,
                known.delivered,
            )
            assert (seen.status, seen.next) == ("finished", ())
            assert seen.values["approved"] is (known.answer == "True")
            assert seen.entered["ask"] == 2
        assert [row.answer for row in desk.presses] == ["yes", "no", "'no'"]


async def test_a_yes_to_each_design_in_words():
    told = {
        "naive": "Node ask was entered once more, twice in all. "
        "2 mails were handed in, 1 of them before the answer, and 2 delivered.",
        "after": "Node ask was entered once more, twice in all. 1 mail was handed in and delivered.",
        "split": "Node ask was entered once more, twice in all; confirm once. "
        "1 mail was handed in and delivered.",
        "keyed": "Node ask was entered once more, twice in all. "
        "2 mails were handed in, 1 of them before the answer, and 1 delivered: the server knew the key.",
    }
    async with opened() as desk:
        for design in DESIGNS:
            desk.place(design)
            await desk.settled()
            await answered(desk, (SECOND, True))
            assert desk.sentence == f"order-2 got the answer yes. {told[design]}"


@pytest.mark.parametrize("design", DESIGNS)
async def test_too_late_changes_nothing_and_nobody_hears_of_it(design):
    async with opened(design) as desk:
        await answered(desk, (FIRST, True))
        before = counts(desk, FIRST)
        await answered(desk, (FIRST, False))
        seen = desk.seen[FIRST]
        assert counts(desk, FIRST) == before
        assert (seen.status, seen.values["approved"], seen.unused) == ("finished", True, 1)
        assert desk.sentence == (
            "order-1 got the answer no, too late: it was finished. "
            "No node was entered, and nobody got an error. An answer lies in the thread, unused."
        )
        row = desk.presses[-1]
        assert (row.found, row.entered, row.handed_in, row.ended, row.left) == (
            "finished", 0, 0, "finished", "finished",
        )  # fmt: skip


TWICE = {"naive": (3, 3, 3), "after": (3, 2, 1), "split": (5, 2, 1), "keyed": (3, 3, 1)}
"""What two yeses at the same time lead to: entries, mails handed in, mails delivered."""


@pytest.mark.parametrize("design", DESIGNS)
async def test_twice_at_the_same_time_both_find_the_question(design):
    async with opened(design) as desk:
        for order in ORDERS:
            await twice(desk, order)
            assert counts(desk, order) == TWICE[design]
            assert desk.seen[order].status == "finished"
            assert desk.sentence.startswith(f"{order} got two yeses at the same time. Node ask was entered ")
            assert "twice more, 3 times in all" in desk.sentence
            assert desk.sentence.endswith("Nobody got an error.")
            assert desk.presses[-1].answer == "yes × 2"
            assert max(await children(desk.path, order)) == 2, "the history forks where both went on"


async def children(path: Path, thread: str) -> list[int]:
    """Count the checkpoints that follow each checkpoint of a thread."""
    async with open_saver("async_sqlite", path) as saver:
        found = [one async for one in saver.alist({"configurable": {"thread_id": thread}})]
    parents = [one.parent_config["configurable"]["checkpoint_id"] for one in found if one.parent_config]
    return list(Counter(parents).values())


@pytest.mark.parametrize("design", DESIGNS)
async def test_one_after_the_other_the_second_is_too_late(design):
    async with opened(design) as desk:
        await answered(desk, (FIRST, True))
        once = counts(desk, FIRST)
        await answered(desk, (FIRST, True))
        assert counts(desk, FIRST) == once
        assert max(await children(desk.path, FIRST)) == 1
        await twice(desk, FIRST)
        assert counts(desk, FIRST) == once
        assert desk.sentence.startswith("order-1 got two yeses at the same time, too late: it was finished.")


async def test_twice_holds_again_and_again():
    async with opened() as desk:
        for _ in range(10):
            for design in ("after", "split"):
                desk.place(design)
                await desk.settled()
                await twice(desk, FIRST)
                assert counts(desk, FIRST) == TWICE[design]


@pytest.fixture
def second_call(monkeypatch):
    """A function that puts something before the second of two calls; an error it returns is the call's."""

    def put_before(do) -> None:
        real, calls = approval._Desk.call, []

        async def call(desk, saver, thread, given):
            calls.append(thread)
            if desk.meeting is not None and calls.count(thread) == 3:  # the first has placed the order
                error = await do()
                if error is not None:
                    return error
            return await real(desk, saver, thread, given)

        monkeypatch.setattr(approval._Desk, "call", call)

    return put_before


@pytest.mark.parametrize("design", DESIGNS)
async def test_the_second_of_two_answers_may_be_slow(design, second_call):
    second_call(lambda: asyncio.sleep(0.3))
    async with opened(design) as desk:
        await twice(desk, FIRST)
        assert counts(desk, FIRST) == TWICE[design]


async def test_the_first_of_two_answers_does_not_wait_for_one_that_is_over(second_call, monkeypatch):
    async def fail() -> Exception:
        return RuntimeError("no worker is left")

    second_call(fail)
    monkeypatch.setattr(approval, "MEET_S", 600)
    async with opened("after") as desk, asyncio.timeout(60):
        await twice(desk, FIRST)
        assert desk.sentence.endswith("The call failed with RuntimeError: no worker is left.")
        assert counts(desk, FIRST) == (2, 1, 1)
        assert desk.presses[-1].ended == "finished and RuntimeError"


async def test_two_noes_send_nothing():
    async with opened("after") as desk:
        await twice(desk, FIRST, value=False)
        assert counts(desk, FIRST) == (3, 0, 0)
        assert desk.sentence == (
            "order-1 got two noes at the same time. Node ask was entered twice more, 3 times in all. "
            "No mail was sent. Nobody got an error."
        )


@pytest.mark.parametrize("design", DESIGNS)
async def test_the_wrong_thread_is_started_and_fails(design):
    async with opened(design) as desk:
        before = {order: counts(desk, order) for order in ORDERS}
        await answered(desk, (SECOND, False), (STRANGER, True))
        seen = desk.seen[STRANGER]
        assert (seen.status, seen.error, seen.next) == ("failed", "KeyError('order')", ("ask",))
        assert counts(desk, STRANGER) == (1, 0, 0)
        assert desk.sentence == (
            "order-9 got the answer yes, but nobody had started this thread. Node ask was entered once. "
            "No mail was sent. The call failed with KeyError: 'order'. "
            "Now order-9 exists. 2 orders still wait."
        )
        assert {order: counts(desk, order) for order in (FIRST, THIRD)} == {
            order: before[order] for order in (FIRST, THIRD)
        }
        await twice(desk, STRANGER)
        assert counts(desk, STRANGER) == (3, 0, 0)
        assert "got two yeses at the same time after it had failed." in desk.sentence
        assert [row.ended for row in desk.presses] == ["finished", "KeyError", "KeyError"]


async def test_a_value_that_is_no_answer():
    async with opened("after") as desk:
        await answered(desk, (FIRST, None))
        assert desk.seen[FIRST].status == "waiting"
        assert "No node was entered. The call failed with UnboundLocalError" in desk.sentence
        await answered(desk, (FIRST, {}))
        assert desk.presses[-1].ended == "asks again"
        assert desk.sentence.endswith("No mail was sent. order-1 still waits.")


async def test_what_another_program_did_to_the_thread_is_seen():
    async with opened("split") as desk:
        async with open_saver("async_sqlite", desk.path) as saver:
            graph = DESIGNS["split"](lambda order, key: None).compile(checkpointer=saver)
            await graph.aupdate_state(
                {"configurable": {"thread_id": FIRST}}, {"approved": True}, as_node="ask"
            )
            await graph.ainvoke(Command(resume=True), {"configurable": {"thread_id": SECOND}})
        await answered(desk, (FIRST, False))
        assert desk.sentence == (
            "order-1 got the answer no after it had stopped before confirm. "
            "Node confirm was entered once. 1 mail was handed in and delivered."
        )
        await answered(desk, (SECOND, True))
        assert desk.presses[-1].found == "finished"


# Presses at the wrong moment


async def test_before_the_first_orders():
    async with opened() as desk:
        for press in (desk.answer, desk.answer_twice):
            for thread in THREADS:
                press(thread, True)
                assert desk.sentence == "There is nothing on the desk yet: press New orders first."
        assert not desk.busy
        assert (desk.design, desk.path, desk.presses) == ("", None, ())
        assert list(desk.threads()["status"]) == ["never"] * 4
        with pytest.raises(ValueError, match="press New orders"):
            desk.results()


async def test_while_something_is_on_its_way_nothing_else_begins():
    async with opened(mail_s=0.1) as desk:
        begun = {
            "three orders come in": lambda: desk.place("naive"),
            "yes for order-1": lambda: desk.answer(FIRST, True),
            "yes × 2 for order-2": lambda: desk.answer_twice(SECOND, True),
            "no for order-9": lambda: desk.answer(STRANGER, False),
        }
        for doing, begin in begun.items():
            begin()
            assert desk.sentence == f"On its way: {doing}."
            for press in begun.values():
                press()
                assert desk.sentence == f"Still on its way: {doing}. Press again when that is over."
            await asyncio.sleep(0)
            desk.answer(FIRST, True)
            assert desk.sentence.startswith("Still on its way")
            await desk.settled()
            assert not desk.sentence.startswith("Still")
        assert [row.answer for row in desk.presses] == ["yes", "yes × 2", "no"]
        assert (counts(desk, FIRST), counts(desk, SECOND)) == ((2, 2, 2), (3, 3, 3))


async def test_new_orders_take_the_place_of_the_old_ones():
    async with opened("naive") as desk:
        await answered(desk, (FIRST, True), (STRANGER, True))
        old = desk.path
        desk.place("split")
        assert not old.parent.exists()
        assert desk.design == "split"
        assert {one.status for one in desk.seen.values()} == {"never"}
        await desk.settled()
        assert [counts(desk, order) for order in THREADS] == [(1, 0, 0)] * 3 + [(0, 0, 0)]
        assert len(desk.presses) == 2, "what was answered before stays in the table"


@pytest.mark.parametrize(
    ("press", "says"),
    [
        (lambda desk: desk.place("clever"), "design must be one of naive, after, split, keyed"),
        (lambda desk: desk.answer("order-7", True), "thread must be one of order-1"),
        (lambda desk: desk.answer_twice("", True), "thread must be one of order-1"),
    ],
)
async def test_what_the_desk_does_not_have(press, says):
    async with opened("after") as desk:
        with pytest.raises(BadOption, match=says):
            press(desk)
        assert not desk.busy


# What goes wrong


@pytest.mark.parametrize("times", [1, 2])
async def test_a_locked_database_is_a_sentence_and_the_desk_goes_on(times):
    async with opened("keyed") as desk:
        press = desk.answer if times == 1 else desk.answer_twice
        with closing(sqlite3.connect(desk.path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            press(FIRST, True)
            await desk.settled()
            assert (
                "Another program has locked the database: end its transaction, then press again."
                in desk.sentence
            )
            assert "OperationalError" in desk.presses[-1].ended
            other.execute("ROLLBACK")
        assert desk.seen[FIRST].status == "waiting"
        await answered(desk, (FIRST, True))
        assert desk.seen[FIRST].status == "finished"
        assert desk.seen[FIRST].delivered == 1


async def test_a_database_that_is_gone_is_a_sentence():
    async with opened("after") as desk:
        for ending in ("", "-wal", "-shm"):
            desk.path.with_name(desk.path.name + ending).unlink(missing_ok=True)
        desk.path.mkdir()
        await answered(desk, (FIRST, True))
        assert desk.sentence.startswith("The call failed with OperationalError: ")
        desk.place("after")
        await desk.settled()
        assert desk.sentence.startswith("3 orders wait")


# Results, and what is left


async def test_tables():
    async with opened("after") as desk:
        await answered(desk, (FIRST, True), (SECOND, False))
        frame = desk.results()
        assert list(frame.index) == [1, 2]
        assert list(frame["answer"]) == ["yes", "no"]
        assert list(frame["handed_in"]) == [1, 0]
        now = desk.threads()
        assert list(now.index) == list(THREADS)
        assert list(now["status"]) == ["finished", "finished", "waiting", "never"]
        assert list(now["entries"]) == [2, 2, 1, 0]


@pytest.mark.parametrize("after", ["orders", "asked", "one", "two", "in a node", "nothing"])
async def test_close_at_any_moment_removes_everything(after):
    before = threads()
    desk = Session(mail_s=0.1)
    folder = Path(desk._folder.name)
    assert folder.is_dir()
    if after != "nothing":
        desk.place("naive")
    if after not in ("nothing", "orders"):
        await desk.settled()
    if after in ("one", "in a node"):
        desk.answer(FIRST, True)
    if after == "two":
        desk.answer_twice(FIRST, True)
    if after in ("two", "in a node"):
        entries = folder / "desk-1" / "entries.txt"
        await until(lambda: len(entries.read_text().splitlines()) > 3)
    desk.close()
    desk.close()
    await desk.settled()
    await until(lambda: not folder.exists())
    await until(lambda: threads() == before)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_session_that_is_forgotten_leaves_no_folder():
    async with opened("after") as kept:
        desk = Session(mail_s=0)
        desk.place("after")
        await desk.settled()
        folder = desk.path.parents[1]
        with pytest.warns(ResourceWarning, match="Implicitly cleaning up"):  # noqa: PT031
            desk = None
            gc.collect()
        assert not folder.exists()
        assert kept.path.exists()


async def test_many_answers_leave_nothing_open():
    this = psutil.Process()

    def left(desk: Session) -> tuple:
        gc.collect()
        files = len([one for one in this.open_files() if "fixtures-desk" in one.path])
        return len(asyncio.all_tasks()), threads(), files, len(os.listdir(desk.path.parents[1]))

    async with opened("naive") as desk:
        before = left(desk)
        for design in (*DESIGNS, *DESIGNS):
            desk.place(design)
            await desk.settled()
            await answered(desk, (FIRST, True), (FIRST, False), (STRANGER, True))
            await twice(desk, SECOND)
        assert left(desk) == before
        assert before[0] == 1, "this test itself"
        assert before[2] == 0
        assert len(desk.presses) == 32


async def test_who_waits_and_is_cancelled_cancels_nothing_else():
    async with opened("naive", mail_s=0.1) as desk:
        desk.answer(FIRST, True)
        waiting = asyncio.create_task(desk.settled())
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await desk.settled()
        assert desk.seen[FIRST].status == "finished"
