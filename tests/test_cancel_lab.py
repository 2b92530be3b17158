"""The Cancel lab's model: every press at every moment, told truthfully, with nothing left behind."""

import asyncio
import gc
import os
import sqlite3
import statistics
import threading
import time
from contextlib import asynccontextmanager, closing
from pathlib import Path

import psutil
import pytest
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph
from panels import until

from fixtures.experiments.matrix import DURABILITIES
from fixtures.experiments.options import BadOption
from fixtures.graphs import chunks
from fixtures.graphs.chunks import SHAPES, Answer
from fixtures.labs.cancel import Held, Options, Session

PACE_S = 0.05
TEXTS = chunks.PUBLISHED_CHUNKS


def fast(shape: str = "long_node", durability: str = "default", **options) -> Options:
    return Options(shape=shape, durability=durability, **{"pace_s": PACE_S} | options)


@asynccontextmanager
async def opened(**options):
    session = Session(**{"kept_s": 0.2} | options)
    try:
        yield session
    finally:
        session.close()
        await session.settled()


def threads() -> int:
    """Count threads, without those that asyncio keeps in store for ordinary functions, such as the router."""
    return sum(not one.name.startswith("asyncio_") for one in threading.enumerate())


async def shows(session: Session, number: int) -> None:
    await until(lambda: len(session.page.chunks) >= number)


async def started(session: Session, options: Options) -> Session:
    session.start(options)
    await session.settled()
    return session


def press_when(lab: Session, condition, press) -> None:
    """Press at the very moment when something can be seen, as no test that polls could."""
    pressed = []

    def look() -> None:
        if not pressed and condition():
            pressed.append(True)
            press()

    lab.on_change = look


def saved_of(shape: str) -> tuple[int, int, int]:
    """What a thread holds after a cancel at chunk 3: in all, in the checkpoint, in pending writes."""
    return (0, 0, 0) if shape == "long_node" else (3, 2, 1)


def counts(held: Held) -> tuple[int, int, int]:
    return len(held.saved), len(held.in_checkpoint), len(held.in_pending_writes)


# A cancel, and what comes after it


@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize("shape", SHAPES)
async def test_cancel_at_three_refresh_continue_next_message(shape, durability):
    async with opened() as lab:
        options = fast(shape, durability, cancel_at=3)
        await started(lab, options)
        assert lab.page.chunks == list(TEXTS[:3])
        assert counts(lab.held) == saved_of(shape)
        assert lab.held.tasks == 1
        assert lab.sentence.startswith("Cancelled when the page showed 3 chunks. The thread holds ")

        lab.refresh()
        await lab.settled()
        kept = saved_of(shape)[0]
        assert lab.page.chunks == list(TEXTS[:kept])
        assert lab.lost == TEXTS[kept:3]
        assert ("3 chunks that it had shown: lost" if kept == 0 else "Nothing is lost") in lab.sentence

        lab.resume(options)
        await lab.settled()
        assert lab.page.chunks == list(lab.held.saved) == list(TEXTS)
        assert lab.lost == ()
        again = (
            "first line and made 6 chunks, 3 of them"
            if kept == 0
            else "chunk 4 and made 3 chunks, none of them"
        )
        assert again in lab.sentence

        lab.next_message(options)
        await lab.settled()
        assert "began at the entry, with chunk 1: 6 chunks of the answer before are gone" in lab.sentence
        assert counts(lab.held) == (6, 6, 0)

        rows = [
            (row.begun, row.ending, row.visible, row.saved, row.in_checkpoint, row.lost) for row in lab.runs
        ]
        assert rows == [
            ("start", "cancel at 3", 3, kept, saved_of(shape)[1], 3 - kept),
            ("continue", "complete", 6, 6, 6, 0),
            ("next message", "complete", 6, 6, 6, 0),
        ]


@pytest.mark.parametrize("shape", SHAPES)
async def test_cancel_by_hand_at_the_third_chunk(shape):
    async with opened() as lab:
        press_when(lab, lambda: len(lab.page.chunks) == 3, lab.cancel)
        await started(lab, fast(shape))
        assert lab.page.chunks == list(TEXTS[:3])
        assert counts(lab.held) == saved_of(shape)
        assert lab.runs[0].ending == "cancel by hand"


async def test_cancel_while_the_next_step_works_finds_all_in_the_checkpoint():
    async with opened() as lab:
        press_when(lab, lambda: len(lab.held.in_checkpoint) == len(lab.page.chunks) == 3, lab.cancel)
        # The step works for 0.6 s; a look at the thread every 0.1 s does not miss that.
        await started(lab, fast("stepwise", pace_s=2))
        assert counts(lab.held) == (3, 3, 0)
        assert lab.held.next == ("step",)
        lab.resume(fast())
        await lab.settled()
        assert "went on with chunk 4 and made 3 chunks, none of them" in lab.sentence


async def test_each_step_is_seen_in_pending_writes_before_it_is_in_a_checkpoint():
    seen = []
    async with opened() as lab:
        lab.on_change = lambda: seen.append((len(lab.page.chunks), *counts(lab.held)[1:]))
        await started(lab, fast("stepwise", "sync", pace_s=0.3))
    assert {(2, 1, 1), (3, 2, 1), (6, 5, 1), (6, 6, 0)} <= set(seen)


async def test_the_long_node_shows_everything_before_the_thread_holds_anything():
    seen = []
    async with opened() as lab:
        lab.on_change = lambda: seen.append((len(lab.page.chunks), len(lab.held.saved)))
        await started(lab, fast())
    assert (6, 0) in seen
    assert all(saved in (0, 6) for _, saved in seen)
    assert seen[-1] == (6, 6)


@pytest.mark.parametrize("shape", SHAPES)
async def test_cancel_in_the_turn_of_the_start(shape):
    async with opened() as lab:
        lab.start(fast(shape))
        lab.cancel()
        await lab.settled()
        assert lab.page.chunks == []
        assert (
            lab.sentence == "Cancelled before the first chunk. The thread does not exist: nothing was saved."
        )
        lab.resume(fast(shape))
        await lab.settled()
        assert "nothing to continue: the thread does not exist" in lab.sentence
        lab.next_message(fast(shape))
        await lab.settled()
        assert counts(lab.held) == (6, 6, 0)


async def test_cancel_before_the_first_chunk_once_the_thread_exists():
    async with opened() as lab:
        lab.start(fast("stepwise", pace_s=1))
        await until(lambda: lab.held.exists)
        lab.cancel()
        await lab.settled()
        assert lab.sentence == "Cancelled before the first chunk. The thread holds no chunk."
        assert lab.runs[0].ending == "cancel by hand"


async def test_cancel_after_the_last_chunk():
    async with opened() as lab:
        press_when(lab, lambda: len(lab.page.chunks) == 6, lab.cancel)
        await started(lab, fast())
        assert (len(lab.page.chunks), counts(lab.held)) == (6, (0, 0, 0))
        await started(lab, fast("stepwise", cancel_at=6))
        assert (len(lab.page.chunks), counts(lab.held)) == (6, (6, 5, 1))
        lab.cancel()
        assert lab.sentence == "No run is going on, so there is nothing to cancel."


async def test_cancel_twice_is_one_cancel():
    async with opened() as lab:
        lab.start(fast())
        await shows(lab, 2)
        lab.cancel()
        lab.cancel()
        assert lab.sentence == "The run is being cancelled already."
        await lab.settled()
        assert len(lab.runs) == 1
        assert lab.runs[0].ending == "cancel by hand"


async def test_cancel_while_continuing():
    async with opened() as lab:
        await started(lab, fast("stepwise", cancel_at=2))
        press_when(lab, lambda: len(lab.page.chunks) == 4, lab.cancel)
        lab.resume(fast("stepwise"))
        await lab.settled()
        assert lab.runs[-1].ending == "cancel by hand"
        assert counts(lab.held) == (4, 3, 1)
        assert "went on with chunk 3 and made 2 chunks, none of them" in lab.sentence


# Presses at the wrong moment


async def test_during_a_run_nothing_else_begins():
    async with opened() as lab:
        lab.start(fast(pace_s=0.2))
        await shows(lab, 1)
        for press in (lab.start, lab.resume, lab.next_message):
            press(fast("stepwise"))
            assert lab.sentence.startswith("A run is going on: to ")
        lab.compare()
        assert lab.sentence.startswith("A run is going on: to run the sixteen, press Cancel first")
        await lab.settled()
        assert [run.ending for run in lab.runs] == ["complete"]
        assert lab.runs[0].shape == "long_node"


async def test_before_the_first_start():
    async with opened() as lab:
        for press in (lambda: lab.resume(fast()), lambda: lab.next_message(fast()), lab.refresh):
            press()
            assert lab.sentence.endswith("press Start first.")
        lab.cancel()
        assert lab.sentence == "No run is going on, so there is nothing to cancel."
        lab.lose_page()
        assert lab.sentence.startswith("No run is going on, so no page is reading.")
        assert not lab.busy
        assert lab.results_text() == ""
        with pytest.raises(ValueError, match="press Start first"):
            lab.results()
        with pytest.raises(ValueError, match="press Compare"):
            lab.beside_automatic()


async def test_presses_right_after_a_refresh_wait_for_it():
    async with opened() as lab:
        await started(lab, fast("stepwise", cancel_at=3))
        lab.refresh()
        lab.refresh()
        lab.resume(fast())
        await lab.settled()
        assert "went on with chunk 4" in lab.sentence
        lab.refresh()
        lab.start(fast(cancel_at=2))
        await lab.settled()
        assert lab.page.chunks == list(TEXTS[:2])
        assert lab.sentence.startswith("Cancelled when the page showed 2 chunks.")
        lab.refresh()
        lab.compare()
        await lab.settled()
        assert len(lab.automatic) == 16


async def test_refresh_in_the_middle_of_a_run():
    async with opened() as lab:
        told = []
        press_when(lab, lambda: len(lab.page.chunks) == 2, lab.refresh)
        look = lab.on_change

        def on_change() -> None:
            told.append((lab.sentence, len(lab.page.chunks), lab.lost))
            look()

        lab.on_change = on_change
        await started(lab, fast(pace_s=0.5))
        sentence = "The page was loaded in the middle of the run and shows what the thread holds: no chunk."
        assert (f"{sentence} The run goes on.", 0, TEXTS[:2]) in told
        assert lab.page.chunks == list(TEXTS)
        assert lab.lost == ()


async def test_continue_without_a_refresh_shows_chunks_twice_until_the_node_returns():
    most = []
    async with opened() as lab:
        await started(lab, fast(cancel_at=3))
        lab.on_change = lambda: most.append(len(lab.page.chunks))
        lab.resume(fast())
        await lab.settled()
        assert max(most) == 9
        assert most[-1] == 6


async def test_continue_when_finished_runs_nothing():
    async with opened() as lab:
        await started(lab, fast())
        lab.resume(fast())
        await lab.settled()
        assert "Nothing ran: this answer is finished." in lab.sentence
        assert lab.held.status == "completed"


async def test_continue_keeps_the_shape_and_the_number_of_chunks_of_the_thread():
    async with opened() as lab:
        await started(lab, fast("stepwise", chunks=4, cancel_at=2))
        lab.resume(fast("long_node", "exit", chunks=9))
        await lab.settled()
        assert lab.page.chunks == list(TEXTS[:4])
        assert (lab.runs[-1].shape, lab.runs[-1].durability) == ("stepwise", "exit")


# Losing the page


async def test_the_long_node_goes_on_while_its_stream_is_referred_to():
    async with opened(kept_s=2) as lab:
        lab.start(fast(pace_s=0.1))
        await shows(lab, 3)
        lab.lose_page()
        lab.lose_page()
        assert lab.sentence == "The page is lost already; nobody reads."
        await lab.settled()
        kept, dropped = lab.moments
        assert len(kept.held.saved) == 6, "in two seconds the node has come to its end"
        assert len(lab.page.chunks) == 3
        assert lab.runs[0].ending == "page lost"
        then = f"Then the last reference was dropped: it holds {len(dropped.held.saved) or 'no'} chunk"
        assert f"the thread held 6 chunks. {then}" in lab.sentence


async def test_the_long_node_dies_with_the_last_reference():
    async with opened(kept_s=0.1) as lab:
        press_when(lab, lambda: len(lab.page.chunks) == 2, lab.lose_page)
        await started(lab, fast(pace_s=1))
        assert [len(moment.held.saved) for moment in lab.moments] == [0, 0]
        lab.resume(fast())
        await lab.settled()
        assert "ran again from its first line" in lab.sentence


@pytest.mark.parametrize("durability", DURABILITIES)
async def test_one_chunk_a_step_waits_for_its_lost_page(durability):
    async with opened() as lab:
        press_when(lab, lambda: len(lab.page.chunks) == 3, lab.lose_page)
        await started(lab, fast("stepwise", durability))
        assert "the graph made no chunk more" in lab.sentence
        kept, dropped = (len(moment.held.saved) for moment in lab.moments)
        assert (kept, dropped) == ((0, 3) if durability == "exit" else (3, 3))


async def test_cancel_after_the_page_was_lost():
    async with opened(kept_s=60) as lab:
        lab.start(fast(pace_s=0.2))
        await shows(lab, 2)
        lab.lose_page()
        lab.cancel()
        await lab.settled()
        assert lab.runs[0].ending == "cancel by hand"


# What goes wrong


def router_fails_once(fault: list[Exception]):
    """The published step, its router failing after chunk 3: on resume LangGraph skips that router."""

    def build(shape, texts, *, delay_s, on_chunk):
        builder = StateGraph(Answer)
        builder.add_node(
            "step", chunks.stepwise(texts, delay_s=delay_s, on_chunk=on_chunk).nodes["step"].runnable
        )
        builder.add_edge(START, "step")

        def more(state: Answer) -> str:
            if state["step_index"] == 3 and fault:
                raise fault.pop()
            return "step" if state["step_index"] < len(texts) else END

        builder.add_conditional_edges("step", more, ["step", END])
        return builder

    return build


async def test_continue_that_runs_nothing_on_an_unfinished_answer_says_so():
    async with opened(build=router_fails_once([RuntimeError("no way")])) as lab:
        await started(lab, fast("stepwise"))
        assert "RuntimeError: no way" in lab.sentence
        lab.resume(fast())
        await lab.settled()
        assert "nothing ran, and the answer is unfinished: its status is 'running'" in lab.sentence
        assert "although LangGraph says that nothing is scheduled" in lab.sentence
        assert len(lab.held.saved) == 3


def fails_once(fault: list[Exception]):
    def build(shape, texts, *, delay_s, on_chunk):
        def count(number: int) -> None:
            if number == 3 and fault:
                raise fault.pop()
            if on_chunk is not None:
                on_chunk(number)

        return chunks.build(shape, texts, delay_s=delay_s, on_chunk=count)

    return build


async def test_an_error_in_the_graph_is_a_sentence_and_continue_goes_on():
    async with opened(build=fails_once([ValueError("no <b>ink</b> left.")])) as lab:
        await started(lab, fast("stepwise"))
        assert lab.sentence.startswith("The graph failed with ValueError: no <b>ink</b> left. Press Continue")
        assert lab.runs[0].ending == "failed"
        assert len(lab.held.saved) == 2
        lab.resume(fast())
        await lab.settled()
        assert "went on with chunk 3 and made 4 chunks" in lab.sentence
        assert len(lab.held.saved) == 6


async def test_a_graph_that_cannot_be_built():
    def build(shape, texts, **options):
        raise RuntimeError("there is no graph today")

    async with opened(build=build) as lab:
        await started(lab, fast())
        assert "RuntimeError: there is no graph today" in lab.sentence
        lab.refresh()
        await lab.settled()
        assert "RuntimeError: there is no graph today" in lab.sentence
        assert not lab.busy


async def test_a_locked_database_is_a_sentence_and_the_lab_goes_on():
    async with opened() as lab:
        await started(lab, fast("stepwise", cancel_at=3))
        with closing(sqlite3.connect(lab.path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            lab.resume(fast())
            await lab.settled()
            assert lab.sentence.startswith("Another program has locked the database")
            assert lab.runs[-1].ending == "failed"
            other.execute("ROLLBACK")
        lab.resume(fast())
        await lab.settled()
        assert counts(lab.held) == (6, 6, 0)


async def test_a_database_locked_in_the_middle_of_a_run():
    async with opened() as lab:
        lab.start(fast("stepwise", pace_s=0.3))
        await shows(lab, 2)
        connected = sqlite3.connect(lab.path, isolation_level=None, timeout=60, check_same_thread=False)
        with closing(connected) as other:
            # Here it would hold up the loop that the lab needs to end its own transaction.
            await asyncio.to_thread(other.execute, "BEGIN IMMEDIATE")
            await lab.settled()
            assert "Another program has locked the database" in lab.sentence
            other.execute("ROLLBACK")
        await started(lab, fast())
        assert counts(lab.held) == (6, 6, 0)


async def test_a_graph_that_does_not_heed_the_cancel():
    def build(shape, texts, *, delay_s, on_chunk):
        async def answer(state: Answer) -> dict:
            writer = get_stream_writer()
            on_chunk(1)
            writer({"kind": "visible_chunk", "chunk": texts[0], "text": texts[0]})
            try:
                await chunks.pause(10)
            except asyncio.CancelledError:
                return {"emitted_chunks": [texts[0]], "status": "completed"}
            return {}

        builder = StateGraph(Answer)
        builder.add_node("answer", answer)
        builder.add_edge(START, "answer")
        return builder

    async with opened(build=build) as lab:
        lab.start(fast())
        await shows(lab, 1)
        lab.cancel()
        await lab.settled()
        assert lab.runs[0].saved == 1, "the half answer was returned, and so it was saved"


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"shape": "short"}, "shape must be one of long_node, stepwise"),
        ({"durability": "often"}, "durability must be one of"),
        ({"chunks": 0}, "chunks must be from 1 to 24"),
        ({"pace_s": 9}, "pace_s must be from 0 to 5 seconds"),
        ({"chunks": 4, "cancel_at": 5}, "cancel_at must be from 1 to the 4 chunks"),
    ],
)
def test_options_out_of_range(wrong, says):
    with pytest.raises(BadOption, match=says):
        Options(**wrong)


# Results


async def test_results_as_a_table_and_as_text():
    async with opened() as lab:
        await started(lab, fast(cancel_at=3))
        await started(lab, fast("stepwise", "sync", cancel_at=3))
        frame = lab.results()
        assert list(frame.index) == [1, 2]
        assert list(frame["saved"]) == [0, 3]
        assert list(frame["pending"]) == [0, 1]
        lines = lab.results_text().splitlines()
        assert lines[0].split("\t")[:3] == ["run", "begun", "shape"]
        assert lines[2].split("\t") == [
            "2",
            "start",
            "stepwise",
            "sync",
            "cancel at 3",
            "3",
            "3",
            "2",
            "1",
            "0",
        ]


async def test_the_sixteen_runs_are_laid_beside():
    async with opened() as lab:
        await started(lab, fast("stepwise", "exit", cancel_at=3))
        await started(lab, fast("stepwise", "exit", cancel_at=2))
        lab.compare()
        lab.start(fast())
        assert lab.sentence.startswith("The sixteen runs are not over yet: to start a new one")
        lab.cancel()
        assert lab.sentence == "No run is going on, so there is nothing to cancel."
        await lab.settled()
        frame = lab.beside_automatic().set_index(["shape", "ending", "durability"])
        assert len(frame) == 16
        row = frame.loc[("stepwise", "cancel", "exit")]
        assert list(row) == [3, 3, 2, "2", "2", "2", "1"]
        assert (frame["your run"] == "–").sum() == 15


# Time, and what is left


async def test_a_cancel_reaches_the_graph_within_a_tenth_of_a_second(monkeypatch):
    reached = []
    real = chunks.pause

    async def pause(delay_s: float) -> None:
        try:
            await real(delay_s)
        except asyncio.CancelledError:
            if delay_s == 0.5:  # the node's: the page rests for less
                reached.append(time.perf_counter())
            raise

    async with opened() as lab:
        monkeypatch.setattr(chunks, "pause", pause)
        took = []
        for _ in range(9):
            reached.clear()
            lab.start(fast(pace_s=0.5))
            await shows(lab, 1)
            pressed = time.perf_counter()
            lab.cancel()
            await lab.settled()
            (seen,) = reached
            took.append(seen - pressed)
        assert statistics.median(took) < 0.1, took


async def test_fifty_starts_and_cancels_leave_nothing_and_do_not_slow_down():
    this = psutil.Process()

    def left(lab: Session) -> tuple:
        gc.collect()
        files = len([one for one in this.open_files() if "fixtures-lab" in one.path])
        return len(asyncio.all_tasks()), threads(), files, len(os.listdir(lab.path.parent))

    async with opened() as lab:
        await started(lab, fast(cancel_at=1))
        before, worked = left(lab), []
        for number in range(50):
            begun = time.process_time()
            lab.start(fast(SHAPES[number % 2], DURABILITIES[number % 4], pace_s=0.02))
            await shows(lab, 1)
            lab.cancel()
            await lab.settled()
            worked.append(time.process_time() - begun)
        assert left(lab) == before
        assert before[0] == 1, "this test itself"
        assert len(lab.runs) == 51
        # This process's own work, not the clock's time: what else the machine does must not count.
        assert min(worked[-10:]) < 2 * min(worked[:10]), worked


@pytest.mark.parametrize("after", ["start", "first chunk", "lost page", "end", "nothing"])
async def test_close_at_any_moment_removes_everything(after):
    before = threads()
    lab = Session()
    folder = Path(lab._folder.name)
    assert folder.is_dir()
    if after != "nothing":
        lab.start(fast("stepwise", pace_s=0.2, cancel_at=1 if after == "end" else None))
    if after in ("first chunk", "lost page"):
        await shows(lab, 1)
    if after == "lost page":
        lab.lose_page()
    if after == "end":
        await lab.settled()
    lab.close()
    lab.close()
    await lab.settled()
    await until(lambda: not folder.exists())
    await until(lambda: threads() == before)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_session_that_is_forgotten_leaves_no_folder():
    lab = await started(Session(), fast(cancel_at=1))
    folder = lab.path.parent
    with pytest.warns(ResourceWarning, match="Implicitly cleaning up"):  # noqa: PT031
        lab = None
        gc.collect()
    assert not folder.exists()


async def test_who_waits_and_is_cancelled_cancels_nothing_else():
    async with opened() as lab:
        lab.start(fast())
        waiting = asyncio.create_task(lab.settled())
        await shows(lab, 1)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await lab.settled()
        assert lab.runs[0].ending == "complete"
