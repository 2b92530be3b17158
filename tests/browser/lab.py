"""A learner at work: a notebook open in a real JupyterLab, in a real Chromium."""

import json
import re
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Literal

from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, Request, Route, expect
from seen import Cell, Message, Overflow
from server import PROJECT, JupyterServer

ARTEFACTS = PROJECT / "artifacts" / "browser"
"""Where pictures go; git ignores it."""

WAIT_S = 120
"""Seconds that anything on the page may take. A run of a notebook may take :data:`RUN_S`."""
RUN_S = 600
expect.set_options(timeout=WAIT_S * 1000)

NOTEBOOK = ".jp-NotebookPanel:not(.lm-mod-hidden) .jp-Notebook"
TALLEST = 16_000
"""Pixels: Chromium draws no taller picture."""

Theme = Literal["light", "dark"]
SIZES = {"1280": (1280, 900), "800": (800, 900), "projector": (853, 480)}
"""Windows to look at a panel in, CSS pixels: a screen, a narrow one, a projector's at 150 %."""
THEMES: dict[Theme, str] = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}


class Lab:
    """A page of JupyterLab. Cells are counted from 0, Markdown cells included.

    Nothing here sleeps: each method returns when what it asked for has happened on the page, and raises
    ``playwright.sync_api.TimeoutError`` when it does not.
    """

    expect = staticmethod(expect)
    """Playwright's own: it waits, as long as anything may take, for what a locator is to become."""

    def __init__(self, page: Page, server: JupyterServer) -> None:
        self.page = page
        self.server = server
        self.messages: list[Message] = []
        self.outside: list[str] = []
        """Addresses other than the server's that the page asked for; it got no answer."""
        self._loaded = False
        page.set_default_timeout(WAIT_S * 1000)
        page.on("console", self._on_console)
        page.on("pageerror", lambda error: self._add("exception", str(error), page.url))
        page.route(lambda address: not self._is_ours(address), self._on_request)

    # Opening and looking

    def open(
        self, notebook: str | Path, *, theme: Theme = "light", sidebar: bool = False, reload: bool = False
    ) -> "Lab":
        """Open a notebook, given relative to the project, and wait until its kernel answers.

        JupyterLab is loaded once a page, which takes most of a test's time; ``reload`` loads it again, as on
        another day. What was open is closed without saving; its kernel runs on.
        """
        if not (self.server.root / notebook).is_file():
            raise FileNotFoundError(f"{notebook} is not in the project")
        if self._loaded and not reload:
            self.close_all()
            self.set_theme(theme)
            self._in_time(
                "async () => { await jupyterapp.commands.execute('docmanager:open', "
                f"{{path: {json.dumps(Path(notebook).as_posix())}}}); }}",
                WAIT_S,
            )
        else:
            self.server.set("@jupyterlab/apputils-extension:themes", theme=THEMES[theme])
            self.page.goto(self.server.page(notebook, workspace=uuid.uuid4().hex))
            self._loaded = True
        self._until(
            """path => {
                const panel = window.jupyterapp?.shell?.currentWidget;
                return panel?.context?.path === path && panel.context.isReady && panel.sessionContext.isReady
                    && panel.sessionContext.session?.kernel?.connectionStatus === 'connected';
            }""",
            Path(notebook).as_posix(),
        )
        self._kernel_answers()
        self.sidebar(show=sidebar)
        self._until_drawn()
        return self

    def close_all(self) -> None:
        """Close all that is open, without saving and without a question."""
        if not self._loaded:
            return
        self._in_time(
            """async () => {
                const open = [...jupyterapp.shell.widgets('main')];
                for (const one of open) if (one.context) one.context.model.dirty = false;
                await jupyterapp.commands.execute('application:close-all');
            }""",
            WAIT_S,
        )
        self._until("() => [...jupyterapp.shell.widgets('main')].every(one => !one.context)")

    def begin(self) -> None:
        """Forget what the page has said so far, and give the window its usual size: a new test begins."""
        self.messages.clear()
        self.outside.clear()
        self.set_viewport(*SIZES["1280"])

    def sidebar(self, *, show: bool) -> None:
        """Show or fold the file browser at the left."""
        self.page.evaluate(
            "show => { const s = jupyterapp.shell; show ? s.expandLeft() : s.collapseLeft(); }", show
        )
        self._until("show => jupyterapp.shell.leftCollapsed !== show", show)

    def set_theme(self, theme: Theme) -> None:
        """Change the theme of the open page."""
        self.page.evaluate(
            "theme => jupyterapp.commands.execute('apputils:change-theme', {theme})", THEMES[theme]
        )
        self._until(
            "name => document.body.dataset.jpThemeName === name && "
            "[...document.styleSheets].some(s => s.href?.includes('theme'))",
            THEMES[theme],
        )

    def set_viewport(self, width: int, height: int = 900) -> None:
        """Give the window a size in CSS pixels."""
        self.page.set_viewport_size({"width": width, "height": height})
        self._until("size => innerWidth === size[0] && innerHeight === size[1]", [width, height])
        self._two_frames()

    @property
    def theme(self) -> Theme:
        """The theme that the page shows."""
        return "light" if self.page.evaluate("document.body.dataset.jpThemeLight") == "true" else "dark"

    # Running

    def run_all(self, *, timeout_s: float = RUN_S) -> list[Cell]:
        """Do *Run All Cells*, and return the cells as they are when the last one has ended.

        As in JupyterLab, the cells after one that raises do not run.
        """
        self._in_time("() => jupyterapp.commands.execute('notebook:run-all-cells')", timeout_s)
        self._until_drawn()
        return self.cells()

    def run_cell(self, index: int, *, keyboard: bool = True, timeout_s: float = RUN_S) -> Cell:
        """Run one cell, by Shift+Enter or by JupyterLab's command, and return it when it has ended."""
        self.page.evaluate(
            """index => {
                const notebook = jupyterapp.shell.currentWidget.content;
                notebook.activeCellIndex = index;
                notebook.deselectAll();
                notebook.mode = 'command';
                notebook.activate();
                const model = notebook.widgets[index].model;
                // A count alone would not tell: after a restart the same number comes again.
                window.ranCell = model.type !== 'code' ? Promise.resolve() : new Promise(done => {
                    let running = false;
                    model.stateChanged.connect(function look(_, change) {
                        if (change.name !== 'executionState') return;
                        running ||= change.newValue === 'running';
                        if (!running || change.newValue !== 'idle') return;
                        model.stateChanged.disconnect(look);
                        done();
                    });
                });
            }""",
            index,
        )
        if keyboard:
            self._until(
                "index => { const n = jupyterapp.shell.currentWidget.content; "
                "return n.node.contains(document.activeElement) && n.activeCellIndex === index; }",
                index,
            )
            self.page.keyboard.press("Shift+Enter")
        else:
            self._in_time("() => jupyterapp.commands.execute('notebook:run-cell')", timeout_s)
        self._in_time("() => window.ranCell", timeout_s)
        self._until_drawn()
        return self.cells()[index]

    def restart_kernel(self) -> None:
        """Restart the kernel, without the dialog; outputs stay as they are."""
        self._in_time("() => jupyterapp.shell.currentWidget.sessionContext.restartKernel()", WAIT_S)
        self._kernel_answers()

    def interrupt_kernel(self) -> None:
        """Press ■."""
        self._in_time("() => jupyterapp.commands.execute('notebook:interrupt-kernel')", WAIT_S)

    def save(self) -> None:
        """Save the notebook: into the temporary copy."""
        self._in_time("() => jupyterapp.shell.currentWidget.context.save()", WAIT_S)

    # What the page holds

    def cells(self) -> list[Cell]:
        """Return all cells as they are now."""
        found = self.page.evaluate(
            """() => jupyterapp.shell.currentWidget.content.widgets.map((cell, index) => {
                const model = cell.model, json = model.toJSON();
                const texts = selector =>
                    [...cell.node.querySelectorAll(selector)].map(one => one.textContent.trim());
                const broken = [...texts('.jp-RenderedMermaid.jp-mod-warning pre:not(summary pre)'),
                    ...texts('.jp-OutputArea-child > :not(.jp-OutputPrompt)').filter(
                        text => /^(Error (displaying|creating|rendering) widget|JavaScript Error)/i
                            .test(text))];
                return {index, kind: model.type, source: model.sharedModel.getSource(),
                        tags: model.getMetadata('tags') ?? [], execution_count: json.execution_count ?? null,
                        outputs: json.outputs ?? [], failed_to_draw: broken};
            })"""
        )
        return [
            Cell(**one | {key: tuple(one[key]) for key in ("tags", "outputs", "failed_to_draw")})
            for one in found
        ]

    def cell(self, index: int) -> Locator:
        """Return the cell on the page."""
        return self.page.locator(f"{NOTEBOOK} .jp-Cell").nth(index)

    def output(self, index: int | None = None) -> Locator:
        """Return what a cell has put out; without a number: all cells' outputs."""
        if index is None:
            return self.page.locator(f"{NOTEBOOK} .jp-Cell-outputArea")
        return self.cell(index).locator(".jp-Cell-outputArea")

    def outputs_hidden(self, index: int) -> bool:
        """Whether a cell's output is collapsed, so that nothing of it but its first line can be seen.

        Raises:
            AssertionError: JupyterLab's model and the page do not agree.
        """
        says, shows = self.page.evaluate(
            """index => {
                const cell = jupyterapp.shell.currentWidget.content.widgets[index];
                const area = cell.node.querySelector('.jp-Cell-outputArea');
                return [cell.outputHidden, area !== null && area.checkVisibility()];
            }""",
            index,
        )
        assert says != shows, (
            f"cell {index}: hidden is {says} for JupyterLab, but shown on the page is {shows}"
        )
        return says

    @property
    def problems(self) -> list[str]:
        """Errors and uncaught exceptions in the console, except JupyterLab's own known noise."""
        return [
            f"{one.kind} at {one.where}: {one.text}"
            for one in self.messages
            if one.kind in ("error", "exception") and not one.known
        ]

    def errors(self) -> list[str]:
        """Everything that went wrong: in a cell, in the console, or an address outside that was asked for."""
        in_cells = [text for cell in self.cells() for text in cell.errors]
        return in_cells + self.problems + [f"the page asked for {address}" for address in self.outside]

    # Widgets

    def button(self, text: str, *, cell: int | None = None) -> Locator:
        """Return the widget button with this name, in one cell or in the whole notebook."""
        return self.output(cell).get_by_role("button", name=text, exact=True)

    def click(self, text: str, *, cell: int | None = None) -> None:
        """Click a widget button as soon as it is there and enabled."""
        self.button(text, cell=cell).click()

    def wait_for_text(self, text: str, *, cell: int | None = None, timeout_s: float = WAIT_S) -> None:
        """Wait until an output shows ``text``, perhaps across several elements."""
        self.output(cell).filter(has_text=text).first.wait_for(timeout=timeout_s * 1000)

    def labels(self, *, cell: int | None = None) -> list[str]:
        """Return the texts of label and HTML widgets that can be seen, in reading order."""
        found = self.output(cell).locator(".widget-html-content, .widget-label:not(.widget-inline-hbox *)")
        return [text for one in found.all() if one.is_visible() and (text := one.inner_text().strip())]

    def tab_order(self, start: Locator, *, presses: int) -> list[str]:
        """Focus ``start``, press Tab ``presses`` times, and return what had the focus, from ``start`` on.

        Each as a screen reader would say it: ``button "Cancel"``.
        """
        start.focus()
        stops = [self.focused()]
        for _ in range(presses):
            self.page.keyboard.press("Tab")
            stops.append(self.focused())
        return stops

    def focused(self) -> str:
        """Return role and name of what has the keyboard's focus; an empty text when nothing has it."""
        focus = self.page.locator(":focus")
        if not focus.count():
            return ""
        return focus.first.aria_snapshot().splitlines()[0].removeprefix("- ").removesuffix(":")

    # Width and pictures

    def overflows(self) -> list[Overflow]:
        """Return what is wider than its place at the present window size; collapsed outputs do not count."""
        with self._all_laid_out():
            found = self.page.evaluate(
                """() => {
                    const panel = jupyterapp.shell.currentWidget, found = [];
                    const note = (node, what, cell, slack) => {
                        if (node && node.checkVisibility() && node.scrollWidth > node.clientWidth + slack)
                            found.push({cell, what, width: node.scrollWidth, room: node.clientWidth,
                                        text: node.innerText.trim().slice(0, 60)});
                    };
                    note(document.scrollingElement, 'page', null, 0);
                    note(panel.content.node.querySelector('.jp-WindowedPanel-outer') ?? panel.content.node,
                         'notebook', null, 0);
                    panel.content.widgets.forEach((cell, index) => {
                        for (const [selector, what] of [['.jp-OutputArea-output', 'output'],
                                                        ['.jp-MarkdownOutput', 'markdown'],
                                                        ['.cm-scroller', 'code']])
                            for (const node of cell.node.querySelectorAll(selector)) {
                                // The widest box that scrolls inside it counts as well: a panel's own table.
                                const inside = [...node.querySelectorAll('*')].filter(one =>
                                    one.scrollWidth > one.clientWidth + 1 && one.clientWidth > 0
                                    && ['auto', 'scroll'].includes(getComputedStyle(one).overflowX));
                                for (const one of [node, ...(what === 'code' ? [] : inside)])
                                    note(one, what, index, 1);
                            }
                    });
                    return found;
                }"""
            )
        return [Overflow(**one) for one in found]

    def faint(self) -> list[str]:
        """Return the panels' texts whose contrast to what is behind them is below 4.5 : 1."""
        return self.page.evaluate(
            """() => {
                const known = {};
                const parse = text => known[text] ??= colour(text);
                const colour = text => {
                    const context = Object.assign(document.createElement('canvas'), {width: 1, height: 1})
                        .getContext('2d', {willReadFrequently: true});
                    context.fillStyle = text; context.fillRect(0, 0, 1, 1);
                    return [...context.getImageData(0, 0, 1, 1).data];
                };
                const light = ([r, g, b]) => [r, g, b].map(one => one / 255)
                    .map(one => one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4)
                    .reduce((sum, one, index) => sum + one * [0.2126, 0.7152, 0.0722][index], 0);
                const behind = node => {
                    for (let one = node; one; one = one.parentElement) {
                        const found = parse(getComputedStyle(one).backgroundColor);
                        if (found[3] === 255) return found;
                    }
                    return [255, 255, 255];
                };
                const found = [];
                const texts = '.fx-panel :is(p, span, b, td, th, dt, dd, code, label, button, textarea)';
                for (const node of document.querySelectorAll(texts)) {
                    const text = [...node.childNodes].filter(one => one.nodeType === 3)
                        .map(one => one.data).join('').trim();
                    if (!text || !node.checkVisibility() || node.closest('.fx-empty')) continue;
                    const [a, b] = [light(parse(getComputedStyle(node).color)), light(behind(node))];
                    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
                    if (contrast < 4.5) found.push(`${contrast.toFixed(1)} : 1 for ${text.slice(0, 40)}`);
                }
                return found;
            }"""
        )

    def in_each_look(self, name: str, panel: int) -> list[str]:
        """Show a panel in both themes and all :data:`SIZES`; return what is too wide or faint in any of them.

        Pictures of the panel are kept as ``NAME-THEME-SIZE.png``.

        Args:
            name: what the panel shows now.
            panel: its cell.
        """
        found = []
        for theme in THEMES:
            self.set_theme(theme)
            for size in SIZES:
                self.set_viewport(*SIZES[size])
                self.screenshot(f"{name}-{theme}-{size}", of=self.output(panel))
                found += [f"{theme}, {size}: {one}" for one in (*self.overflows(), *self.faint())]
        self.set_theme("light")
        self.set_viewport(*SIZES["1280"])
        return found

    def screenshot(self, name: str, *, of: Locator | None = None, whole: bool = False) -> Path:
        """Keep a picture as ``artifacts/browser/NAME.png`` and return its path.

        Args:
            name: the file's name, without ending.
            of: what to take; else the window.
            whole: the notebook from its first cell to its last, cut off after :data:`TALLEST`.
        """
        return self.picture(ARTEFACTS / f"{name}.png", of=of, whole=whole)

    def picture(self, file: Path, *, of: Locator | None = None, whole: bool = False) -> Path:
        """Keep a picture in ``file``; see :meth:`screenshot`."""
        file.parent.mkdir(parents=True, exist_ok=True)
        if not whole and of is None:
            self.page.screenshot(path=file, animations="disabled", caret="hide")
            return file
        before = self.page.viewport_size
        with self._all_laid_out():
            # JupyterLab scrolls inside itself: only a window as high as the content shows all of it.
            needed = self.page.evaluate(
                """() => {
                    const panel = jupyterapp.shell.currentWidget.content;
                    panel.widgets[0].node.scrollIntoView();
                    const end = panel.widgets.at(-1).node.getBoundingClientRect().bottom;
                    return end - panel.widgets[0].node.getBoundingClientRect().top;
                }"""
            )
            top = self.page.locator(NOTEBOOK).bounding_box()["y"]
            self.set_viewport(before["width"], max(200, min(TALLEST, int(top + needed) + 80)))
            if of is not None:
                of.screenshot(path=file, animations="disabled", caret="hide")
            else:
                box = self.page.locator(NOTEBOOK).bounding_box()
                self.page.screenshot(
                    path=file,
                    animations="disabled",
                    caret="hide",
                    clip=box | {"height": min(needed + 24, box["height"])},
                )
            self.set_viewport(before["width"], before["height"])
        return file

    # Inside

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self._add(message.type, message.text, message.location.get("url", ""))

    def _add(self, kind: str, text: str, where: str) -> None:
        where = re.sub(r"[?#].*", "", where).replace(self.server.url, "/")
        self.messages.append(Message(kind=kind, text=text.replace(self.server.token, "…"), where=where))

    def _on_request(self, route: Route, request: Request) -> None:
        self.outside.append(request.url)
        route.abort()

    def _is_ours(self, address: str) -> bool:
        return address.startswith((self.server.url, "data:", "blob:"))

    def _until(self, condition: str, argument: Any = None) -> None:
        self.page.wait_for_function(condition, arg=argument, timeout=WAIT_S * 1000)

    def _in_time(self, script: str, timeout_s: float) -> Any:
        """Evaluate a script that returns a promise; playwright itself would wait for ever."""
        return self.page.evaluate(
            f"""ms => Promise.race([({script})(), new Promise((_, fail) => setTimeout(
                () => fail(new Error('not done after ' + ms / 1000 + ' s')), ms))])""",
            timeout_s * 1000,
        )

    def _kernel_answers(self) -> None:
        self._in_time("() => jupyterapp.shell.currentWidget.sessionContext.session.kernel.info", WAIT_S)

    def _until_drawn(self) -> None:
        """Wait until outputs are on the page, widgets have their views, and diagrams are drawn or refused."""
        self._until(
            """() => jupyterapp.shell.currentWidget.content.widgets.every(cell => {
                const {node, model} = cell, count = selector => node.querySelectorAll(selector).length;
                const texts = [];
                if (model.type === 'markdown' && cell.rendered) texts.push(model.sharedModel.getSource());
                if (model.type === 'code' && !cell.outputHidden) {
                    const outputs = model.toJSON().outputs;
                    // JupyterLab itself shows no more than the first fifty.
                    if (count('.jp-OutputArea-child') < Math.min(outputs.length, 50)) return false;
                    texts.push(...outputs.map(one => one.data?.['text/markdown'] ?? ''));
                }
                const diagrams = texts.flatMap(text => [].concat(text).join('').match(/^```mermaid/gm) ?? []);
                return count('.jp-RenderedMermaid') >= diagrams.length
                    && ![...node.querySelectorAll('.jp-OutputArea-child > :not(.jp-OutputPrompt)')].some(
                        one => one.innerText.trim().startsWith('Loading widget'));
            })"""
        )
        self._two_frames()

    def _two_frames(self) -> None:
        self.page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    @contextmanager
    def _all_laid_out(self) -> Iterator[None]:
        """Lay out cells outside the window as well, which the browser skips by default: they have no size."""
        style = self.page.add_style_tag(
            content=".jp-Cell { content-visibility: visible !important; contain: none !important; }"
        )
        self._two_frames()
        try:
            yield
        finally:
            style.evaluate("node => node.remove()")


@contextmanager
def lab_page(
    browser: Browser, server: JupyterServer, *, width: int = 1280, height: int = 900, scale: float = 1
) -> Iterator[Lab]:
    """Open a page that remembers nothing of an earlier one, ``width`` × ``height`` CSS pixels."""
    context = browser.new_context(
        viewport={"width": width, "height": height}, device_scale_factor=scale, locale="en-US"
    )
    try:
        yield Lab(context.new_page(), server)
    finally:
        context.close()


class Pages:
    """The page that the tests of one file take in turn: loading JupyterLab takes longer than most of them.

    A page on which a test failed is given up, and the next test gets a new one.
    """

    def __init__(self, browser: Browser, server: JupyterServer) -> None:
        self._browser = browser
        self._server = server
        self._stack = ExitStack()
        self._page: Lab | None = None

    def take(self) -> Lab:
        """Return the page, nothing open on it and nothing said yet."""
        if self._page is None:
            self._page = self._stack.enter_context(lab_page(self._browser, self._server))
        self._page.begin()
        return self._page

    def give_up(self) -> None:
        """Close the page."""
        self._page = None
        self._stack.close()

    close = give_up
