"""nbval in strict mode really compares: what a notebook stores must come out again, and one run is one form.

These tests start kernels. They use notebooks of their own, in a temporary folder.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import hygiene
import nbformat
import pytest
from nbclient.exceptions import CellExecutionError
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tools import notebooks
from tools.check import OPTIONS

SOURCES = {
    "imports": "import asyncio, os\nfrom IPython.display import HTML\nfrom ipywidgets import Button, VBox",
    "table": "HTML('<table><tr><td>1</td></tr></table>')",
    "wait": "await asyncio.sleep(0.01)\nprint('waited')",
    "panel": "class Panel(VBox):\n    __repr__ = lambda self: 'Run this cell.'\n\nPanel([Button()])",
    "guess": "predict = reveal = print\npredict('one')",
    "between": "41 + 1",
    "reveal": "reveal('one', 42)",
    "place": "sorted(os.listdir())[0], os.path.exists(os.environ['FIXTURES_PROGRESS'])",
}


def written(folder: Path, name: str, book: nbformat.NotebookNode) -> Path:
    path = folder / name
    notebooks.write(path, book)
    return path


def unrun(**more: str) -> nbformat.NotebookNode:
    cells = [new_markdown_cell("# Title", id="title")]
    return new_notebook(
        cells=[*cells, *(new_code_cell(text, id=name) for name, text in {**SOURCES, **more}.items())]
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder whose first file is known, so that a notebook can say where it was run."""
    folder = tmp_path_factory.mktemp("books")
    (folder / "a.txt").touch()
    return folder


@pytest.fixture(scope="module")
def run(folder):
    """The notebook as it is stored after a run."""
    return notebooks.execute(unrun(), folder=folder, timeout_s=60)


def copy(book: nbformat.NotebookNode) -> nbformat.NotebookNode:
    return notebooks.parse(notebooks.to_text(book))


def cell(book: nbformat.NotebookNode, name: str) -> nbformat.NotebookNode:
    return next(one for one in book.cells if one.id == name)


# --- nbval -------------------------------------------------------------------------------------------------


def nbval(folder: Path, *names: str) -> str:
    """Run nbval as ``make test`` does, on notebooks in a folder; return pytest's lines, one a cell."""
    options = [one for one in OPTIONS if one.startswith("--nbval")]
    (folder / "pytest.ini").write_text("[pytest]\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rA", "--tb=line", *options, *names],
        cwd=folder, capture_output=True, text=True, timeout=300,
        # A progress file of its own: what other tests keep in theirs must not be seen in a cell.
        env={
            **os.environ, "PYTEST_ADDOPTS": "", "COLUMNS": "300",
            "FIXTURES_PROGRESS": str(folder / "progress.json"),
        },
    )  # fmt: skip
    assert "error" not in done.stdout.splitlines()[-1], done.stdout
    return done.stdout


def test_nbval_fails_exactly_the_cells_whose_output_changed(run, folder):
    assert {one for one in OPTIONS if one.startswith("--nbval")} >= {"--nbval", "--nbval-current-env"}

    changed = copy(run)
    cell(changed, "table").outputs[0].data["text/html"] += "<!-- other -->"
    cell(changed, "wait").outputs[0].text = "slept\n"
    cell(changed, "panel").outputs = []
    cell(changed, "between").outputs[0].data["text/plain"] = "41"
    tagged = copy(changed)
    for one in tagged.cells:
        if one.cell_type == "code":
            one.metadata.tags = [hygiene.IGNORE]
    stripped = copy(run)
    for one in stripped.cells:
        if one.cell_type == "code":
            one.outputs, one.execution_count = [], None
    for name, book in {"same": run, "changed": changed, "tagged": tagged, "stripped": stripped}.items():
        written(folder, f"{name}.ipynb", book)

    lines = nbval(
        folder, *(f"{name}.ipynb" for name in ("same", "changed", "tagged", "stripped"))
    ).splitlines()
    failed = {line.split()[1] + " " + line.split()[2] for line in lines if line.startswith("FAILED")}
    order = list(SOURCES)
    assert failed == {
        f"changed.ipynb::Cell {order.index(name)}" for name in ("table", "wait", "panel", "between")
    }
    # A notebook without outputs passes, unread: the rule about execution counts is what stops it.
    passed = [line for line in lines if line.startswith("PASSED stripped.ipynb")]
    assert len(passed) == len(SOURCES)
    book = hygiene.Book.of("notebooks/stripped.ipynb", notebooks.to_text(stripped), frozenset())
    assert [one.rule for one in hygiene.judge(book, [hygiene.executed_in_order])] == ["executed_in_order"]


# --- execute -----------------------------------------------------------------------------------------------


def test_a_run_is_stored_in_one_form_and_again_as_the_same_bytes(run, folder):
    assert notebooks.to_text(notebooks.execute(copy(run), folder=folder)) == notebooks.to_text(run)
    book = hygiene.Book.of("notebooks/x.ipynb", notebooks.to_text(run), frozenset())
    rules = [hygiene.valid, hygiene.ids, hygiene.normal_form, hygiene.no_widget_state, hygiene.answers_hidden]
    rules += [
        hygiene.executed_in_order,
        hygiene.outputs_present,
        hygiene.no_errors,
        hygiene.repeatable_output,
    ]
    assert hygiene.judge(book, rules) == []


def test_a_stored_panel_is_its_sentence(run):
    assert [dict(output.data) for output in cell(run, "panel").outputs] == [{"text/plain": "Run this cell."}]


def test_a_notebook_runs_in_its_folder_and_without_the_readers_progress(run):
    assert cell(run, "place").outputs[0].data["text/plain"] == "('a.txt', False)"


def test_what_would_give_an_answer_away_is_folded(run):
    folded = {one.id for one in run.cells if one.metadata.get("jupyter", {}).get("outputs_hidden")}
    assert folded == {"between", "reveal"}


def test_a_failing_cell_leaves_the_file_as_it_was(folder, capsys):
    path = written(folder, "failing.ipynb", unrun(table="1 / 0"))
    before = path.read_bytes()
    assert notebooks.main(["execute", str(path)]) == 1
    assert "ZeroDivisionError" in capsys.readouterr().err
    assert path.read_bytes() == before
    with pytest.raises(CellExecutionError):
        notebooks.execute(notebooks.parse(path.read_text()), folder=folder)


def test_what_an_editor_leaves_behind_is_dropped():
    book = unrun()
    book.metadata = nbformat.from_dict(
        {
            "widgets": {},
            "kernelspec": {"name": "my-env"},
            "language_info": {"name": "python", "version": "3.12.1"},
        }
    )
    one = cell(book, "wait")
    one.metadata = nbformat.from_dict(
        {"collapsed": False, "scrolled": True, "trusted": True, "tags": ["x"], "jupyter": {}}
    )
    one.outputs = nbformat.from_dict(
        [
            {"output_type": "stream", "name": "stdout", "text": "wai"},
            {"output_type": "stream", "name": "stdout", "text": "ted\n"},
        ]
    )
    stored = notebooks.normalise(book)
    assert stored.metadata == notebooks.NOTEBOOK_METADATA
    assert cell(stored, "wait").metadata == {"tags": ["x"]}
    assert [output.text for output in cell(stored, "wait").outputs] == ["waited\n"]
    assert notebooks.normalise(stored) == stored
    assert one.metadata != {"tags": ["x"]}, "the notebook given was changed"


# --- script and update -------------------------------------------------------------------------------------


def test_a_script_and_back_changes_nothing(run, tmp_path):
    book = copy(run)
    book.cells[0]["attachments"] = {"a.png": {"image/png": "iVBORw0KGgo="}}
    cell(book, "table").metadata.update(tags=[hygiene.IGNORE], fixtures={"bounds": "tests/test_x.py::test_y"})
    path = written(tmp_path, "one.ipynb", book)
    before = path.read_bytes()
    assert notebooks.main(["script", str(path)]) == 0
    assert notebooks.main(["update", str(path.with_suffix(".py"))]) == 0
    assert path.read_bytes() == before


def test_an_edited_script_keeps_what_was_not_edited(run, tmp_path):
    path = written(tmp_path, "one.ipynb", run)
    script = notebooks.to_script(run).replace("# # Title", "# # A better title").replace("41 + 1", "41 + 2")
    path.with_suffix(".py").write_text(script + "\n# %%\n'new'\n")
    notebooks.main(["update", str(path.with_suffix(".py"))])
    new = notebooks.parse(path.read_text())
    assert [one.id for one in new.cells[:-1]] == [one.id for one in run.cells]
    assert new.cells[0].source == "# A better title"
    assert cell(new, "table") == cell(run, "table")
    between = cell(new, "between")
    assert (between.source, between.outputs, between.execution_count) == ("41 + 2", [], None)
    assert between.metadata == cell(run, "between").metadata
    assert new.cells[-1].source == "'new'"
    assert new.cells[-1].id not in {one.id for one in run.cells}


def test_a_new_script_makes_a_new_notebook(tmp_path):
    script = tmp_path / "new.py"
    script.write_text("# %% [markdown]\n# # New\n\n# %%\n1\n")
    notebooks.main(["update", str(script)])
    new = notebooks.parse((tmp_path / "new.ipynb").read_text())
    assert [(one.cell_type, one.source) for one in new.cells] == [("markdown", "# New"), ("code", "1")]


@pytest.mark.parametrize("command", ["script", "execute", "check"])
def test_a_file_that_is_not_there_is_named_in_one_line(command, tmp_path):
    with pytest.raises(SystemExit, match=r"no-such\.ipynb"):
        notebooks.main([command, str(tmp_path / "no-such.ipynb")])


def test_update_wants_a_script(tmp_path):
    with pytest.raises(SystemExit, match=r"takes the \.py file"):
        notebooks.main(["update", str(tmp_path / "no-such.py")])


# --- a notebook that was run here --------------------------------------------------------------------------


@pytest.fixture
def checkout(run, tmp_path):
    """A small project with the real ``conftest.py``, and two notebooks in git, of which one was changed."""
    for name in ("conftest.py", "tools/notebooks.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(notebooks.ROOT / name, tmp_path / name)
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "a.txt").touch()
    changed = copy(run)
    cell(changed, "wait").outputs[0].text = "slept\n"
    for name in ("same", "changed"):
        written(tmp_path / "notebooks", f"{name}.ipynb", run)
    git = ["git", "-C", str(tmp_path)]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "."], check=True)
    written(tmp_path / "notebooks", "changed.ipynb", changed)
    return tmp_path


def test_a_notebook_that_was_run_here_gets_one_line(checkout):
    lines = nbval(checkout, "notebooks").splitlines()
    assert lines[-1].split(" in ")[0].strip("= ") == f"{len(SOURCES)} passed"
    (line,) = [line for line in lines if "changed.ipynb" in line]
    assert "`git restore notebooks/changed.ipynb`" in line
    assert "`git add notebooks/changed.ipynb`" in line


def test_a_notebook_named_on_the_command_line_is_run_as_it_stands(checkout):
    assert "1 failed" in nbval(checkout, "notebooks/changed.ipynb").splitlines()[-1]


def test_what_counts_as_changed_is_what_git_add_would_take(checkout, monkeypatch):
    monkeypatch.setattr(notebooks, "ROOT", checkout)
    shutil.copy(checkout / "notebooks/same.ipynb", checkout / "notebooks/new.ipynb")
    assert notebooks.changed() == ["notebooks/changed.ipynb", "notebooks/new.ipynb"]
    assert "waited" in notebooks.stored("notebooks/changed.ipynb")
    assert "notebooks/new.ipynb" not in notebooks.files()
    subprocess.run(["git", "-C", str(checkout), "add", "notebooks"], check=True)
    assert notebooks.changed() == []
    assert "slept" in notebooks.stored("notebooks/changed.ipynb")
    assert "notebooks/new.ipynb" in notebooks.files()


def test_without_git_the_files_are_what_is_on_disk(run, tmp_path, monkeypatch):
    monkeypatch.setattr(notebooks, "ROOT", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    written(tmp_path, "one.ipynb", run)
    assert notebooks.files() == {"one.ipynb"}
    assert notebooks.stored("one.ipynb") == notebooks.to_text(run)
    assert notebooks.changed() == []
