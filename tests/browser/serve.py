"""Run JupyterLab until standard input closes.

``jupyter lab`` outlives the process that started it when that one is killed. The tests start this file
instead and hold its standard input open: whatever ends them closes it, and JupyterLab then stops as by
SIGTERM, with its kernels.
All arguments go to JupyterLab.
"""

import os
import signal
import sys
import threading

from jupyterlab.labapp import main


def stop_when_input_closes() -> None:
    """Wait for the end of standard input, then ask this process to stop."""
    # Not sys.stdin: its lock would be held while the interpreter shuts down.
    while os.read(0, 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    threading.Thread(target=stop_when_input_closes, daemon=True).start()
    sys.exit(main())
