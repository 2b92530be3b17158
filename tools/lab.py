"""Start JupyterLab on chapter 00, with the project as its root: ``python tools/lab.py [jupyter lab options]``.

Run by the Python of the environment that has JupyterLab. The news pop-up and the encryption of kernel
connections are settings of that environment (``tools/jupyter``), so plain ``jupyter lab`` has them too.
"""

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
    ]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        chosen.append("--allow-root")
    return [*chosen, str(ROOT / FIRST)]


if __name__ == "__main__":
    from jupyterlab.labapp import main

    os.chdir(ROOT)
    sys.exit(main([*options(), *sys.argv[1:]]))
