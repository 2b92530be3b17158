"""Read the answers kept in ``tests/answers/NN.py`` and run one as a notebook's cell would."""

import linecache
import re
from dataclasses import dataclass
from pathlib import Path

ANSWERS = Path(__file__).parent / "answers"


@dataclass(frozen=True)
class Answer:
    title: str
    right: bool
    fails: tuple[str, ...]
    """The requirements that must fail; none for a right answer."""
    source: str

    def functions(self) -> dict[str, object]:
        """Run the cell and return its names. Its functions belong to ``__main__``, as a notebook's do."""
        return run_cell(self.source)


def run_cell(source: str) -> dict[str, object]:
    """Run source as a notebook's cell and return its names; only the main module's names are beside it."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    name = f"<answer {hash(source)}>"
    # As IPython does: the lines of a cell can be looked up by the cell's name.
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    exec(compile(source, name, "exec", dont_inherit=True), namespace)
    return namespace


def answers(number: str) -> list[Answer]:
    """Return the answers to chapter ``number``'s exercise."""
    text = (ANSWERS / f"{number}.py").read_text(encoding="utf-8")
    found = []
    for cell in re.split(r"^# %% ", text, flags=re.MULTILINE)[1:]:
        heading, _, source = cell.partition("\n")
        match = re.fullmatch(r"(right|wrong \[(?P<fails>[a-z, -]+)\]): (?P<title>.+)", heading)
        if match is None:
            raise ValueError(
                f"tests/answers/{number}.py: a cell is called 'right: …' or 'wrong […]: …', not {heading!r}"
            )
        fails = tuple((match["fails"] or "").split(", ")) if match["fails"] else ()
        found.append(Answer(title=match["title"], right=not fails, fails=fails, source=source))
    return found
