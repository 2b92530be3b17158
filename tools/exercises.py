"""Make the learners' exercises from the instructors' solutions, as nbgrader would.

    python -m tools.exercises            write exercises/ anew from solutions/
    python -m tools.exercises --check    only say whether they agree in git's index (exit 1 when not)

nbgrader's own preprocessors run in this process, with the settings of ``nbgrader_config.py``; only its
database is left out. A file in a solution's folder that is no notebook is copied.
"""

import argparse
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from nbformat import NotebookNode

from tools.notebooks import ROOT, files, normalise, parse, stored, to_text

SOURCE, RELEASE = "solutions", "exercises"

LEFT_OUT = ("SaveCells", "InstantiateTests")
"""Steps of nbgrader that need its database, or tests in its own language, which the course has not."""

TELLTALE = ("BEGIN SOLUTION", "END SOLUTION", "BEGIN HIDDEN TESTS", "END HIDDEN TESTS")
"""What an exercise must not hold."""


def exercise(solution: NotebookNode) -> NotebookNode:
    """Return the exercise that belongs to a solution: stubs for solutions, no hidden tests, no output.

    Raises:
        RuntimeError: a region is not closed, or its cell lacks nbgrader's metadata (nbgrader's words).
        ValueError: a part of the solution would be left, or a cell begins or ends in an empty line.
    """
    from nbgrader.converters import GenerateAssignment
    from traitlets.config import PyFileConfigLoader

    config = PyFileConfigLoader("nbgrader_config.py", str(ROOT)).load_config()
    book, resources = normalise(solution), {}
    for step in GenerateAssignment.class_traits()["preprocessors"].default():
        if step.__name__ not in LEFT_OUT:
            book, resources = step(config=config).preprocess(book, resources)
    for cell in book.cells:
        if any(one in cell.source for one in TELLTALE):
            raise ValueError(f"cell {cell.id}: a part of the solution is left; does each BEGIN have its END?")
        if cell.source != cell.source.strip("\n"):
            raise ValueError(f"cell {cell.id}: begins or ends in an empty line without its hidden part")
    return normalise(book)


def wanted(read: Callable[[str], str], names: Iterable[str]) -> dict[str, str]:
    """Return the text of each file that belongs into ``exercises``, by its path below the root.

    ``names`` are the project's files, and ``read`` gives the text of one.
    """
    made = {}
    for name in sorted(names):
        if name.startswith(f"{SOURCE}/") and "/." not in name:
            text = read(name)
            try:
                made[RELEASE + name.removeprefix(SOURCE)] = (
                    to_text(exercise(parse(text))) if name.endswith(".ipynb") else text
                )
            except (RuntimeError, ValueError) as error:
                raise SystemExit(f"{name}: {error}.") from error
    return made


def differences(read: Callable[[str], str], names: Iterable[str]) -> list[str]:
    """Return a sentence for each exercise that is not what its solution makes; none when all agree."""
    names = set(names)
    made = wanted(read, names)
    there = {name for name in names if name.startswith(f"{RELEASE}/") and "/." not in name}
    return [
        *(f"{name}: is missing" for name in sorted(made.keys() - there)),
        *(f"{name}: belongs to no solution" for name in sorted(there - made.keys())),
        *(
            f"{name}: differs from what its solution makes"
            for name in sorted(there & made.keys())
            if read(name) != made[name]
        ),
    ]


def write(root: Path) -> list[str]:
    """Make ``exercises`` below ``root`` anew from ``solutions``; return what changed, a sentence each.

    Files that belong to no solution are left: they may be a learner's own.
    """

    def read(name: str) -> str:
        return (root / name).read_text(encoding="utf-8")

    done = []
    for name, text in wanted(read, _on_disk(root, SOURCE)).items():
        target = root / name
        if not target.exists() or target.read_text(encoding="utf-8") != text:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8", newline="\n")
            done.append(f"{name}: written")
    return done


def _on_disk(root: Path, folder: str) -> set[str]:
    return {one.relative_to(root).as_posix() for one in (root / folder).rglob("*") if one.is_file()}


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line says and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.exercises", description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only compare what is in git's index")
    if parser.parse_args(arguments).check:
        said = differences(stored, files())
        print("\n".join(said) or "The exercises are what the solutions make.")
        if said:
            print("Run `make exercises`, look at the changes, and `git add` them.")
        return 1 if said else 0
    print("\n".join(write(ROOT)) or "The exercises are what the solutions make.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
