"""What children do in the tests of processes that die; it imports nothing that a child would wait for."""

import os
import signal
import time

from fixtures.experiments.kill_process import Struck


def survive(tell):
    tell(Struck())


def miss_its_point(tell):
    tell("nothing of importance")


def fall_deaf(tell):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    tell(os.getpid())
    tell(Struck())
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(1000)


def break_down(tell):
    raise ValueError("broken on purpose")


def vanish(tell):
    os._exit(7)
