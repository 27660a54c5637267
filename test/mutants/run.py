#!/usr/bin/python3
"""Makes the core wrong at one place after the other, and looks whether the unit tests see it.

usage: run.py [--most N] [--seed N] [--only PATTERN] [--tests N] [-v] OBJECTS

OBJECTS is a folder of objects and unit tests that are made (build/sanitize, build/unit). Of all places in core/ and rpc/ at which
a condition can be turned round, a comparison shifted or a statement left out (mutants.py), --most are taken (0: all), the same ones
for the same --seed; --only limits them to paths that hold the text. For each the file is compiled in a copy of the tree, and the
unit tests nearest to it are run, the one of its name first, then those whose functions call its own directly or through others
(at most --tests), until one fails. What no test notices has survived, and is listed; what changes nothing in the program doesn't
count. explained.txt has the survivors that are all right, each with the reason.

Exit status: 0 when less than a tenth has survived unexplained.
"""
import argparse
import collections
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import mutants  # noqa: E402

REPO = HERE.parents[1]
ROOMS = ("core", "rpc")
HANG = 120  # seconds: a mutant that runs round for ever is noticed


def explained():
    """{name of a mutant: the reason}"""
    lines = (HERE / "explained.txt").read_text().splitlines()
    pairs = [line.split(" -- ", 1) for line in lines if line and not line.startswith("#")]
    return {name.strip(): reason for name, reason in pairs}


class Tree:
    """A copy of the sources, with the objects that are made already."""

    def __init__(self, folder, objects):
        self.folder, self.objects = Path(folder), Path(objects).resolve().relative_to(REPO)
        for name in ("core", "rpc", "applets", "test/unit", "third_party", "Makefile", "scripts"):
            subprocess.run(["cp", "-a", "--parents", name, self.folder], cwd=REPO, check=True)
        subprocess.run(["cp", "-a", "--parents", self.objects, self.folder], cwd=REPO, check=True)
        (self.folder / "build/deps").symlink_to(REPO / "build/deps")
        self.sound = {}

    def make(self, target):
        done = subprocess.run(["make", "-s", str(self.objects / target)], cwd=self.folder, capture_output=True, text=True)
        return done.returncode == 0

    def code(self, path):
        """What is compiled of a file, without what is for debuggers."""
        bare = self.folder / "bare.o"
        subprocess.run(["objcopy", "--strip-debug", self.folder / self.objects / path.replace(".c", ".o"), bare], check=True)
        return bare.read_bytes()

    def passes(self, test):
        try:
            return subprocess.run([self.folder / self.objects / test], stdin=subprocess.DEVNULL, capture_output=True, timeout=HANG,
                                  cwd=self.folder, env={**os.environ, "CMOCKA_MESSAGE_OUTPUT": "TAP"}).returncode == 0
        except subprocess.TimeoutExpired:
            return False

    def is_sound(self, test):
        """A test that fails without a mutant tells nothing."""
        if test not in self.sound:
            self.sound[test] = self.make(test) and self.passes(test)
        return self.sound[test]

    def nearest(self, path, most):
        """The unit tests that reach the file, by their and its symbols."""
        table = self._symbols()
        own = f"test_{Path(path).stem}"
        definer = {symbol: name for name, (defined, _) in table.items() for symbol in defined if not name.startswith("test/")}
        callers = collections.defaultdict(set)
        for name, (_, wanted) in table.items():
            for symbol in wanted & definer.keys():
                callers[definer[symbol]].add(name)
        reached, level, found = {path}, [path], []
        while level:
            level = sorted({caller for name in level for caller in callers[name]} - reached)
            reached.update(level)
            found += [Path(name).stem for name in level if name.startswith("test/")]
        return sorted(found, key=lambda test: test != own)[:most]

    def _symbols(self):
        """{source: (symbols that it defines, symbols that it wants)}"""
        if not hasattr(self, "table"):
            self.table = {}
            top = self.folder / self.objects
            for file in [*top.glob("*/*.o"), *top.glob("*/*/*.o")]:
                rows = [line.split() for line in subprocess.run(["nm", file], capture_output=True, text=True, check=True).stdout.splitlines()]
                self.table[str(file.relative_to(top).with_suffix(".c"))] = (
                    {row[-1] for row in rows if row[-2] in "TDBRC"}, {row[-1] for row in rows if row[-2] == "U"})
        return self.table


def judge(tree, mutant, most):
    """The test that notices it, "no code" where the program is the same or can't be made, or None."""
    path = tree.folder / mutant.path
    sound = path.read_text()
    tests = [test for test in tree.nearest(mutant.path, most) if tree.is_sound(test)]
    target = mutant.path.replace(".c", ".o")
    if not tree.make(target):
        raise SystemExit(f"{mutant.path} can't be compiled as it is")
    before = tree.code(mutant.path)
    try:
        path.write_text(mutant.apply(sound))
        if not tree.make(target) or tree.code(mutant.path) == before:
            return "no code"
        return next((test for test in tests if not (tree.make(test) and tree.passes(test))), None)
    finally:
        path.write_text(sound)


def candidates(only):
    files = sorted(str(path.relative_to(REPO)) for room in ROOMS for path in (REPO / room).glob("*.c"))
    return [mutant for path in files if only in path for mutant in mutants.of_file(path, (REPO / path).read_text())]


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--most", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--tests", type=int, default=6)
    parser.add_argument("-v", action="store_true")
    parser.add_argument("objects")
    args = parser.parse_args()
    chosen = candidates(args.only)
    everything = len(chosen)
    if args.most:
        chosen = sorted(random.Random(args.seed).sample(chosen, min(args.most, everything)))
    reasons, survivors, counted, fine = explained(), [], 0, 0
    folder = tempfile.mkdtemp(prefix="toolbox-mutants-")
    try:
        tree = Tree(folder, args.objects)
        for mutant in chosen:
            by = judge(tree, mutant, args.tests)
            if args.v:
                print(f"{mutant}  [{by or 'survived'}]", flush=True)
            counted += by != "no code"
            if by is None and mutant.name in reasons:
                fine += 1
            elif by is None:
                survivors.append(mutant)
    finally:
        shutil.rmtree(folder)
    for mutant in survivors:
        print(f"survived: {mutant}")
    print(f"{counted} mutants of {everything} places (seed {args.seed}): {counted - fine - len(survivors)} noticed, "
          f"{fine} explained, {len(survivors)} survived")
    return 1 if len(survivors) * 10 >= max(counted, 1) and survivors else 0


if __name__ == "__main__":
    sys.exit(main())
