"""A job that records the signals it gets: `witness.py FILE CHILDREN [--stubborn] [--clock]`.

Appends lines `PID WHAT` to FILE: `begin`, then the name of each signal. Starts a chain of CHILDREN processes: each is the
child of the one before. SIGINT, SIGTERM, SIGHUP and SIGQUIT end it with exit code 0, once its child has ended. With
--stubborn only SIGKILL ends it. With --clock it writes the monotonic clock in nanoseconds to FILE.PID, every millisecond.
"""

import os
import signal
import subprocess
import sys
import time

NAMES = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"]


def main():
    path, children = sys.argv[1], int(sys.argv[2])
    flags = sys.argv[3:]
    log = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    ending = []

    def note(what):
        os.write(log, f"{os.getpid()} {what}\n".encode())

    def on_signal(number, _frame):
        name = signal.Signals(number).name
        note(name)
        if not name.startswith("SIGUSR") and "--stubborn" not in flags:
            ending.append(name)

    for name in NAMES:
        signal.signal(getattr(signal, name), on_signal)
    child = children > 0 and subprocess.Popen([sys.executable, __file__, path, str(children - 1), *flags])
    note("begin")
    if "--clock" in flags:
        write_clock(f"{path}.{os.getpid()}", ending)
    while not ending:
        time.sleep(0.01)
    if child:
        child.wait()


def write_clock(path, ending):
    own = os.open(path, os.O_WRONLY | os.O_CREAT)
    while not ending:
        os.pwrite(own, b"%020d" % time.monotonic_ns(), 0)
        time.sleep(0.001)


main()
