"""Runs a command as the leader of a session on a new terminal: `terminal.py COMMAND ARGS...`.

Types stdin on the terminal and copies the terminal's output to stdout. Closes the terminal at the end of stdin. Exits with
the command's exit code, or 128 + n if signal n ended the command.
"""

import os
import pty
import select
import sys


def main():
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvp(sys.argv[1], sys.argv[1:])
    relay(terminal)
    os.close(terminal)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    sys.exit(code if code >= 0 else 128 - code)


def relay(terminal):
    while True:
        ready, _, _ = select.select([terminal, 0], [], [])
        if terminal in ready:
            try:
                shown = os.read(terminal, 65536)
            except OSError:
                return
            os.write(1, shown)
        if 0 in ready:
            typed = os.read(0, 65536)
            if not typed:
                return
            os.write(terminal, typed)


main()
