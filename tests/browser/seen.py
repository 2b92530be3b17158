"""What was seen on a page of JupyterLab: cells, console messages, things that are too wide."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, kw_only=True)
class Noise:
    """A console message of JupyterLab's own that no notebook can cause or prevent."""

    text: re.Pattern[str]
    where: re.Pattern[str]
    """Matches the address of the script or resource."""
    why: str


KNOWN_NOISE: tuple[Noise, ...] = ()
"""Keep it short: a message belongs here only when it also comes with an empty notebook."""


@dataclass(frozen=True, kw_only=True)
class Message:
    """A line of the browser's console, or an exception that nothing caught."""

    kind: str
    """``error``, ``warning`` or ``exception``."""
    text: str
    where: str
    """The address of the script or resource."""

    @property
    def known(self) -> bool:
        """Whether it is in the list of JupyterLab's own noise."""
        return any(noise.text.search(self.text) and noise.where.search(self.where) for noise in KNOWN_NOISE)


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A cell as the page has it now."""

    index: int
    kind: Literal["code", "markdown", "raw"]
    source: str
    tags: tuple[str, ...]
    execution_count: int | None
    outputs: tuple[dict[str, Any], ...]
    """Code cells: outputs in the notebook format."""
    failed_to_draw: tuple[str, ...]
    """What the page could not draw: a widget without its model, a broken diagram, a script that raised."""

    @property
    def errors(self) -> list[str]:
        """Exceptions that the cell raised and outputs that could not be drawn."""
        raised = [f"{one['ename']}: {one['evalue']}" for one in self.outputs if one["output_type"] == "error"]
        return [f"cell {self.index}: {text}" for text in (*raised, *self.failed_to_draw)]

    @property
    def text(self) -> str:
        """What the cell printed and returned, as plain text."""
        return "".join(
            one["text"] if one["output_type"] == "stream" else one.get("data", {}).get("text/plain", "")
            for one in self.outputs
        )

    @property
    def comparable(self) -> list[tuple[str, dict[str, str]]]:
        """The outputs without what differs from run to run: counts, pictures, ids of widgets."""
        return comparable(self.outputs)


def comparable(outputs: Sequence[dict[str, Any]]) -> list[tuple[str, dict[str, str]]]:
    """Reduce outputs, as the notebook format has them, to what must be the same in each run."""
    kept: list[tuple[str, dict[str, str]]] = []
    for one in outputs:
        kind = one["output_type"]
        if kind == "stream":
            name, data = one["name"], {"text": joined(one["text"])}
        elif kind == "error":
            name, data = kind, {"ename": one["ename"], "evalue": one["evalue"]}
        else:
            name = kind
            data = {
                mime: joined(value)
                for mime, value in one["data"].items()
                if mime != "application/vnd.jupyter.widget-view+json" and not mime.startswith("image/")
            }
        if kept and kind == "stream" and kept[-1][0] == name:
            kept[-1] = (name, {"text": kept[-1][1]["text"] + data["text"]})
        else:
            kept.append((name, data))
    return kept


def joined(text: str | list[str]) -> str:
    """Return a text that the notebook format may keep as a list of lines."""
    return text if isinstance(text, str) else "".join(text)


@dataclass(frozen=True, kw_only=True)
class Overflow:
    """Something that is wider than its place, so that a reader has to scroll sideways."""

    cell: int | None
    """None: the notebook or the page itself."""
    what: Literal["page", "notebook", "output", "markdown", "code"]
    width: int
    """Pixels that it needs."""
    room: int
    """Pixels that it has."""
    text: str
    """How it begins."""

    def __str__(self) -> str:
        return f"cell {self.cell}, {self.what}: {self.width} px in {self.room} px: {self.text!r}"
