"""Edit, run and check the notebooks, so that what is stored is the same bytes whoever runs it.

    python tools/notebooks.py script notebooks/02_the_counter.ipynb    write a percent script beside it
    python tools/notebooks.py update notebooks/02_the_counter.py       put the script's text into the notebook
    python tools/notebooks.py execute notebooks/02_the_counter.ipynb   run it in a fresh kernel, in place
    python tools/notebooks.py check notebooks/02_the_counter.ipynb     judge the file as it stands

``script`` is for those who would rather edit text; the scripts are not kept in git. ``check`` judges what is
on disk; the tests judge what is in git's index, so ``git add`` a notebook before ``make test``.
"""

import argparse
import ast
import os
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import nbformat
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parents[1]

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
"""Its model ids are new in each run; without it a stored panel reads as its ``repr``, which is a sentence."""

NOTEBOOK_METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {
        "file_extension": ".py",
        "mimetype": "text/x-python",
        "name": "python",
        "pygments_lexer": "ipython3",
    },
}
"""What every stored notebook says of itself: enough for colours on GitHub, no versions."""

CELL_METADATA = ("deletable", "editable", "fixtures", "jupyter", "nbgrader", "tags")
"""What a cell may say of itself; timings, folded cells and other traces of an editor are dropped."""


# --- the stored form ---------------------------------------------------------------------------------------


def parse(text: str) -> NotebookNode:
    """Return the notebook in ``text`` exactly as it is: nothing is upgraded, repaired or given an id.

    Raises:
        ValueError: the text is not the JSON of a notebook in format 4.
    """
    try:
        book = nbformat.v4.reads(text)
        if book.nbformat != 4 or not isinstance(book.cells, list):
            raise KeyError("cells")
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise ValueError(f"not a notebook in format 4 ({error!r}); open and save it in JupyterLab") from error
    return book


def normalise(book: NotebookNode) -> NotebookNode:
    """Return a copy of ``book`` in the one form that is kept in git; what it shows is not changed."""
    book = nbformat.from_dict(book)
    book.nbformat, book.nbformat_minor = 4, 5
    book.metadata = nbformat.from_dict(NOTEBOOK_METADATA)
    for cell in book.cells:
        cell.setdefault("id", uuid.uuid4().hex[:8])
        cell.metadata = nbformat.from_dict({k: v for k, v in cell.metadata.items() if k in CELL_METADATA})
        if not cell.metadata.get("jupyter", True):
            del cell.metadata["jupyter"]
        cell.source = cell.source.strip("\n")
        if cell.cell_type == "code":
            cell.outputs = list(_stored(cell.outputs, cell.execution_count))
    return book


def _stored(outputs: Sequence[NotebookNode], count: int | None) -> Iterator[NotebookNode]:
    before = None
    for output in outputs:
        if "data" in output:
            output.data.pop(WIDGET_VIEW, None)
            if not output.data:
                continue
        if output.output_type == "execute_result":
            output.execution_count = count
        if output.output_type == "stream" and before is not None and before.get("name") == output.name:
            before.text += output.text  # how a stream is cut into messages depends on the clock
            continue
        before = output if output.output_type == "stream" else None
        yield output


def to_text(book: NotebookNode) -> str:
    """Return the JSON of ``book``: sorted keys, one space of indent, a newline at the end."""
    return nbformat.v4.writes(book).rstrip("\n") + "\n"


def write(path: Path, book: NotebookNode) -> bool:
    """Put ``book`` in place of what ``path`` holds, all or nothing; return whether anything changed."""
    text = to_text(book)
    if path.exists() and path.read_bytes() == text.encode():
        return False
    part = path.with_name(f".{path.name}.part")
    part.write_bytes(text.encode())
    os.replace(part, path)
    return True


# --- predictions -------------------------------------------------------------------------------------------


def questions(book: NotebookNode, function: str) -> list[tuple[int, str]]:
    """Return (cell index, question id) for each call of ``function`` ("predict" or "reveal"), in order.

    A call whose id is not written out as a string has the id "".
    """
    found = []
    for index, cell in enumerate(book.cells):
        for node in ast.walk(tree(cell)):
            if isinstance(node, ast.Call) and _name(node.func) == function:
                first = node.args[0] if node.args else None
                text = first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else ""
                found.append((index, text))
    return found


def tree(cell: NotebookNode) -> ast.Module:
    """Return the syntax tree of a code cell; an empty one for a cell that is not code or cannot be read."""
    if cell.cell_type != "code":
        return ast.Module(body=[], type_ignores=[])
    try:
        return ast.parse(cell.source)
    except SyntaxError:
        return ast.Module(body=[], type_ignores=[])


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def answers(book: NotebookNode) -> list[int]:
    """Return the indices of the code cells after a ``predict``, up to and with its ``reveal``."""
    told = questions(book, "reveal")
    inside: set[int] = set()
    for asked, question in questions(book, "predict"):
        ends = [index for index, other in told if other == question and index > asked]
        inside.update(range(asked + 1, ends[0] + 1) if ends else ())
    return sorted(index for index in inside if book.cells[index].cell_type == "code")


def hide_answers(book: NotebookNode) -> None:
    """Fold the stored output of each cell that would give an answer away; running the cell shows it."""
    for index in answers(book):
        book.cells[index].metadata.setdefault("jupyter", NotebookNode())["outputs_hidden"] = True


PREVIEWED = ("text/html", "image/svg+xml", "application/pdf", "text/markdown", "text/plain")


def preview(cell: NotebookNode) -> str:
    """Return what JupyterLab shows of a cell's output while it is hidden: the first line of the first one.

    The line is shown as the output has it, HTML tags included; empty where there is nothing to show.
    """
    first = cell.outputs[0] if cell.outputs else {}
    shown = first.get("data", {})
    text = first.get("text", "") or next((shown[kind] for kind in PREVIEWED if kind in shown), "")
    lines = text.split("\n") if isinstance(text, str) else text
    return next((line for line in lines if line), "")


# --- script and back ---------------------------------------------------------------------------------------


def to_script(book: NotebookNode) -> str:
    """Return ``book`` as a percent script: text, code, cell metadata; outputs and ids stay behind."""
    import jupytext

    plain = nbformat.from_dict(book)
    plain.metadata = nbformat.from_dict({"jupytext": {"notebook_metadata_filter": "-all"}})
    for cell in plain.cells:
        cell.pop("attachments", None)
    return jupytext.writes(plain, fmt=_percent())


def from_script(script: str, book: NotebookNode | None) -> NotebookNode:
    """Return ``book`` with the text, code and cell metadata of ``script``.

    A cell keeps its id and attachments, and its output while its code is what it was; a cell that was
    changed has no output until it is run. Without a ``book`` the notebook is a new one.
    """
    import jupytext
    from jupytext.combine import combine_inputs_with_outputs

    new = jupytext.reads(script, fmt=_percent())
    if book is None:
        return normalise(new)
    old = {cell.get("id"): cell for cell in book.cells}
    new = combine_inputs_with_outputs(new, nbformat.from_dict(book), fmt=_percent())
    for cell in new.cells:
        before = old.get(cell.get("id"))
        if cell.cell_type == "code" and (before is None or before.source != cell.source):
            cell.outputs, cell.execution_count = [], None
    return normalise(new)


def _percent() -> dict[str, str]:
    return {"extension": ".py", "format_name": "percent", "cell_metadata_filter": "all"}


# --- running -----------------------------------------------------------------------------------------------


def execute(book: NotebookNode, *, folder: Path, timeout_s: float = 120) -> NotebookNode:
    """Run all cells of ``book`` in a fresh kernel that works in ``folder``, and return it in its stored form.

    Nothing of the reader is touched: guesses go to a temporary file.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell raised.
        nbclient.exceptions.CellTimeoutError: a cell took longer than ``timeout_s``.
    """
    from nbclient import NotebookClient
    from traitlets.config import Config

    book = normalise(book)
    client = NotebookClient(
        book,
        timeout=timeout_s,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
        record_timing=False,
        store_widget_state=False,
        iopub_timeout=60,
        raise_on_iopub_timeout=True,  # a busy machine must not lose an output silently
        config=Config(KernelManager={"transport_encryption": "auto"}),  # else the kernel warns on our stderr
    )
    with clean_environment() as environment:
        client.execute(env=environment)
    hide_answers(book)
    return normalise(book)


@contextmanager
def clean_environment() -> Iterator[dict[str, str]]:
    """Give an environment without the reader's guesses, IPython profile and tracing; then remove it."""
    places = {"FIXTURES_PROGRESS": "progress.json", "IPYTHONDIR": "ipython", "MPLCONFIGDIR": "matplotlib"}
    off = ("LANGSMITH_TRACING", "LANGSMITH_TRACING_V2", "LANGCHAIN_TRACING", "LANGCHAIN_TRACING_V2")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        changes = {name: str(Path(folder, place)) for name, place in places.items()}
        yield os.environ | changes | dict.fromkeys(off, "false")


# --- git ---------------------------------------------------------------------------------------------------


def tracked() -> frozenset[str] | None:
    """Return the files that git has in its index, relative to the root; None where this is not a checkout."""
    names = _git("ls-files", "-z")
    return None if names is None else frozenset(names.split("\0")) - {""}


def files() -> frozenset[str]:
    """Return the project's files: those in git's index or, where this is not a checkout, those on disk."""
    known = tracked()
    if known is not None:
        return known
    return frozenset(path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*") if path.is_file())


def stored(name: str) -> str:
    """Return the text of a file as git's index has it, or as it is on disk where this is not a checkout."""
    text = _git("show", f":{name}")
    return (ROOT / name).read_text(encoding="utf-8") if text is None else text


def changed() -> list[str]:
    """Return the notebooks whose file on disk is not what git's index has, new and deleted ones with them."""
    known = _git("ls-files", "-z", "--modified", "--others", "--exclude-standard", "--", "notebooks/*.ipynb")
    return sorted(set((known or "").split("\0")) - {""})


def _git(*arguments: str) -> str | None:
    try:
        run = subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return run.stdout.decode("utf-8")


# --- from a terminal ---------------------------------------------------------------------------------------


def _read(path: Path) -> NotebookNode:
    try:
        return parse(_text(path))
    except ValueError as error:
        raise SystemExit(f"{path}: {error}.") from error


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise SystemExit(f"{path}: {error.strerror}; give the path of a notebook.") from error


def _script(paths: list[Path]) -> int:
    for path in paths:
        target = path.with_suffix(".py")
        target.write_text(to_script(_read(path)), encoding="utf-8")
        print(f"{target}: edit it, then `python tools/notebooks.py update {target}`.")
    return 0


def _update(paths: list[Path]) -> int:
    for path in paths:
        target = path.with_suffix(".ipynb")
        if not path.is_file() or path.suffix != ".py":
            raise SystemExit(f"{path}: no such script; `update` takes the .py file that `script` wrote.")
        new = from_script(path.read_text(encoding="utf-8"), _read(target) if target.exists() else None)
        print(f"{target}: {'updated; now `execute` it' if write(target, new) else 'nothing to update'}.")
    return 0


def _execute(paths: list[Path]) -> int:
    from nbclient.exceptions import CellControlSignal, DeadKernelError

    for path in paths:
        try:
            book = execute(_read(path), folder=path.resolve().parent)
        except (
            CellControlSignal,
            DeadKernelError,
        ) as error:  # a cell raised, took too long, or ended the kernel
            print(f"{path}: left as it was, because a cell failed:\n{error}", file=sys.stderr)
            return 1
        print(f"{path}: {'stored' if write(path, book) else 'the same as before'}.")
    return 0


def _check(paths: list[Path]) -> int:
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
    import hygiene

    known = files()
    count = 0
    for path in paths:
        place = path.resolve()
        name = place.relative_to(ROOT).as_posix() if place.is_relative_to(ROOT) else place.name
        _read(path)
        for complaint in hygiene.judge(hygiene.Book.of(name, _text(path), known | {name})):
            count += 1
            print(complaint)
    print(f"{count} complaint{'' if count == 1 else 's'}.")
    return 1 if count else 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python tools/notebooks.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = {"script": _script, "update": _update, "execute": _execute, "check": _check}
    parser.add_argument("command", choices=commands)
    parser.add_argument("paths", nargs="+", type=Path, metavar="FILE")
    options = parser.parse_args(arguments)
    return commands[options.command](options.paths)


if __name__ == "__main__":
    sys.exit(main())
