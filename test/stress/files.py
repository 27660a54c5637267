#!/usr/bin/python3
"""Files under attack: kill -9 at random moments of cp, sync, write and patch, and hostile trees, archives and patches.

usage: files.py [--kills N] [--hostile N] [--seed N] TOOLBOX

Killed: each file is the old one or the new one, and what is done again afterwards leaves nothing behind. Hostile: names, links, sizes,
types and headers by chance, also while somebody exchanges directories by links: nothing outside is changed, and nothing that is said or
copied has what stands there.
"""
import argparse
import contextlib
import io
import itertools
import json
import os
import random
import shutil
import signal
import stat
import statistics
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "integration"))
from harness import processes  # noqa: E402

SECRET = "what-stands-outside-4711"
SIZES = [0, 10, 5000, 200_000, 1_000_000]
FILES = 15
BOUND = 120  # seconds that tell a hang


def left_in(folder):
    return [os.path.join(at, name) for at, _, files in os.walk(folder) for name in files if ".toolbox" in name]


# ---- kills ----


def content(which, number):
    return (f"{which} {number}\n".encode() * (SIZES[number % 5] // 8 + 1))[:SIZES[number % 5] + (which == "new")]


class Kills:
    def __init__(self, tool, folder, dice):
        self.tool, self.folder, self.dice = tool, folder, dice
        self.env = {"PATH": os.environ["PATH"], "HOME": str(folder), "TOOLBOX_DIR": f"{folder}/server"}
        self.src, self.to = folder / "src", folder / "to"
        self.src.mkdir()
        self.counts, self.mixed, self.left, self.wrong = {}, 0, 0, []
        for number in range(FILES):
            (self.src / f"f{number}").write_bytes(content("new", number))
        self.patch = "".join(f"--- a/f{n}\n+++ b/f{n}\n@@ -1,2 +1,2 @@\n-old {n}\n+new {n}\n old {n}\n" for n in range(FILES) if n % 5 in (2, 3))
        self.ways = {"cp": ["cp", "-r", f"{self.src}/.", str(self.to)], "sync": ["sync", "--delete", f"{self.src}/", str(self.to)],
                     "write": ["file", "write", str(self.to / "f4")], "patch": ["text_editor", "patch", str(self.to)]}
        self.took = {way: self.measure(way) for way in self.ways}

    def prepare(self):
        shutil.rmtree(self.to, ignore_errors=True)
        self.to.mkdir()
        for number in range(FILES):
            (self.to / f"f{number}").write_bytes(content("old", number))

    def begin(self, way):
        given = {"write": content("new", 4), "patch": self.patch.encode()}.get(way, b"")
        process = subprocess.Popen([self.tool, *self.ways[way]], env=self.env, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, start_new_session=True)

        def give():
            with contextlib.suppress(OSError), process.stdin as pipe:
                pipe.write(given)

        thread = threading.Thread(target=give)
        thread.start()
        return process, thread

    def finish(self, way):
        process, thread = self.begin(way)
        error = process.stderr.read().decode(errors="replace")
        process.stderr.close()
        if process.wait(BOUND) != 0:
            self.wrong.append(f"{way}, done again: {error}")
        thread.join()

    def measure(self, way):
        def once():
            self.prepare()
            start = time.monotonic()
            self.finish(way)
            return time.monotonic() - start
        return statistics.median(once() for _ in range(5))

    def states(self, way):
        """How many are new; None: one is neither."""
        new = 0
        for number in range(FILES):
            path = self.to / f"f{number}"
            data = path.read_bytes() if path.exists() else None
            old, other = content("old", number), content("new", number)
            if way == "patch":
                other = old.replace(f"old {number}".encode(), f"new {number}".encode(), 1)
            if data not in (old, other):
                self.wrong.append(f"{way}: {path.name} has {len(data) if data is not None else 'no'} bytes, neither the old nor the new ones")
            new += data == other != old
        return new

    def kill(self, way):
        self.prepare()
        if way == "sync":
            (self.to / "extra").write_text("x")
        process, thread = self.begin(way)
        time.sleep(self.dice.random() * self.took[way] * 1.2)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.stderr.close()
        ended = process.wait(BOUND)
        thread.join()
        self.counts[way] = self.counts.get(way, 0) + (ended == -signal.SIGKILL)
        self.took[way] *= 1.05 if ended == -signal.SIGKILL else 0.9  # as busy as the machine is
        self.left += len(left_in(self.to))
        new = self.states(way)
        if way == "patch":
            self.mixed += 0 < new < len([n for n in range(FILES) if n % 5 in (2, 3)])
            for number in range(FILES):
                (self.to / f"f{number}").write_bytes(content("old", number))
        self.finish(way)
        if left := left_in(self.to):
            self.wrong.append(f"{way}: left after it was done again: {left}")
        if way == "sync" and sorted(os.listdir(self.to)) != sorted(os.listdir(self.src)):
            self.wrong.append(f"sync: {sorted(os.listdir(self.to))}")

    def run(self, kills):
        for way in itertools.cycle(self.ways):
            if sum(self.counts.values()) >= kills or len(self.wrong) > 20:
                break
            self.kill(way)
        print(f"killed: {self.counts}; {self.mixed} patches half done, {self.left} files without their name until the next one; {len(self.wrong)} wrong")
        return self.wrong


# ---- hostile ----


class Hostile:
    def __init__(self, tool, folder, dice):
        self.tool, self.folder, self.dice = tool, folder, dice
        self.env = {"PATH": os.environ["PATH"], "HOME": str(folder), "TOOLBOX_DIR": f"{folder}/server"}
        self.outside, self.to = folder / "outside", folder / "within/to"
        (self.outside / "d").mkdir(parents=True)
        for name in ("secret", "d/secret", "f"):
            (self.outside / name).write_text(f"{SECRET}\nsecond\n")
        self.folder.joinpath("within").mkdir()
        self.folder.joinpath("within/secret").write_text(f"{SECRET}\n")
        self.before, self.wrong, self.done = self.facts(), [], {}
        self.stream = subprocess.Popen([tool, "exec", "--stream"], env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def facts(self):
        found = {}
        for at in (self.outside, self.folder / "within"):
            for folder, names, files in os.walk(at):
                if Path(folder) == self.to or self.to in Path(folder).parents:
                    continue
                for name in names + files:
                    path = Path(folder, name)
                    st = os.lstat(path)
                    if path not in (self.to, self.to.parent):
                        found[str(path)] = (st.st_mode, st.st_nlink, st.st_uid, st.st_mtime_ns, path.read_bytes() if stat.S_ISREG(st.st_mode) else None)
        return found

    def name(self):
        parts = ["..", ".", "", "a", "b", "l", "d", "secret", "f", "...", "a b", "\xe4", "x" * 255, "x" * 256, "-rf", "\n", "l/..", "~", "$HOME"]
        path = "/".join(self.dice.choice(parts) for _ in range(self.dice.randint(1, 5)))
        return self.dice.choice(["", "", "", "/", f"{self.outside}/", "./", "../../outside/", "../secret/../"]) + path

    def target(self):
        out = str(self.outside)
        return self.dice.choice(["..", "../..", "../../outside", out, f"{out}/secret", f"{out}/f", ".", "a", "l", "/", "/proc/self/cwd/..", f"/proc/self/root{out}",
                                 "../secret", "../../outside/secret", "l/../..", ""])

    def plant(self, at):
        """What somebody has left there."""
        shutil.rmtree(at, ignore_errors=True)
        at.mkdir(parents=True)
        for name in ("l", "a", "b", "d", "f"):
            kind = self.dice.randrange(5)
            with contextlib.suppress(OSError):
                if kind == 0:
                    (at / name).mkdir()
                    (at / name / "l").symlink_to(self.target() or "..")
                elif kind == 1:
                    (at / name).symlink_to(self.target() or "..")
                elif kind == 2:
                    (at / name).write_text("one\ntwo\nthree\n")

    def member(self, tar):
        info = tarfile.TarInfo(self.name().replace("\0", ""))
        info.type = self.dice.choice([tarfile.REGTYPE] * 4 + [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE] * 2 +
                                     [tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.CONTTYPE, b"S", b"Z"])
        info.mode = self.dice.choice([0o644, 0o755, 0, 0o7777, 0o40777])
        info.mtime = self.dice.choice([0, 1, 2**33, -1])
        data = b""
        if info.type in (tarfile.SYMTYPE, tarfile.LNKTYPE):
            info.linkname = self.target() if self.dice.random() < 0.7 else self.name()
        elif info.type in (tarfile.REGTYPE, tarfile.CONTTYPE):
            data = b"evil\n" * self.dice.randrange(3)
            info.size = len(data)
        odd = self.dice.random()
        if odd < 0.1:
            info.pax_headers = {"path": self.name()}
        elif odd < 0.2:
            info.pax_headers = {"linkpath": self.target()}
        elif odd < 0.25:
            info.pax_headers = {"SCHILY.xattr.user.x": "y", "size": self.dice.choice(["0", "-1", "99999999999999999999", "x"])}
        with contextlib.suppress(ValueError, OSError):
            tar.addfile(info, io.BytesIO(data))

    def archive(self):
        made = io.BytesIO()
        with tarfile.open(fileobj=made, mode="w", format=self.dice.choice([tarfile.PAX_FORMAT, tarfile.GNU_FORMAT]), encoding="latin-1") as tar:
            for _ in range(self.dice.randint(1, 8)):
                self.member(tar)
        data = bytearray(made.getvalue())
        if self.dice.random() < 0.2:  # a size that is none, with a sum that is right
            at = self.dice.randrange(len(data) // 512) * 512
            data[at + 124:at + 136] = self.dice.choice([b"77777777777\0", b"\x80" + b"\xff" * 11, b"\xff" * 12, b"-0000000001\0"])
            head = data[at:at + 512]
            head[148:156] = b" " * 8
            data[at + 148:at + 156] = b"%06o\0 " % sum(head)
        return bytes(data)

    def cli(self, *words, given=b""):
        done = subprocess.run([self.tool, *map(str, words)], env=self.env, input=given, capture_output=True, timeout=BOUND, cwd=self.to)
        if done.returncode not in (0, 1, 2):
            self.wrong.append(f"{words}: exit status {done.returncode}: {done.stderr[-200:]!r}")
        self.look(words, done.stdout + done.stderr)

    def look(self, what, said):
        if SECRET.encode() in said:
            self.wrong.append(f"{what}: read from outside: {said[:300]!r}")

    def ask(self, method, **params):
        self.last = (method, params)
        self.stream.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode() + b"\n")
        self.stream.stdin.flush()
        said = b"{}"
        while said and b'"id":1,' not in said:  # what is not asked for: its greeting
            said = self.stream.stdout.readline()
        if not said:
            self.wrong.append(f"{method} {params}: no answer")
        self.look((method, params), said)

    def attack_take(self):
        self.plant(self.to)
        self.cli("cp", self.dice.choice(["-r", "-a"]), "-", self.to, given=self.archive())

    def attack_send(self):
        self.plant(self.to)
        self.cli("cp", "-r", self.to, "-")

    def patch(self):
        old, new = self.name(), self.name()
        hunk = "@@ -1,3 +1,3 @@\n one\n-two\n+evil\n three\n" if self.dice.random() < 0.6 else "@@ -1,2 +1,2 @@\n x\n-second\n+evil\n"
        return self.dice.choice([
            f"--- a/{old}\n+++ b/{new}\n{hunk}", f"--- /dev/null\n+++ b/{new}\n@@ -0,0 +1 @@\n+evil\n",
            f"--- {old}\n+++ {old}\n{hunk}", f"--- a/{old}\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-{SECRET[:4]}\n-second\n",
            f"diff --git a/{old} b/{new}\nsimilarity index 100%\nrename from {old}\nrename to {new}\n",
            f"diff --git a/{old} b/{new}\nsimilarity index 100%\ncopy from {old}\ncopy to {new}\n",
            f"diff --git a/{new} b/{new}\nnew file mode 120000\n--- /dev/null\n+++ b/{new}\n@@ -0,0 +1 @@\n+{self.target()}\n\\ No newline at end of file\n",
            f"diff --git a/{old} b/{old}\nold mode 100644\nnew mode 100755\n", f"*** Begin Patch\n*** Add File: {new}\n+evil\n*** End Patch\n",
            f"*** Begin Patch\n*** Delete File: {old}\n*** End Patch\n",
            f"*** Begin Patch\n*** Update File: {old}\n*** Move to: {new}\n@@\n one\n-two\n+evil\n*** End Patch\n",
            f"*** Begin Patch\n*** Update File: {old}\n@@\n-second\n+evil\n*** End Patch\n"])

    def attack_patch(self):
        self.plant(self.to)
        self.ask("text_editor", command="apply_patch", path=str(self.to), patch="".join(self.patch() for _ in range(self.dice.randint(1, 3))))

    def attack_tree(self):
        """Methods that go through a tree, or make one."""
        self.plant(self.to)
        other = self.to.parent / "other"
        for method, params in [("list", {"depth": 9}), ("find", {}), ("search", {"pattern": "what-stands|second"}), ("disk_usage", {}),
                               ("copy", {"to": str(self.to / "copy"), "recursive": True}), ("remove", {"recursive": True})]:
            self.ask(f"file_{method}", path=str(self.to), **params)
        self.to.mkdir(exist_ok=True)
        shutil.rmtree(other, ignore_errors=True)

    def exchange(self, over, hidden):
        """Somebody who puts a link out in the place of each directory, and back."""
        dice = random.Random(1)
        while not over.is_set():
            at = self.to / "race" / dice.choice(["d", "d/e", "g"])
            with contextlib.suppress(OSError):
                aside = hidden / f"aside{dice.random()}"
                os.rename(at, aside)
                os.symlink(self.outside, at)
                time.sleep(dice.random() / 2000)
                os.unlink(at)
                os.rename(aside, at)

    def attack_race(self, rounds):
        """A tree in which all is exchanged all the time, copied out, copied in, listed, searched and removed."""
        over, hidden = threading.Event(), self.folder / "within/to-aside"
        source = self.folder / "source"
        for name in ("d/e/f", "d/secret", "g/f", "g/secret"):
            (source / "race" / name).parent.mkdir(parents=True, exist_ok=True)
            (source / "race" / name).write_text("mine\n")
        hidden.mkdir(exist_ok=True)
        shutil.rmtree(self.to)
        shutil.copytree(source, self.to)
        thread = threading.Thread(target=self.exchange, args=(over, hidden))
        thread.start()
        race = self.to / "race"
        try:
            for number in range(rounds):
                kind = number % 5
                if kind == 0:
                    self.cli("cp", "-r", source / "race", self.to)
                elif kind == 1:
                    self.cli("cp", "-r", race, "-")
                elif kind == 2:
                    self.ask("file_search", path=str(race), pattern="stands")
                elif kind == 3:
                    self.ask("file_list", path=str(race), depth=5)
                else:
                    self.ask("file_copy", path=str(race), to=str(self.to / f"copy{number}"), recursive=True)
                    self.cli("file", "search", "stands", self.to)
                    self.ask("file_remove", path=str(self.to / f"copy{number}"), recursive=True)
        finally:
            over.set()
            thread.join()
            shutil.rmtree(hidden, ignore_errors=True)

    def run(self, number):
        race = number // 20
        for round in range(number - race):
            kind = self.dice.choice(["take", "take", "send", "patch", "patch", "patch", "tree"])
            self.done[kind] = self.done.get(kind, 0) + 1
            getattr(self, f"attack_{kind}")()
            if round % 50 == 0:
                self.check(f"{kind}, round {round}")
            if self.to.is_symlink() or (self.to.exists() and not self.to.is_dir()):
                self.wrong.append(f"{kind}, round {round}: the directory itself was exchanged {self.last}")
                self.to.unlink()
            if len(self.wrong) > 20:
                break
        self.to.mkdir(exist_ok=True)
        self.attack_race(race)
        self.check("race")
        self.stream.stdin.close()
        self.stream.wait(BOUND)
        self.stream.stdout.close()
        print(f"hostile: {self.done}, {race} while all is exchanged: {len(self.wrong)} wrong")
        return self.wrong

    def check(self, when):
        if (now := self.facts()) != self.before:
            changed = [path for path in now.keys() | self.before.keys() if now.get(path) != self.before.get(path)]
            self.wrong.append(f"{when}: changed outside: {changed}")
            self.before = now


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--hostile", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("toolbox")
    options = parser.parse_args()
    processes.become_init()
    tool, wrong = os.path.abspath(options.toolbox), []
    with tempfile.TemporaryDirectory(prefix="toolbox-files-") as folder:
        for name, kind, number in [("kills", Kills, options.kills), ("hostile", Hostile, options.hostile)]:
            at = Path(folder, name)
            at.mkdir()
            wrong += kind(tool, at, random.Random(options.seed)).run(number) if number else []
        subprocess.run([tool, "stop-server"], env={"TOOLBOX_DIR": f"{folder}/kills/server"}, capture_output=True, timeout=BOUND)
    for fault in wrong[:20]:
        print(f"  {fault}")
    left = [process for process in processes.descendants() if not processes.is_zombie(process)]
    for process in left:
        print(f"  left: {process}")
        os.kill(process.pid, signal.SIGKILL)
    return bool(wrong or left)


if __name__ == "__main__":
    sys.exit(main())
