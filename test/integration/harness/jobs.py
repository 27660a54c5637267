"""Jobs: what the tests of exec_remote have in common."""
import time

from harness import processes
from harness.machine import HANG

JOB = "toolbox Job_"
ENDED = ("completed", "killed")


class Job:
    """One job of a client, read as a host reads it: the last answer is acknowledged by the next call.

    out, err  all that has come so far
    end       the answer that told the end; None before
    """

    def __init__(self, client, command=None, **params):
        if command is not None:
            params["command"] = command
        self.client = client
        self.pid = client.rpc("exec_remote_start", params)["pid"]
        self.seq, self.out, self.err, self.end = 0, "", "", None

    def call(self, method, ack=None, **params):
        """A call of this job, as it is: what it brings isn't added to out and err."""
        params = {"pid": self.pid, "ack_seq": self.seq if ack is None else ack, **params}
        return self.client.rpc(f"exec_remote_{method}", params, timeout=HANG + params.get("timeout", 0))

    def _take(self, answer):
        assert answer["seq"] > self.seq, (answer["seq"], self.seq)
        self.seq = answer["seq"]
        self.out += answer["stdout"]
        self.err += answer["stderr"]
        if answer.get("state") in ENDED:
            self.end = answer
        return answer

    def poll(self):
        return self._take(self.call("poll"))

    def wait(self, timeout=20):
        return self._take(self.call("wait", timeout=timeout))

    def kill(self):
        return self._take(self.call("kill"))

    def write(self, data):
        return self._take(self.call("write_stdin", data=data))

    def close(self):
        return self._take(self.call("close_stdin"))

    def signal(self, name):
        return self.client.rpc("exec_remote_signal", {"pid": self.pid, "signal": name})

    def finish(self, seconds=60):
        """Reads to the end: (exit code, stdout, stderr). For so long nothing may come, however long all of it takes."""
        deadline = time.monotonic() + seconds
        while not self.end:
            answer = self.wait()
            if answer["stdout"] or answer["stderr"]:
                deadline = time.monotonic() + seconds
            assert time.monotonic() < deadline, f"job {self.pid} did not end"
        return self.end["exit_code"], self.out, self.err


def run(client, command=None, **params):
    return Job(client, command, **params).finish()


def keepers():
    """The keepers of jobs that there are."""
    from harness.server import titled

    return titled(JOB)


def no_keepers(seconds=60):
    processes.wait_until(lambda: not keepers(), "the keepers of ended jobs to go", seconds)


def runs(*words):
    """Waits until there is such a process: one that a shell has just forked has the shell's command line."""
    processes.wait_until(lambda: alive(*words), f"{' '.join(words)} to run")


def alive(*words):
    """Processes below the suite with exactly that command line."""
    line = "\0".join(words) + "\0"
    found = []
    for process in processes.descendants():
        try:
            with open(f"/proc/{process.pid}/cmdline") as file:
                if file.read() == line:
                    found.append(process.pid)
        except OSError:
            continue
    return found
