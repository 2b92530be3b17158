"""How the tests of labs press buttons and wait."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from fixtures.labs.panel import Panel

Lab = TypeVar("Lab", bound=Panel)


@asynccontextmanager
async def in_use(lab: Lab) -> AsyncIterator[Lab]:
    """Have a panel for the block; then it is retired, and nothing of it goes on."""
    try:
        yield lab
    finally:
        lab.retire()
        await lab.settled()


async def pressed(lab: Panel, *buttons: Any) -> None:
    """Press one button after the other, each when nothing goes on any more."""
    for button in buttons:
        button.click()
        await lab.settled()


async def until(condition: Callable[[], bool]) -> None:
    """Wait until this holds, at most a minute."""
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.001)
