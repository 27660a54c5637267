"""Where mutants are made and tried: the library of all code and the objects of the unit tests, both made by the Makefile, and for
each mutant one object in front of that library.

A mutant may do anything: end every process that it finds, empty any directory. So each run of a test has process numbers of its
own, with which everything that it started ends, and sees the file system read-only but for empty temporary directories.
"""
import json
import os
import re
import shlex
import subprocess
import time
import zlib
from pathlib import Path
from typing import NamedTuple

REPO = Path(__file__).resolve().parents[2]
APART = ["unshare", *([] if os.geteuid() == 0 else ["--map-root-user"]), "--mount", "--pid", "--fork", "--kill-child"]
HIDDEN = {"/tmp": 1777, "/var/tmp": 1777, "/run": 755, "/dev/shm": 1777}
# The first process of its kind reaps what the others leave behind.
FIRST = "\n".join(["set -e", "mount --make-rprivate /", "mount -t proc proc /proc",
                   *(f"mount -t tmpfs -o mode={mode} none {folder}" for folder, mode in HIDDEN.items()
                     if Path(folder).is_dir() and not REPO.is_relative_to(folder)),
                   "for at in $GUARDED; do mount -o remount,bind,ro $at; done",
                   'set +e; "$@"; exit $?'])
ENVIRONMENT = {**os.environ, "CMOCKA_MESSAGE_OUTPUT": "TAP", "CMOCKA_TEST_ABORT": "1",
               "ASAN_OPTIONS": "detect_odr_violation=0:log_path=/dev/null", "UBSAN_OPTIONS": "log_path=/dev/null"}
SIZE_OF_MAP = 1 << 24


class Test(NamedTuple):
    name: str
    functions: frozenset  # (source, function) that it enters
    seconds: float


def _mount_points():
    """Of the file systems with the sources, and the root's."""
    at, found = REPO, {"/"}
    while not os.path.ismount(at):
        at = at.parent
    return " ".join(sorted(found | {str(at)}))


def run_apart(command, seconds, trusted=False):
    """Whether it ends well, in that time. What is trusted may write."""
    env = {**ENVIRONMENT, "GUARDED": "" if trusted else _mount_points()}
    bound = ["timeout", "--signal=KILL", f"{seconds:.0f}"]  # which holds when this process is killed, too
    return subprocess.run([*bound, *APART, "sh", "-c", FIRST, "sh", *map(str, command)], cwd=REPO, env=env, check=False,
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


class Workshop:
    """FOLDER: that of the Makefile's objects (build/mutants)."""

    def __init__(self, folder):
        self.folder = Path(folder).resolve()
        lines = [shlex.split(line) for line in (self.folder / "commands").read_text().splitlines()]
        self.commands = {source: command for source, *command in lines}
        self.tests, self.sound = [], {}

    # ---- what reaches what ----

    def watch(self):
        """Runs each test once, without a mutant, or remembers how that was: until the test or what functions there are changes.
        Returns those that fail so: they tell nothing."""
        memory = self.folder / "watched.json"
        known = json.loads(memory.read_text()) if memory.exists() else {}
        functions = self._functions()
        files = sorted((self.folder / "test/unit").glob("test_*.o"))
        seen = {file.stem: [zlib.crc32(repr(sorted(functions.values())).encode()), file.stat().st_mtime_ns] for file in files}
        known = {name: known[name] if known.get(name, [0])[0] == made else [made, *self._watch_one(name, functions)]
                 for name, made in seen.items()}
        memory.write_text(json.dumps(known))
        self.tests = [Test(name, frozenset(map(tuple, entered)), seconds) for name, (_, entered, seconds) in known.items() if entered]
        return [name for name, (_, entered, _) in known.items() if entered is None]

    def _watch_one(self, test, functions):
        """(functions that it enters, or None where it fails; seconds)"""
        program = self.link(test, None, self.folder / test)
        reached = program.with_name(program.name + ".reached")
        reached.write_bytes(bytes(SIZE_OF_MAP))
        begin = time.monotonic()
        fine = run_apart([program], 300, trusted=True)
        seconds = time.monotonic() - begin
        places = {found.start() for found in re.finditer(b"\1", reached.read_bytes())}
        program.unlink()
        reached.unlink()
        return sorted({functions[place] for place in places & functions.keys()}) if fine else None, seconds

    def _functions(self):
        """{place in the library: (source, function)} of core/ and rpc/"""
        sections = [(int(found[1], 16), int(found[2], 16), found[3]) for found in re.finditer(
            rf"^ \.text\S*\s+0x(\w+)\s+0x(\w+) {re.escape(os.path.relpath(self.folder, REPO))}/(\w+/\w+)\.o$",
            (self.folder / "map").read_text(), re.MULTILINE)]
        names = subprocess.run(["nm", self.folder / "libsound.so"], capture_output=True, text=True, check=True).stdout
        found = {}
        for address, name in re.findall(r"^(\w+) [tT] (\w+)[\w.]*$", names, re.MULTILINE):
            place = int(address, 16)
            source = next((source for at, size, source in sections if at <= place < at + size), None)
            if source:
                found[place] = (f"{source}.c", name)
        return found

    def nearest(self, mutant, most):
        """The tests that enter its function: the one of the file's name first, then those that enter the fewest others."""
        own = Path(mutant.path).stem
        reaching = [test for test in self.tests if (mutant.path, mutant.function) in test.functions]
        return sorted(reaching, key=lambda test: (not own.startswith(test.name[5:]), len(test.functions), test.name))[:most]

    # ---- making ----

    def compile(self, source, text, work, *flags):
        """The object, or None where the compiler refuses."""
        file = work / source
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        made = file.with_suffix(".o")
        done = subprocess.run([*self.commands[source], *flags, "-w", "-c", "-o", made, file], cwd=REPO, capture_output=True, check=False)
        return made if done.returncode == 0 else None

    def means_the_same(self, source, sound, wrong, work):
        """Whether an optimizing compiler makes the same of both, or refuses the wrong one."""
        if source not in self.sound:
            self.sound[source] = self._code(source, sound, work)
        return self._code(source, wrong, work) in (None, self.sound[source])

    def _code(self, source, text, work):
        made = self.compile(source, text, work, "-O2", "-fno-sanitize=all", "-fno-instrument-functions")
        return made and made.read_bytes()

    def link(self, test, mutated, program):
        subprocess.run([*self.commands["core/mem.c"], "-o", program,
                        self.folder / f"test/unit/{test}.o", *([mutated] if mutated else []), f"-L{self.folder}", "-lsound", "-lcmocka",
                        f"-Wl,-rpath,{self.folder}"], check=True, cwd=REPO)
        return program

