"""Exercises: made from their solutions, which are right; stubs get nothing, and the bundle tells nothing."""

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import nbformat
import pytest
from answer_cells import ANSWERS, answers, run_cell

from fixtures.course import CHAPTERS
from tools import exercises, notebooks, release

FILES = notebooks.files()
SOLUTIONS = sorted(name for name in FILES if name.startswith("solutions/") and name.endswith(".ipynb"))


def cells(name: str) -> dict[str, nbformat.NotebookNode]:
    """The cells of a notebook as git has it, by id."""
    return {cell.id: cell for cell in notebooks.parse(notebooks.stored(name)).cells}


def run_answer(name: str) -> object:
    """Run imports, answer and check of an exercise as its notebook would; return the check's verdict."""
    parts = cells(name)
    visible = parts["check"].source.split("### BEGIN HIDDEN TESTS")[0]
    shown: list[object] = []
    source = "\n".join([parts["imports"].source, parts["answer"].source])
    namespace = run_cell(source)
    exec(visible, namespace | {"display": shown.append})
    assert len(shown) == 1
    return shown[0]


def test_exercises_are_what_the_solutions_make():
    assert exercises.differences(notebooks.stored, FILES) == []


def test_each_ready_chapter_with_an_exercise_has_all_its_parts():
    for chapter in CHAPTERS:
        name = f"{chapter.name}/{chapter.name}.ipynb"
        parts = {
            f"solutions/{name}" in FILES,
            f"exercises/{name}" in FILES,
            (ANSWERS / f"{chapter.number}.py").exists(),
        }
        assert len(parts) == 1, f"chapter {chapter.number} has a part of an exercise"
        if True in parts:
            kept = answers(chapter.number)
            assert sum(one.right for one in kept) >= 2
            assert sum(not one.right for one in kept) >= 4
            assert chapter.exercise_minutes > 0


@pytest.mark.parametrize("name", SOLUTIONS)
def test_a_solution_has_all_points(name):
    verdict = run_answer(name)
    assert verdict.passed, str(verdict)
    assert verdict.total == cells(name)["check"].metadata.nbgrader.points


@pytest.mark.parametrize("name", SOLUTIONS)
def test_a_stub_has_no_points_and_no_error(name):
    verdict = run_answer(name.replace("solutions/", "exercises/"))
    assert verdict.points == 0
    assert {line.why for line in verdict.lines} == {"not written yet"}


@pytest.mark.parametrize("name", SOLUTIONS)
def test_an_exercise_holds_its_subgoals_and_nothing_of_the_solution(name):
    solution = cells(name)["answer"].source
    given = cells(name.replace("solutions/", "exercises/"))["answer"].source
    hidden = re.findall(r"### BEGIN SOLUTION\n(.*?)### END SOLUTION", solution, re.DOTALL)
    assert hidden
    for line in {line.strip() for part in hidden for line in part.splitlines() if line.strip()}:
        assert line not in given
    assert given.count("raise NotImplementedError()") == len(hidden)
    assert given.count("# 1. ") == len(hidden)


# What the freshness check must catch

NAME = "02_the_counter/02_the_counter.ipynb"


def a_course(**changed: str) -> dict[str, str]:
    """The counter's solution and exercise, by name, with some texts changed."""
    course = {
        f"{folder}/{NAME}": notebooks.stored(f"{folder}/{NAME}") for folder in ("solutions", "exercises")
    }
    return course | changed


def test_a_change_in_either_is_found():
    fresh = a_course()
    assert exercises.differences(fresh.__getitem__, fresh) == []
    for folder in ("solutions", "exercises"):
        stale = a_course()
        stale[f"{folder}/{NAME}"] = stale[f"{folder}/{NAME}"].replace("a counter that goes on", "a counter")
        assert exercises.differences(stale.__getitem__, stale) == [
            f"exercises/{NAME}: differs from what its solution makes"
        ]


def test_a_missing_and_a_left_over_exercise_are_found():
    missing = a_course()
    del missing[f"exercises/{NAME}"]
    assert exercises.differences(missing.__getitem__, missing) == [f"exercises/{NAME}: is missing"]
    left = a_course(**{"exercises/old/old.ipynb": "{}"})
    assert exercises.differences(left.__getitem__, left) == [
        "exercises/old/old.ipynb: belongs to no solution"
    ]


def test_other_files_of_a_solution_are_copied():
    course = a_course(**{"solutions/02_the_counter/data.csv": "1,2\n"})
    assert exercises.differences(course.__getitem__, course) == [
        "exercises/02_the_counter/data.csv: is missing"
    ]


@pytest.mark.parametrize("mark", ["### END SOLUTION", "### END HIDDEN TESTS"])
def test_a_region_that_is_not_closed_is_an_error(mark):
    course = a_course()
    course[f"solutions/{NAME}"] = course[f"solutions/{NAME}"].replace(mark, "# the end")
    with pytest.raises(SystemExit, match="02_the_counter"):
        exercises.differences(course.__getitem__, course)


def test_make_exercises_writes_once(tmp_path):
    source = tmp_path / f"solutions/{NAME}"
    source.parent.mkdir(parents=True)
    source.write_text(notebooks.stored(f"solutions/{NAME}"), encoding="utf-8")
    assert exercises.write(tmp_path) == [f"exercises/{NAME}: written"]
    assert (tmp_path / f"exercises/{NAME}").read_text("utf-8") == notebooks.stored(f"exercises/{NAME}")
    assert exercises.write(tmp_path) == []


# The learner's bundle


@pytest.fixture(scope="module")
def bundle(tmp_path_factory) -> Path:
    """The unpacked bundle's folder."""
    if notebooks.tracked() is None:
        pytest.skip("a bundle is packed from a git checkout")
    folder = tmp_path_factory.mktemp("bundle")
    with zipfile.ZipFile(release.pack(folder=folder)) as packed:
        packed.extractall(folder)
    (inside,) = [one for one in folder.iterdir() if one.is_dir()]
    return inside


def test_the_bundle_holds_the_course_and_no_solution(bundle):
    there = {one.relative_to(bundle).as_posix() for one in bundle.rglob("*") if one.is_file()}
    kept = notebooks.tracked() & there
    assert kept == there
    for needed in ("README.md", "Makefile", "requirements.txt", "pyproject.toml", f"exercises/{NAME}"):
        assert needed in there
    assert not [one for one in there if one.startswith(("solutions/", "tests/", "bench/"))]
    assert {one for one in there if one.startswith("tools/") and not one.startswith(release.TOOLS)} == set()
    for name in there:
        assert b"BEGIN SOLUTION" not in (bundle / name).read_bytes()


def test_the_bundle_has_what_make_lab_and_the_package_need(bundle):
    named = re.findall(r"tools/[\w./-]+", (bundle / "pyproject.toml").read_text("utf-8"))
    recipes = dict(
        re.findall(r"^([a-z-]+):.*\n((?:\t.*\n?)+)", (bundle / "Makefile").read_text("utf-8"), re.MULTILINE)
    )
    named += re.findall(r"tools/[\w./-]+\.(?:py|sh)", recipes["lab"] + recipes["reset"])
    assert named
    for name in named:
        assert (bundle / name).exists(), name


def test_the_library_in_the_bundle_finds_its_own_root(bundle):
    source = "from fixtures import course, progress; print(course.ROOT); import fixtures.checks.c02_counter"
    done = subprocess.run(
        [sys.executable, "-c", source],
        env={"PYTHONPATH": str(bundle / "src"), "PATH": ""},
        capture_output=True, text=True, check=True, cwd=bundle,
    )  # fmt: skip
    assert Path(done.stdout.strip()) == bundle.resolve()


def test_a_bundle_that_would_tell_a_solution_is_not_made(tmp_path):
    def git(*arguments: str) -> None:
        subprocess.run(
            ["git", "-C", tmp_path, "-c", "user.name=a", "-c", "user.email=a@b", *arguments], check=True
        )

    git("init", "-q")
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "course"\nversion = "1"\n')
    (tmp_path / "notes.md").write_text("### BEGIN SOLUTION\n")
    git("add", ".")
    git("commit", "-q", "-m", "one")
    with pytest.raises(ValueError, match=r"course-1/notes\.md"):
        release.pack(tmp_path)
    assert not list((tmp_path / "dist").iterdir())
