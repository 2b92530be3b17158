"""Start JupyterLab on chapter 00, with the project as its root: ``python tools/lab.py [options]``.

Options are those of ``jupyter lab``. Run by the Python of the environment that has JupyterLab. The news
pop-up and the encryption of kernel connections are settings of that environment (``tools/jupyter``), so
plain ``jupyter lab`` has them too.
"""

import logging
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FIRST = Path("notebooks") / "00_start_here.ipynb"


def options() -> list[str]:
    """Return what ``jupyter lab`` is started with, before the options of the person who starts it."""
    chosen = [
        # Links from a chapter to its exercise leave the folder of notebooks.
        f"--ServerApp.root_dir={ROOT}",
        # Ctrl-C ends it at once: notebooks save themselves, and there is nothing else to lose.
        "--ServerApp.answer_yes=True",
        # What remains on the console is the address, and what a person should know of.
        "--ServerApp.log_level=WARN",
        "--LabApp.log_level=WARN",
        # Not as a file to open: then the address that is printed leads to the chapter too.
        f"--LabApp.default_url=/lab/tree/{FIRST.as_posix()}",
    ]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        chosen.append("--allow-root")
    return chosen


def without_ping_warning(record: logging.LogRecord) -> bool:
    """Drop the one warning no reader can act on: Jupyter gives Tornado milliseconds for seconds."""
    return "websocket_ping_timeout" not in record.getMessage()


def trust_notebooks() -> None:
    """Sign chapters and exercises as they lie here, else the terminal warns that each "is not trusted"."""
    import nbformat
    from nbformat.sign import NotebookNotary

    notary = NotebookNotary()
    for path in [*ROOT.glob("notebooks/*.ipynb"), *ROOT.glob("exercises/*/*.ipynb")]:
        try:
            notary.sign(nbformat.read(path, as_version=4))
        except ValueError:
            continue  # not a notebook: JupyterLab says so to whoever opens it


if __name__ == "__main__":
    from jupyterlab.labapp import main

    os.chdir(ROOT)
    trust_notebooks()
    logging.getLogger("tornado.general").addFilter(without_ping_warning)
    print("JupyterLab opens in your browser. Ctrl-C here ends it.", flush=True)
    sys.exit(main([*options(), *sys.argv[1:]]))
