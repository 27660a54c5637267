"""Where the figures are taken: private folders, a private home without start-up files, and the programs to measure."""
import json
import os
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path

HANG = 300  # seconds after which a command counts as hung


class Broken(Exception):
    """Something gave a wrong answer: no matter of speed."""


class Lab:
    """toolbox: the binary to measure. programs: the folder of exit0, rounds and ptyread."""

    def __init__(self, toolbox, programs):
        programs = os.path.abspath(programs)
        self.toolbox, self.exit0 = os.path.abspath(toolbox), f"{programs}/exit0"
        self.rounds_program, self.ptyread = f"{programs}/rounds", f"{programs}/ptyread"
        self.httpload = f"{programs}/httpload"
        self.folder = Path(tempfile.mkdtemp(prefix="toolbox-bench-"))
        self.places = []
        (self.folder / "home").mkdir()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        for place in self.places:
            place.stop()
        shutil.rmtree(self.folder)

    def place(self):
        """A server directory of its own, whose server and sessions end with the lab."""
        place = Place(self, self.folder / f"place{len(self.places)}")
        self.places.append(place)
        return place

    def request(self, method, **params):
        """A file with a request, for rounds()."""
        text = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        path = self.folder / f"request{len(list(self.folder.glob('request*')))}"
        path.write_text(text)
        return path

    def read_bare(self, place, session, path):
        """Reads a file from a terminal, without a session. The number of bytes."""
        done = subprocess.run([self.ptyread, "cat", path], env=place.env, stdout=subprocess.PIPE, timeout=HANG)
        if done.returncode != 0:
            raise Broken(f"ptyread: exit {done.returncode}")
        return int(done.stdout)

    def big_file(self, size=100_000_000):
        """A text file of lines that are all different and 100 bytes long."""
        path = self.folder / f"big{size}"
        if not path.exists():
            with open(path, "w") as file:
                for first in range(0, size // 100, 10000):
                    file.write("".join(f"{n:09d} {'the quick brown fox jumps over the lazy dog ' * 2:89.89}\n"
                                       for n in range(first, min(first + 10000, size // 100))))
        return path


class Command:
    """What rounds() runs: words, its requests by turns, what its output must hold, a script to run after each time."""

    def __init__(self, *words, requests=(), expect=None, after=None):
        self.args = [arg for request in requests for arg in ("-i", str(request))]
        self.args += ["-e", expect] if expect else []
        self.args += ["-a", after] if after else []
        self.args += [str(word) for word in words]


class Times:
    """The times of one command, in seconds, and its peak of resident memory. quiet: those of the rounds that count."""

    def __init__(self, seconds, quiet=None, peak_kb=0):
        self.seconds, self.quiet, self.peak_kb = sorted(seconds), sorted(quiet or seconds), peak_kb

    @property
    def median(self):
        return statistics.median(self.quiet)

    @property
    def least(self):
        return self.seconds[0]

    def percentile(self, n):
        return self.seconds[min(len(self.seconds) - 1, len(self.seconds) * n // 100)]

    def __add__(self, other):
        return Times(self.seconds + other.seconds, self.quiet + other.quiet, max(self.peak_kb, other.peak_kb))


class Place:
    """One server directory, and calls there."""

    def __init__(self, lab, dir):
        self.lab, self.dir = lab, dir
        self.env = {"PATH": os.environ["PATH"], "HOME": str(lab.folder / "home"), "LC_ALL": "C.UTF-8",
                    "TOOLBOX_DIR": str(dir), "INSPECT_SANDBOX_JSON_RPC_RESPONSE_MAX_BYTES": str(64 << 20)}

    def exec(self, *requests, expect=None, after=None):
        """The command for rounds() that sends a request through `toolbox exec`."""
        return Command(self.lab.toolbox, "exec", requests=requests, expect=expect, after=after)

    def nothing(self):
        """The command that everything short is measured against."""
        return Command(self.lab.exit0)

    def rounds(self, n, *commands):
        """Times commands against each other (rounds.c). A list of Times. The faster half of the rounds counts, each taken
        whole: in the others the machine was busy with something else."""
        args = [self.lab.rounds_program, str(n)]
        for command in commands:
            args += [*command.args, "++"]
        done = subprocess.run(args[:-1], env=self.env, cwd=self.lab.folder, stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=HANG, text=True)
        lines = [[int(word) for word in line.split()] for line in done.stdout.splitlines()]
        if done.returncode != 0 or len(lines) != len(commands) or any(line[0] for line in lines):
            raise Broken(done.stderr.strip() or f"rounds ended with {done.returncode}")
        seconds = [[ns / 1e9 for ns in line[2:]] for line in lines]
        totals = [sum(round) for round in zip(*seconds)]
        quiet = [total <= statistics.median(totals) for total in totals]
        return [Times(all_, [s for s, is_quiet in zip(all_, quiet) if is_quiet], line[1])
                for all_, line in zip(seconds, lines)]

    def call(self, method, **params):
        """The result of one request."""
        request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        done = subprocess.run([self.lab.toolbox, "exec"], env=self.env, cwd=self.lab.folder, input=request.encode(),
                              capture_output=True, timeout=HANG)
        if done.returncode != 0:
            raise Broken(f"{method}: exit {done.returncode}: {done.stderr.decode(errors='replace')}")
        answer = json.loads(done.stdout)
        if "result" not in answer:
            raise Broken(f"{method}: {answer.get('error', answer)}")
        return answer["result"]

    def server(self):
        """The server's process id; it is started where none runs."""
        return int(self.call("remote_version").rsplit(" ", 1)[1])

    def session(self):
        """A new session with nothing in its prompt."""
        name = self.call("bash_session_new_session")["session_name"]
        self.run(name, "PS1=")
        return name

    def run(self, session, command, **more):
        return self.call("bash_session_run", session_name=session, command=command, **more)

    def stop(self):
        done = subprocess.run([self.lab.toolbox, "stop-server"], env=self.env, capture_output=True, timeout=HANG)
        if done.returncode != 0:
            raise Broken(f"stop-server: exit {done.returncode}: {done.stderr.decode(errors='replace')}")


# ---- what the kernel says of a process ----

def status_field(pid, name):
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1])
    raise KeyError(name)


def memory_kb(pid):
    """(resident, private) memory of a process, in KiB. May need root: servers and keepers are not dumpable."""
    fields = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
        key, value = line.split(":")
        fields[key] = int(value.split()[0])
    return fields["Rss"], fields["Private_Clean"] + fields["Private_Dirty"]


def switches(pid):
    """How often a process has given the processor away: as often as it has been woken, or more."""
    return status_field(pid, "voluntary_ctxt_switches") + status_field(pid, "nonvoluntary_ctxt_switches")


def children(pid):
    return [int(stat.parent.name) for stat in Path("/proc").glob("[0-9]*/stat") if _parent(stat) == pid]


def _parent(stat):
    try:
        return int(stat.read_text().rpartition(")")[2].split()[1])
    except OSError:
        return None
