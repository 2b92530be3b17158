"""What every test and every notebook under test is kept away from: the learner's own files, and tracing.

A notebook that was run or edited here and is not in git's index as it stands gets one line instead of many
failures. ``git add`` it to have it tested; named on the command line, it is run as it stands.
"""

import os
import signal
import tempfile
from functools import cache
from pathlib import Path

import pytest

from tools.notebooks import ROOT, changed

_folder = tempfile.TemporaryDirectory(prefix="fixtures-tests-", ignore_cleanup_errors=True)

os.environ["FIXTURES_PROGRESS"] = os.path.join(_folder.name, "progress.json")
# Kernels share one history file in the home folder otherwise, and may find it locked.
for _name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "MPLCONFIGDIR"):
    os.environ[_name] = os.path.join(_folder.name, _name.lower())
# What a killed kernel leaves in the temporary folder is removed with ours.
if "PYTEST_XDIST_WORKER" not in os.environ:
    os.environ["TMPDIR"] = os.path.join(_folder.name, "tmp")
    os.mkdir(os.environ["TMPDIR"])
# A script's background job is started with SIGINT ignored, which all its children would inherit.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
for _name in ("LANGSMITH_TRACING", "LANGSMITH_TRACING_V2", "LANGCHAIN_TRACING", "LANGCHAIN_TRACING_V2"):
    os.environ[_name] = "false"


def pytest_unconfigure():
    """Remove the folder; each worker of a parallel run has one of its own."""
    _folder.cleanup()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """With ``--dist loadfile`` give a file to one worker, as ever, and the browser's files to two in all.

    Two Chromiums keep two processors busy; other tests often wait, so there are more workers than processors.
    (Not by ``--dist loadgroup``: xdist writes its groups where pytest 9.2 no longer reads them.)
    """
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class TwoForTheBrowser(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            if not file.startswith("tests/browser/"):
                return file
            return "chapters" if file.endswith("test_browser_chapters.py") else "browser"

    return TwoForTheBrowser(config, log)


def pytest_ignore_collect(collection_path, config):
    """Leave a notebook out of a run over folders when git's index has another version of it."""
    if collection_path.suffix == ".ipynb" and collection_path in _changed():
        return True
    return None


def pytest_terminal_summary(terminalreporter, config):
    """Say in one line which notebooks were left out, whatever else was tested."""
    for path in sorted(_changed()):
        name = path.relative_to(ROOT).as_posix()
        terminalreporter.write_line(
            f"{name} is not as git's index has it, so runs of a folder leave it out: "
            f"`git restore {name}` puts it back, `git add {name}` has it tested.",
            yellow=True,
        )


@cache
def _changed() -> frozenset[Path]:
    return frozenset(ROOT / name for name in changed())
