"""Files and trees: `toolbox cp` against the engine's own and against tar through `docker exec`; `file_search` against grep."""
import contextlib
import shutil
import subprocess

from figure import compare, figures
from lab import Times
from rows_inject import containers, has_engine, timed

FIGURES, figure = figures("files")
FILES, FOLDERS, TURNS, BYTES, SOUGHT = 50_000, 500, 3, 1_000_000_000, 60_000
TREES = 1  # they take long to be removed again


def shell(script, *words):
    took, _ = timed("sh", "-euc", script, "sh", *map(str, words))
    return took


def make_tree(at, files, folders, text):
    for d in range(folders):
        folder = at / f"d{d // 50}/e{d}"
        folder.mkdir(parents=True)
        for i in range(files // folders):
            (folder / f"f{i}.c").write_text(text(d, i))


@contextlib.contextmanager
def folder_of(lab, name):
    at = lab.folder / name
    at.mkdir()
    try:
        yield at
    finally:
        shutil.rmtree(at)


@figure(f"a tree of {FILES:,} small files into a container, beside `docker cp`", "the same beside tar through `docker exec`",
        "the same out of it, beside `docker cp`", "the same beside tar through `docker exec`, out")
def trees(lab, into, into_tar, out, out_tar):
    if not has_engine(into, into_tar, out, out_tar):
        return
    with folder_of(lab, "trees") as folder, containers(1) as (name,):
        make_tree(folder / "src", FILES, FOLDERS, lambda d, i: "x" * (i * 17 % 900) + "\n")
        timed(lab.toolbox, "inject", f"docker:{name}")
        took = {what: [] for what in ("cp", "docker", "tar", "cp out", "docker out", "tar out")}
        for turn in range(TREES):
            took["cp"].append(timed(lab.toolbox, "cp", "-q", "-r", f"{folder}/src", f"docker:{name}:/tmp/a{turn}")[0])
            took["docker"].append(timed("docker", "cp", f"{folder}/src", f"{name}:/tmp/b{turn}")[0])
            took["tar"].append(shell('tar c -C "$1" src | docker exec -i "$2" tar x -C /run', folder, name))
            took["cp out"].append(timed(lab.toolbox, "cp", "-q", "-r", f"docker:{name}:/tmp/a{turn}", f"{folder}/o{turn}")[0])
            took["docker out"].append(timed("docker", "cp", f"{name}:/tmp/a{turn}", f"{folder}/p{turn}")[0])
            took["tar out"].append(shell('mkdir "$1"; docker exec "$2" tar c -C /tmp "$3" | tar x -C "$1"', folder / f"q{turn}", name, f"a{turn}"))
        compare(into, Times(took["cp"]), Times(took["docker"]), "`docker cp`", 1 / 2)
        compare(into_tar, Times(took["cp"]), Times(took["tar"]), "`tar | docker exec tar`", 1.3)
        compare(out, Times(took["cp out"]), Times(took["docker out"]), "`docker cp`", 1 / 2)
        compare(out_tar, Times(took["cp out"]), Times(took["tar out"]), "`docker exec tar | tar`", 1.3)


@figure("a file of 1 GB into a container, beside cat through `docker exec`", "the same out of it")
def large(lab, into, out):
    if not has_engine(into, out):
        return
    with folder_of(lab, "large") as folder, containers(1) as (name,):
        subprocess.run(["sh", "-c", f"head -c {BYTES} /dev/urandom >{folder}/f"], check=True)
        timed(lab.toolbox, "inject", f"docker:{name}")
        took = {what: [] for what in ("cp", "cat", "cp out", "cat out")}
        for _ in range(TURNS):
            took["cat"].append(shell('docker exec -i "$2" sh -c "cat >/tmp/a" <"$1/f"', folder, name))
            took["cp"].append(timed(lab.toolbox, "cp", "-q", f"{folder}/f", f"docker:{name}:/tmp/b")[0])
            took["cat out"].append(shell('docker exec "$2" cat /tmp/a >"$1/g"', folder, name))
            took["cp out"].append(timed(lab.toolbox, "cp", "-q", f"docker:{name}:/tmp/b", f"{folder}/h")[0])
        compare(into, Times(took["cp"]), Times(took["cat"]), "cat", 1.2)
        compare(out, Times(took["cp out"]), Times(took["cat out"]), "cat", 1.2)


@figure(f"`file_search` of a word in {SOUGHT:,} files, beside `grep -rnI`", "the same for an expression, beside `grep -rnIE`")
def search(lab, word, expression):
    with folder_of(lab, "sought") as folder:
        lines = [f"static int name{n}(struct thing *t) {{ return t->value{n} + {n}; }}" for n in range(100)]
        make_tree(folder, SOUGHT, 1200, lambda d, i: "\n".join(lines[(d + i) % 60:]) + f"\nneedle_{i}_{d}\n" * (i == 7 and d % 20 == 0))
        took = {what: [] for what in ("word", "grep", "expression", "grep -E")}
        for _ in range(TURNS):
            took["grep"].append(shell('grep -rnI needle_ "$1" >/dev/null', folder))
            took["word"].append(shell('"$1" file search needle_ "$2" >/dev/null', lab.toolbox, folder))
            took["grep -E"].append(shell('grep -rnIE "needle_[0-9]+_(20|40)$" "$1" >/dev/null', folder))
            took["expression"].append(shell('"$1" file search "needle_[0-9]+_(20|40)$" "$2" >/dev/null', lab.toolbox, folder))
        compare(word, Times(took["word"]), Times(took["grep"]), "grep", 1 / 3)
        compare(expression, Times(took["expression"]), Times(took["grep -E"]), "grep", 1 / 3)
