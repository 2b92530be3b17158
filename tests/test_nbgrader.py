"""The whole of nbgrader: generate, autograde, feedback, export; each answer gets the points it is due."""

import csv
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from answer_cells import answers

from tools import notebooks
from tools.notebooks import ROOT

pytestmark = pytest.mark.nbgrader

ASSIGNMENT = "02_the_counter"
NOTEBOOK = f"{ASSIGNMENT}.ipynb"

RIGHT = next(one for one in answers("02") if one.right).source

ANSWERS: dict[str, tuple[str | None, float]] = {
    "amy-solution": ("", 4),
    "bea-stub": (None, 0),
    "carl-partial": (
        RIGHT + "\ndef next_input(graph, config):\n    return {'total': 0}",
        2,
    ),
    "dan-talks": (next(one for one in answers("02") if "both streams" in one.title).source, 4),
    "eve-loops": (RIGHT + "\ndef next_input(graph, config):\n    while True: print('x')", 2),
    "fay-patches": (
        RIGHT
        + """
import fixtures.checks.c02_counter
fixtures.checks.c02_counter.check = lambda *answer, **options: type("Verdict", (), {"total": 4, "points": 4})
def next_input(graph, config):
    return {"total": 0}
""",
        2,
    ),
}
"""An answer's cell by student (None: the untouched stub, "": the solution's own), and its points."""


def nbgrader(course: Path, *arguments: str) -> str:
    environment = {
        name: value
        for name, value in os.environ.items()
        # As in an instructor's terminal: what nbgrader itself sets must be enough to leave progress alone.
        if not name.startswith(("PYTEST", "FIXTURES", "NBGRADER"))
    }
    # nbgrader starts alembic by its name, as in an environment that was activated.
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment["PATH"]])
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", *arguments],
        cwd=course, env=environment, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def given(course: Path) -> nbformat.NotebookNode:
    return nbformat.read(course / "exercises" / ASSIGNMENT / NOTEBOOK, as_version=4)


@pytest.fixture(scope="module")
def course(tmp_path_factory) -> Iterator[Path]:
    """A course folder after generate, autograde, feedback and export."""
    course = tmp_path_factory.mktemp("course")
    shutil.copy(ROOT / "nbgrader_config.py", course)
    source = course / "solutions" / ASSIGNMENT
    source.mkdir(parents=True)
    (source / NOTEBOOK).write_text(notebooks.stored(f"solutions/{ASSIGNMENT}/{NOTEBOOK}"), encoding="utf-8")
    nbgrader(course, "generate_assignment", ASSIGNMENT)
    solution = {cell.id: cell.source for cell in nbformat.read(source / NOTEBOOK, as_version=4).cells}
    for student, (answer, _) in ANSWERS.items():
        book = given(course)
        cell = next(cell for cell in book.cells if cell.id == "answer")
        if answer is not None:
            cell.source = answer or solution["answer"]
        target = course / "submitted" / student / ASSIGNMENT / NOTEBOOK
        target.parent.mkdir(parents=True)
        nbformat.write(book, target)
    kept = ROOT / ".progress.json"
    before = kept.read_bytes() if kept.exists() else None
    nbgrader(course, "autograde", ASSIGNMENT)
    assert (kept.read_bytes() if kept.exists() else None) == before
    nbgrader(course, "generate_feedback", ASSIGNMENT, "--student=carl-partial")
    nbgrader(course, "export")
    return course


def test_nbgrader_generates_what_the_course_keeps(course):
    kept = notebooks.parse(notebooks.stored(f"exercises/{ASSIGNMENT}/{NOTEBOOK}"))
    made = given(course)
    assert [(cell.id, cell.source, cell.metadata) for cell in made.cells] == [
        (cell.id, cell.source, cell.metadata) for cell in kept.cells
    ]


@pytest.mark.parametrize("student", ANSWERS)
def test_points(course, student):
    with (course / "grades.csv").open(newline="") as file:
        rows = {row["student_id"]: row for row in csv.DictReader(file)}
    row = rows[student]
    assert (float(row["score"]), float(row["max_score"])) == (ANSWERS[student][1], 4)


@pytest.mark.parametrize("student", ANSWERS)
def test_a_graded_cell_writes_nothing_to_stderr_and_ends_in_a_number(course, student):
    book = nbformat.read(course / "autograded" / student / ASSIGNMENT / NOTEBOOK, as_version=4)
    outputs = next(cell for cell in book.cells if cell.id == "check").outputs
    assert [one for one in outputs if one.get("name") == "stderr" or one.output_type == "error"] == []
    (number,) = [one.data["text/plain"] for one in outputs if one.output_type == "execute_result"]
    assert float(number) == ANSWERS[student][1]


def test_feedback_shows_each_requirement_and_its_question(course):
    page = (course / "feedback" / "carl-partial" / ASSIGNMENT / f"{ASSIGNMENT}.html").read_text("utf-8")
    assert page.count("✔ with_reducer") == page.count("✘ next_input") == 2
    assert "What does the thread hold before the call" in page
