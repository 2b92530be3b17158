"""Progress: one file, two kernels, and nothing that goes wrong with it stops a notebook."""

import errno
import json
import os
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from fixtures import progress
from fixtures.course import CHAPTERS


@pytest.fixture
def file(tmp_path, monkeypatch) -> Path:
    file = tmp_path / "kept" / "progress.json"
    file.parent.mkdir()
    monkeypatch.setenv("FIXTURES_PROGRESS", str(file))
    monkeypatch.setattr(progress, "_unsaved", [])
    monkeypatch.setattr(progress, "_memory", {})
    monkeypatch.setattr(progress, "_problem", None)
    return file


def again() -> dict[str, progress.Guess]:
    """What another kernel would read."""
    assert progress._unsaved == []
    return progress.guesses()


def test_a_guess_can_be_changed_until_the_answer_is_shown(file):
    progress.record_guess("02-one", "a")
    progress.record_guess("02-one", "b")
    kept = progress.record_reveal("02-one", "b")
    assert (kept.guess, kept.observed, kept.late, kept.counts, kept.right) == ("b", "b", False, True, True)
    kept = progress.record_guess("02-one", "a")
    assert (kept.guess, kept.right) == ("b", True)
    assert again() == {"02-one": kept}


def test_a_guess_after_the_answer_is_kept_and_does_not_count(file):
    progress.record_reveal("02-one", "b")
    kept = progress.record_guess("02-one", "b")
    assert (kept.guess, kept.late, kept.counts, kept.right) == ("b", True, False, False)
    progress.record_reveal("02-one", "b")
    assert again()["02-one"] == kept


def test_the_first_answer_shown_is_the_one_that_is_kept(file):
    progress.record_guess("02-one", "a")
    progress.record_reveal("02-one", "a")
    progress.record_reveal("02-one", "b")
    assert again()["02-one"].right


def test_words_are_kept_beside_a_guess(file):
    progress.record_guess("02-one", "a")
    progress.record_words("02-one", "drei — 三")
    assert again()["02-one"] == progress.Guess(
        question_id="02-one", guess="a", observed=None, late=False, words="drei — 三"
    )
    assert "三" in file.read_text("utf-8")


def test_an_untouched_question(file):
    assert progress.guess("02-one") == progress.Guess(
        question_id="02-one", guess=None, observed=None, late=False, words=""
    )
    assert not file.exists()


def test_two_kernels_that_write_at_once_lose_nothing(file):
    program = """
        import sys
        from fixtures import progress
        for number in range(40):
            progress.record_guess(f"02-{sys.argv[1]}-{number}", "a")
            progress.record_words("02-both", sys.argv[1])
        assert progress.problem() is None, progress.problem()
    """
    source = "\n".join(line[8:] for line in program.splitlines())
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_VERSION"}
    kernels = [subprocess.Popen([sys.executable, "-c", source, one], env=environment) for one in ("a", "b")]
    assert [one.wait(timeout=120) for one in kernels] == [0, 0]
    kept = again()
    assert len(kept) == 81
    assert kept["02-both"].words in ("a", "b")
    assert {one.name for one in file.parent.iterdir()} <= {file.name, f"{file.name}.lock"}


def test_threads_of_one_kernel_lose_nothing(file):
    def write(name: str) -> None:
        for number in range(20):
            progress.record_guess(f"02-{name}-{number}", "a")

    threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(again()) == 80


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"[]", b"\xff\xfe", b'{"guesses": []}', b'{"guesses": {"a": 1}}',
        b'{"exercises": {"02": {}}}', b"[" * 100_000,
    ],
    ids=["empty", "cut", "list", "bytes", "no table", "no guess", "no points", "deep"],
)  # fmt: skip
def test_a_damaged_file_is_put_aside_and_said_in_one_sentence(file, content):
    file.write_bytes(content)
    assert progress.record_guess("02-one", "a").guess == "a"
    assert progress.problem() == (
        "The progress file was damaged: it is kept as progress.json.damaged-1, and a new one was begun."
    )
    assert file.with_name("progress.json.damaged-1").read_bytes() == content
    progress.record_guess("02-two", "a")
    assert progress.problem() is None
    assert set(again()) == {"02-one", "02-two"}


def test_damaged_twice_keeps_both(file):
    for number in (1, 2):
        file.write_text(f"{number}")
        assert progress.guesses() == {}
        assert file.with_name(f"progress.json.damaged-{number}").read_text() == f"{number}"


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES])
@pytest.mark.parametrize("where", ["replace", "lock"])
def test_a_disk_that_cannot_be_written_loses_nothing(file, monkeypatch, code, where):
    progress.record_guess("02-one", "a")

    def refuse(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as broken:
        broken.setattr("os.replace" if where == "replace" else "filelock.FileLock.acquire", refuse)
        progress.record_guess("02-two", "a")
        progress.record_exercise("02", points=4, total=4)
        assert set(progress.guesses()) == {"02-one", "02-two"}
        said = progress.problem()
        assert os.strerror(code) in said
        assert said.count(".") == 1
        assert set(json.loads(file.read_text())["guesses"]) == {"02-one"}
    progress.record_guess("02-three", "a")
    assert progress.problem() is None
    assert set(again()) == {"02-one", "02-two", "02-three"}
    assert json.loads(file.read_text())["exercises"] == {"02": {"points": 4, "total": 4}}
    assert not [one for one in file.parent.iterdir() if one.suffix == ".new"]


def test_a_place_that_is_no_file_stops_nothing(file):
    file.mkdir()
    assert progress.record_guess("02-one", "a").guess == "a"
    assert "could not be written" in progress.problem()
    assert progress.guess("02-one").guess == "a"


def test_a_lock_that_is_held_too_long_stops_nothing(file, monkeypatch):
    from filelock import FileLock

    monkeypatch.setattr(progress, "LOCK_LIMIT_S", 0.1)
    with FileLock(f"{file}.lock"):
        assert progress.record_guess("02-one", "a").guess == "a"
        assert "another program has held its lock for 0.1 s" in progress.problem()
    progress.record_words("02-one", "now")
    assert (again()["02-one"].guess, again()["02-one"].words) == ("a", "now")


def test_the_best_result_of_an_exercise_stays(file):
    for points in (2, 4, 0):
        progress.record_exercise("02", points=points, total=4)
    assert json.loads(file.read_text())["exercises"] == {"02": {"points": 4, "total": 4}}


def test_the_table_has_a_row_for_each_chapter_that_is_here(file, monkeypatch):
    number = "08"
    chapters = [
        replace(
            one,
            state="ready" if one.number in ("00", number) else "coming",
            exercise_minutes=0 if one.number == "00" else 5,
        )
        for one in CHAPTERS
    ]
    monkeypatch.setattr(progress, "CHAPTERS", chapters)
    for name, guess, observed in (("a", "x", "x"), ("b", "x", "y"), ("c", "x", None), ("d", None, "x")):
        if guess:
            progress.record_guess(f"{number}-{name}", guess)
        if observed:
            progress.record_reveal(f"{number}-{name}", observed)
    table = progress.table()
    assert [name[:2] for name in table.index] == ["00", number]
    assert list(table.iloc[0]) == [0, 0, ""]
    row = next(row for name, row in table.iterrows() if name.startswith(number))
    assert list(row) == [2, 1, "-"]
    progress.record_exercise(number, points=1, total=4)
    assert progress.table().loc[row.name, "exercise"] == "1 of 4"
    progress.record_exercise(number, points=4, total=4)
    assert progress.table().loc[row.name, "exercise"] == "passed"


def test_an_appendix_has_no_row(file):
    assert any(one.is_appendix and one.ready for one in CHAPTERS)
    expected = [f"{one.number} {one.title}" for one in CHAPTERS if one.ready and not one.is_appendix]
    assert list(progress.table().index) == expected


def test_the_table_says_when_the_file_was_damaged(file, capsys):
    file.write_text("{")
    assert progress.table()["guessed"].sum() == 0
    assert capsys.readouterr().out.startswith("The progress file was damaged")


def test_the_file_is_at_the_root_whatever_the_working_directory(monkeypatch, tmp_path):
    monkeypatch.delenv("FIXTURES_PROGRESS", raising=False)
    monkeypatch.delenv("PYTEST_VERSION")
    monkeypatch.chdir(tmp_path)
    assert progress.path() == progress.ROOT / ".progress.json"
    ignored = subprocess.run(["git", "check-ignore", "-q", progress.path()], cwd=progress.ROOT)
    assert ignored.returncode in (0, 128)


def test_without_a_file_a_kernel_still_remembers(monkeypatch, file):
    monkeypatch.delenv("FIXTURES_PROGRESS")
    assert progress.path() is None
    progress.record_guess("02-one", "a")
    assert progress.record_reveal("02-one", "a").right
    assert progress.problem() is None
    assert list(file.parent.iterdir()) == []
