"""What every test and every notebook under test is kept away from: the learner's own files, and tracing."""

import os
import tempfile

_folder = tempfile.TemporaryDirectory(prefix="fixtures-tests-", ignore_cleanup_errors=True)

os.environ["FIXTURES_PROGRESS"] = os.path.join(_folder.name, "progress.json")
# Kernels share one history file in the home folder otherwise, and may find it locked.
for _name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "MPLCONFIGDIR"):
    os.environ[_name] = os.path.join(_folder.name, _name.lower())
for _name in ("LANGSMITH_TRACING", "LANGSMITH_TRACING_V2", "LANGCHAIN_TRACING", "LANGCHAIN_TRACING_V2"):
    os.environ[_name] = "false"


def pytest_unconfigure():
    """Remove the folder; each worker of a parallel run has one of its own."""
    _folder.cleanup()
