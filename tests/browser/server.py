"""One JupyterLab server for tests: everything that it reads or writes lies in a folder of its own."""

import contextlib
import json
import os
import secrets
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

PROJECT = Path(__file__).resolve().parents[2]
SHOWN = ("notebooks", "exercises", "solutions", "examples", "README.md")
"""What a learner opens from JupyterLab: only these are copied for the tests."""

START_S = 120
"""Seconds that a server may take to answer, or to end: many times what a busy machine was seen to need."""

NOT_THE_LEARNERS = {
    "lab": ("@jupyter/nbgrader", "jupyterlab-jupytext", "@jupyter-notebook/lab-extension"),
    "server": (
        "jupyterlab_jupytext",
        "notebook",
        "nbgrader.server_extensions.assignment_list",
        "nbgrader.server_extensions.course_list",
        "nbgrader.server_extensions.formgrader",
        "nbgrader.server_extensions.validate_assignment",
    ),
}
"""Extensions that come with the development tools: a learner's JupyterLab has none of them."""


MARK = "FIXTURES_TEST_SERVER"
"""An environment variable by which everything that a server has started is known."""


class JupyterServer:
    """A running ``jupyter lab``, with the project's notebooks copied to a folder that may be spoilt.

    Kernels use the library as it is installed, and keep a learner's progress in a temporary file. Use it as a
    context manager; leaving it ends the server and its kernels, and raises when one of them does not end.

    Args:
        folder: an empty folder for everything: root, home, settings, log.
        options: further command line options of ``jupyter lab``.
        environment: environment variables to set for server and kernels.
    """

    def __init__(
        self, folder: Path, *, options: Sequence[str] = (), environment: Mapping[str, str] | None = None
    ) -> None:
        self.folder = folder
        self.root = folder / "root"
        self.log = folder / "server.log"
        self.progress = folder / "progress.json"
        self.settings = folder / "settings"
        self.workspaces = folder / "workspaces"
        self.runtime = folder / "runtime"
        self.token = secrets.token_hex(16)
        self._mark = secrets.token_hex(16)
        self.url = ""
        self._options = tuple(options)
        self._environment = dict(environment or {})
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "JupyterServer":
        for folder in (self.root, self.settings, self.workspaces, self.runtime):
            folder.mkdir(parents=True)
        self._fill()
        command = [
            sys.executable,
            str(Path(__file__).with_name("serve.py")),
            "--no-browser",
            "--ServerApp.ip=127.0.0.1",
            "--ServerApp.port=0",
            f"--ServerApp.root_dir={self.root}",
            "--LabApp.expose_app_in_browser=True",
            "--KernelManager.transport_encryption=auto",
            *(["--allow-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []),
            *self._options,
        ]
        env = private_environment(self.folder, mark=self._mark, progress=self.progress) | {
            "JUPYTER_RUNTIME_DIR": str(self.runtime),
            "JUPYTERLAB_SETTINGS_DIR": str(self.settings),
            "JUPYTERLAB_WORKSPACES_DIR": str(self.workspaces),
            "JUPYTER_TOKEN": self.token,
            **self._environment,
        }
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=log, stderr=log, env=env, cwd=self.root
            )
        try:
            self._wait_until_up()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """The server's process id."""
        assert self._process is not None, "the server was not started"
        return self._process.pid

    def page(self, path: str | Path, *, workspace: str) -> str:
        """Return the address that opens a file of the root, in a workspace in which nothing else is open."""
        return f"{self.url}lab/workspaces/{workspace}/tree/{Path(path).as_posix()}?token={self.token}&reset"

    def set(self, plugin: str, **values: Any) -> None:
        """Keep settings as a user has changed them, as for ``@jupyterlab/apputils-extension:themes``."""
        package, name = plugin.split(":")
        file = self.settings / package / f"{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(values))

    def reset(self) -> None:
        """End all kernels and bring root, settings and progress back to how they were at the start.

        Raises:
            TimeoutError: a kernel is still there after :data:`START_S` seconds.
        """
        self.end_kernels()
        self._fill()

    def end_kernels(self) -> None:
        """End all kernels, as when JupyterLab is closed for the day; files stay as they are.

        Raises:
            TimeoutError: a kernel is still there after :data:`START_S` seconds.
        """
        for kind in ("sessions", "kernels"):
            for one in self.ask("GET", f"api/{kind}"):
                self.ask("DELETE", f"api/{kind}/{one['id']}", missing_ok=True)
        wait(lambda: not self.started(), lambda: f"still running: {listed(self.started())}")

    def started(self) -> list[psutil.Process]:
        """Return what the server has started and still runs: kernels, and what these have started.

        Found by a mark in their environment, so also when their own parent is gone.
        """
        return [one for one in marked(self._mark) if self._process is None or one.pid != self._process.pid]

    def ask(self, method: str, path: str, *, missing_ok: bool = False) -> Any:
        """Send a request to the server's REST interface and return its decoded answer, if it has one."""
        request = urllib.request.Request(
            self.url + path, method=method, headers={"Authorization": f"token {self.token}"}
        )
        try:
            with urllib.request.urlopen(request, timeout=START_S) as answer:
                body = answer.read()
        except urllib.error.HTTPError as error:
            if error.code == 404 and missing_ok:
                return None
            raise
        return json.loads(body) if body else None

    def stop(self) -> None:
        """End the server with all that it started.

        Raises:
            RuntimeError: something had to be killed.
        """
        if self._process is None:
            return
        process, self._process = self._process, None
        if process.stdin is not None:
            process.stdin.close()
        try:
            wait(lambda: process.poll() is not None and not marked(self._mark), lambda: "")
        except TimeoutError:
            left = marked(self._mark)
            names = listed(left)
            end(left)
            process.wait(timeout=START_S)
            raise RuntimeError(
                f"{START_S} s after JupyterLab was told to stop these ran on: {names}"
            ) from None

    def _fill(self) -> None:
        for folder in (self.root, self.settings, self.workspaces):
            for one in folder.iterdir():
                shutil.rmtree(one) if one.is_dir() else one.unlink()
        for one in self.progress.parent.glob(f"{self.progress.name}*"):
            one.unlink()
        copy_shown(self.root)
        self.set("@jupyterlab/apputils-extension:notification", fetchNews="false", checkForUpdates=False)

    def _wait_until_up(self) -> None:
        assert self._process is not None

        def up() -> bool:
            if self._process.poll() is not None:
                raise RuntimeError(
                    f"JupyterLab ended while it started; its log:\n{self.log.read_text()[-3000:]}"
                )
            for file in self.runtime.glob("jpserver-*.json"):
                try:
                    self.url = json.loads(file.read_text())["url"]
                    return bool(self.ask("GET", "api/status"))
                except (OSError, ValueError):
                    return False  # written in part, or not listening yet
            return False

        wait(up, lambda: f"JupyterLab does not answer; its log:\n{self.log.read_text()[-3000:]}")


def private_environment(folder: Path, *, mark: str, progress: Path) -> dict[str, str]:
    """Return an environment in which Jupyter reads and writes nothing of the person who runs the tests.

    Extensions that only the development tools bring are switched off.

    Args:
        folder: where everything goes instead.
        mark: by this :func:`marked` finds whatever is started with these variables.
        progress: where a learner's progress is kept.
    """
    home = folder / "home"
    config = home / "jupyter" / "config"
    (config / "labconfig").mkdir(parents=True)
    (config / "labconfig" / "page_config.json").write_text(
        json.dumps({"disabledExtensions": dict.fromkeys(NOT_THE_LEARNERS["lab"], True)})
    )
    (config / "jupyter_server_config.json").write_text(
        json.dumps({"ServerApp": {"jpserver_extensions": dict.fromkeys(NOT_THE_LEARNERS["server"], False)}})
    )
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("JUPYTER", "JPY_"))}
    return kept | {
        "HOME": str(home),
        "USERPROFILE": str(home),
        "XDG_CONFIG_HOME": str(home / "config"),
        "XDG_DATA_HOME": str(home / "data"),
        "IPYTHONDIR": str(home / "ipython"),
        "JUPYTER_CONFIG_DIR": str(config),
        "JUPYTER_DATA_DIR": str(home / "jupyter" / "data"),
        "JUPYTER_RUNTIME_DIR": str(home / "jupyter" / "runtime"),
        "FIXTURES_PROGRESS": str(progress),
        MARK: mark,
    }


def copy_shown(target: Path) -> None:
    """Copy what a learner opens as it is in the work tree, without what git ignores: checkpoints, caches."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *SHOWN],
        cwd=PROJECT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    for name in filter(None, listed.stdout.split("\0")):
        if (PROJECT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(PROJECT / name, target / name)


def marked(mark: str) -> list[psutil.Process]:
    """Return the running processes that carry ``mark``; a zombie that waits to be collected does not run."""
    found = []
    for one in psutil.process_iter():
        # Another user's process cannot be read, and is not ours.
        with contextlib.suppress(psutil.Error, OSError):
            if one.environ().get(MARK) == mark and one.status() != psutil.STATUS_ZOMBIE:
                found.append(one)
    return found


def listed(processes: Sequence[psutil.Process]) -> str:
    """Return processes by id and the start of their command lines."""
    texts = []
    for one in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            texts.append(f"{one.pid} ({' '.join(one.cmdline())[:120]})")
    return ", ".join(texts)


def end(processes: Sequence[psutil.Process]) -> None:
    """Kill processes, those already gone left aside."""
    for one in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            one.kill()


def wait(
    condition: Callable[[], bool], complaint: Callable[[], str], *, timeout_s: float | None = None
) -> None:
    """Wait until ``condition()`` is true, at most ``timeout_s`` seconds (:data:`START_S`).

    Raises:
        TimeoutError: it was not; ``complaint()`` is the message.
    """
    timeout_s = START_S if timeout_s is None else timeout_s
    end = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"{complaint()} (after {timeout_s:g} s)")
        time.sleep(0.05)
