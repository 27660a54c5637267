#!/usr/bin/python3
"""Makes the core wrong at one place after the other, and looks whether the unit tests see it.

usage: run.py [--most N] [--seed N] [--only PATTERN] [--tests N] [--jobs N] OBJECTS

Of all places in core/ and rpc/ at which a condition can be turned round, a comparison shifted or a statement left out (mutants.py),
--most are taken (0: all), the same ones for the same --seed; --only limits them to paths that hold the text. Of the unit tests that
enter the function, which was watched before, at most --tests are run with the mutant until one fails or hangs (workshop.py). What
no test notices has survived, and is listed; what changes nothing in the program doesn't count. explained.txt has the survivors that
are all right, each with the reason.

Exit status: 0 when less than a tenth has survived unexplained.
"""
import argparse
import concurrent.futures
import os
import random
import re
import shutil
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import mutants  # noqa: E402
from workshop import REPO, Workshop, run_apart  # noqa: E402

ROOMS = ("core", "rpc")
SAME = "the same program"


def explained():
    """[(pattern of a mutant's name, the reason)]"""
    lines = (HERE / "explained.txt").read_text().splitlines()
    pairs = [line.split(" -- ", 1) for line in lines if line and not line.startswith("#")]
    return [(re.compile(re.escape(name.strip()).replace(re.escape("..."), ".*")), reason) for name, reason in pairs]


def reason_of(mutant, reasons):
    return next((reason for pattern, reason in reasons if pattern.fullmatch(mutant.name)), None)


def judge(shop, mutant, most):
    """The test that notices it, SAME, or None."""
    sound = (REPO / mutant.path).read_text()
    work = Path(tempfile.mkdtemp(prefix="work-", dir=shop.folder))
    try:
        wrong = mutant.apply(sound)
        if shop.means_the_same(mutant.path, sound, wrong, work):
            return SAME
        made = shop.compile(mutant.path, wrong, work)
        for test in shop.nearest(mutant, most):
            # generous: a machine may be busier than when the test was watched
            if not run_apart([shop.link(test.name, made, work / test.name)], 10 + 10 * test.seconds):
                return test.name
        return None
    finally:
        shutil.rmtree(work)


def candidates(only):
    files = sorted(str(path.relative_to(REPO)) for room in ROOMS for path in (REPO / room).glob("*.c"))
    return [mutant for path in files if only in path for mutant in mutants.of_file(path, (REPO / path).read_text())]


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--most", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--tests", type=int, default=8)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("objects")
    args = parser.parse_args()
    chosen = candidates(args.only)
    everything = len(chosen)
    if args.most:
        chosen = sorted(random.Random(args.seed).sample(chosen, min(args.most, everything)))
    shop = Workshop(args.objects)
    for test in shop.watch():
        print(f"{test} fails without a mutant: it is left out")
    reasons, survivors, counted, fine = explained(), [], 0, 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for mutant, by in zip(chosen, pool.map(lambda mutant: judge(shop, mutant, args.tests), chosen)):
            reason = None if by else reason_of(mutant, reasons)
            print(f"{mutant}  [{by or reason or 'survived'}]", flush=True)
            counted += by != SAME
            fine += reason is not None
            if not by and not reason:
                survivors.append(mutant)
    for mutant in survivors:
        print(f"survived: {mutant}")
    print(f"{counted} mutants of {everything} places (seed {args.seed}): {counted - fine - len(survivors)} noticed, {fine} explained, "
          f"{len(survivors)} survived ({100 * len(survivors) / max(counted, 1):.1f} %)")
    return 1 if survivors and len(survivors) * 10 >= counted else 0


if __name__ == "__main__":
    sys.exit(main())
