"""Errors that everybody meets: each is provoked, told without what changes, and leaves nothing behind."""

import asyncio
import threading

import pytest

from fixtures.experiments import errors


def fail(message):
    raise ValueError(message)


@pytest.mark.parametrize(
    ("message", "says"),
    [
        ("no such thing", "no such thing"),
        ("first line\nsecond line", "first line"),
        ("<asyncio.locks.Lock object at 0x7fd43 [locked]> is bound", "… is bound"),
        ("Not here. The object was created in thread id 12 and this is thread id 13.", "Not here."),
    ],
)
def test_an_error_is_told_without_what_changes(message, says):
    assert errors.meet(lambda: fail(message)) == errors.Met("ValueError", says)
    assert repr(errors.met(ValueError(message))) == f"ValueError: {says}"
    assert repr(errors.met(ValueError())) == "ValueError"


def test_a_call_without_an_error_is_not_passed_over():
    with pytest.raises(AssertionError, match="no error was met: int came back"):
        errors.meet(lambda: 3)

    async def fine():
        return "x"

    with pytest.raises(AssertionError, match="no error was met: str came back"):
        asyncio.run(errors.meet_async(fine()))


def test_a_short_lock_is_waited_for_and_a_long_one_is_not():
    assert errors.write_while_locked(hold_s=0.1, timeout_s=60) == "works"
    assert errors.write_while_locked(hold_s=None, timeout_s=0.1) == "OperationalError: database is locked"


def test_a_process_with_an_open_async_connection_does_not_end(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = threading.active_count()
    assert asyncio.run(errors.ends_after_async_saver(close=True)) is True
    assert asyncio.run(errors.ends_after_async_saver(close=False)) is False
    assert not list(tmp_path.glob("unclosed-*"))
    assert threading.active_count() <= before + 1  # the pool's thread that started the fork server


def test_what_fails_in_the_process_is_told(monkeypatch):
    monkeypatch.setattr(errors, "use_async_saver", no_such_thing)
    with pytest.raises(ChildProcessError, match="ZeroDivisionError"):
        asyncio.run(errors.ends_after_async_saver(close=True))


def no_such_thing(tell, file, close):
    1 / 0  # noqa: B018


@pytest.fixture(scope="module")
def found():
    return {one.symptom: one for one in errors.symptoms()}


def test_each_published_symptom_is_seen_and_gone_with_its_remedy(found):
    assert {name: (one.seen, one.then) for name, one in found.items()} == {
        "the second call does not go on": ("3, 3", "3, 6"),
        "all is gone after a restart": ("3, 3", "3, 6"),
        "copies of a program share nothing": ("3, 3", "3, 6"),
        "it took another route": ("first left, then right", "first left, then left"),
        "an old thread fails in the new release": ("TypeError", "finished"),
        "the store grows and grows": ("40 checkpoints", "0 checkpoints"),
    }


def test_each_text_fits_into_a_table_that_pandas_does_not_cut(found):
    texts = [text for one in found.values() for text in vars(one).values()]
    assert [text for text in texts if len(text) > 49] == []


def test_an_async_saver_refuses_a_second_loop(tmp_path):
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    from fixtures.graphs import counter

    async def work():
        async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "threads.sqlite")) as saver:
            return await errors.call_from_two_loops(counter.reducer().compile(checkpointer=saver))

    expected = ["works", "RuntimeError: … is bound to a different event loop"]
    assert list(asyncio.run(work()).values()) == expected


def test_the_lock_of_another_writer_is_let_go_of(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    errors.write_while_locked(hold_s=0.05, timeout_s=60)
    assert list(tmp_path.iterdir()) == []
    assert not [one for one in threading.enumerate() if isinstance(one, threading.Timer)]
