"""People at terminals."""
import fcntl
import os
import pty
import select
import struct
import termios
import time

from harness.machine import HANG


class Person:
    """Somebody at a terminal of their own, who runs the tool there. `seen` is all that has shown there."""

    def __init__(self, client, *words, rows=24, cols=80):
        self.master, self.slave = pty.openpty()
        self.size(rows, cols)
        self.before = termios.tcgetattr(self.slave)
        self.seen = ""

        def take_terminal():
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        slave = self.slave
        self.process = client.popen(*words, stdin=slave, stdout=slave, stderr=slave,
                                    start_new_session=True, preexec_fn=take_terminal)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(HANG)
        os.close(self.master)
        os.close(self.slave)

    def size(self, rows, cols):
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def type(self, text):
        os.write(self.master, text.encode())

    def sees(self, text, seconds=30):
        """Waits until that shows, and forgets what has shown up to it."""
        deadline = time.monotonic() + seconds
        while text not in self.seen:
            left = deadline - time.monotonic()
            assert left > 0, f"{text!r} did not show: {self.seen[-2000:]!r}"
            if select.select([self.master], [], [], min(left, 0.2))[0]:
                self.seen += os.read(self.master, 65536).decode(errors="replace")
        self.seen = self.seen[self.seen.index(text) + len(text) :]

    def has_left(self):
        return self.process.wait(HANG)
