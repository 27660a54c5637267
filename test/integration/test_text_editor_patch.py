"""apply_patch and edit_many: several files in one call, all of it or none."""
import os
import random
import re
import subprocess

import pytest

from harness import needs
from harness.client import PARAMERR, TOOLERR, RpcError

ROUNDS = int(os.environ.get("TOOLBOX_TEST_PATCHES", 60))  # 2,000 were tried
GIT = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "PATH": os.environ["PATH"], "LC_ALL": "C"}


@pytest.fixture
def tree(workdir):
    folder = workdir / "tree"
    folder.mkdir()
    return folder


@pytest.fixture
def patch(client, tree):
    """patch(text, path=): the answer."""

    def apply(text, path=tree, **params):
        return client.rpc("text_editor", {"command": "apply_patch", "patch": text, "path": str(path), **params})

    return apply


def refused(call, *words, code=TOOLERR):
    with pytest.raises(RpcError) as caught:
        call()
    assert caught.value.code == code, caught.value
    for word in words:
        assert word in caught.value.message, caught.value.message


def write(folder, files):
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content[0] if isinstance(content, tuple) else content)
        path.chmod(content[1] if isinstance(content, tuple) else 0o644)


def snapshot(folder):
    """Every file with its bytes and whether it can be run."""
    return {str(p.relative_to(folder)): (p.read_bytes(), p.stat().st_mode & 0o111 != 0) for p in folder.rglob("*") if p.is_file()}


def diff(old, new, *options):
    """What git says leads from one folder to the other."""
    done = subprocess.run(["git", "diff", "--no-index", *options, old.name, new.name], cwd=old.parent, env=GIT, capture_output=True)
    assert done.returncode in (0, 1), done
    return re.sub(rb"(?m)^(diff --git |--- |\+\+\+ |rename (?:from|to) |copy (?:from|to) ).*$",
                  lambda m: re.sub(rb"(?<=[ /\"])(?:old|new)/", b"", m[0]), done.stdout)


# ---- against git ----

WORDS = ["alpha", "beta", "}", "{", "", "", "return x;", "é日本", "\tindented", "  two", "-- dashes", "++ plus", "@@ at", "\\ back", " lead"]


def random_content(rng):
    ends = rng.choice([["\n"], ["\n"], ["\r\n"], ["\n", "\r\n"]])
    lines = [rng.choice(WORDS) + str(rng.randrange(8)) * rng.randrange(2) + rng.choice(ends) for _ in range(rng.choice([0, 1, 3, 20, 120]))]
    text = "".join(lines)
    return (text if rng.random() < 0.7 else text.rstrip("\r\n")).encode()


def edited(rng, content):
    lines = content.splitlines(keepends=True)
    for _ in range(rng.choice([1, 1, 2, 5])):
        at, cut = rng.randrange(len(lines) + 1), rng.choice([0, 0, 1, 1, 2, 9])
        lines[at:at + cut] = random_content(rng).splitlines(keepends=True)[: rng.choice([0, 1, 1, 2, 5])]
    # a line without an end is the last one
    return b"".join(line if line.endswith(b"\n") else line + b"\n" for line in lines[:-1]) + b"".join(lines[-1:])


def random_trees(rng):
    names = ["a", "b.txt", "dir/c", "dir/deep/d", "with blank", 'quo"te', "tab\there", "ümlaut"]
    old = {name: (random_content(rng), rng.choice([0o644, 0o755])) for name in rng.sample(names, rng.randrange(1, 6))}
    new = {}
    for name, (content, mode) in old.items():
        what = rng.choice(["edit", "edit", "edit", "keep", "delete", "rename", "mode"])
        if what == "delete":
            continue
        if what == "rename":
            name = "moved/" + name
        new[name] = (edited(rng, content) if what == "edit" or (what == "rename" and rng.random() < 0.5) else content,
                     mode ^ 0o111 if what == "mode" else mode)
    if rng.random() < 0.4:
        new["added/" + rng.choice(names)] = (random_content(rng), rng.choice([0o644, 0o755]))
    return old, new


@pytest.mark.parametrize("seed", range(4))
def test_what_git_says_is_done_to_the_byte(client, tree, workdir, patch, seed):
    needs.program("git")
    for i in range(ROUNDS // 4):
        rng = random.Random(f"{seed} {i}")
        before, after, work = workdir / f"{i}/old", workdir / f"{i}/new", workdir / f"{i}/work"
        old, new = random_trees(rng)
        for folder, files in ((before, old), (after, new), (work, old)):
            folder.mkdir(parents=True)
            write(folder, files)
        text = diff(before, after, rng.choice(["-U0", "-U1", "-U3", "-U3", "-U10"]), *rng.choice([[], ["-M"], ["-M", "-C", "--find-copies-harder"]]))
        if not text:
            continue
        patch(text.decode(), path=work)
        assert snapshot(work) == snapshot(after), (seed, i, text)


def begin_patch(old, new):
    """The same change in the other format, each hunk with all of the file in front of it as its context."""
    import difflib

    lines = ["*** Begin Patch", "*** Update File: f", "@@"]
    for op in difflib.ndiff(old.splitlines(), new.splitlines()):
        if op[0] in " +-":
            lines.append(op[0] + op[2:])
    return "\n".join(lines + ["*** End Patch"]) + "\n"


def test_the_other_format_is_done_to_the_byte(tree, patch):
    rng = random.Random(21)
    for _ in range(ROUNDS):
        old, new = (random_content(rng).decode().replace("\r\n", "\n") for _ in range(2))
        if not old or not new or not old.strip():
            continue
        new = "".join(rng.choice([line, line, line, "", f"{line}more\n"]) for line in old.splitlines(keepends=True)) or "x\n"
        (tree / "f").write_text(old if old.endswith("\n") else old + "\n")
        patch(begin_patch(old, new))
        assert (tree / "f").read_text() == (new if new.endswith("\n") else new + "\n"), (old, new)


def test_damaged_context_is_refused_or_applied_where_meant(tree, patch, workdir):
    """One line of context is another one: then the place is still the right one, or nothing is done."""
    needs.program("git")
    rng, applied = random.Random(7), 0
    for i in range(ROUNDS):
        lines = [f"line {n} {rng.randrange(1000)}\n" for n in range(80)]
        changed = list(lines)
        at = rng.randrange(10, 70)
        changed[at] = "changed\n"
        write(workdir, {"old/f": "".join(lines).encode(), "new/f": "".join(changed).encode()})
        text = diff(workdir / "old", workdir / "new").decode()
        damaged = [n for n, line in enumerate(text.splitlines()) if line.startswith((" ", "-l"))]
        body = text.splitlines()
        which = rng.choice(damaged)
        body[which] = body[which][0] + "something else"
        for move in (0, 5):
            start = ["moved\n"] * move + lines
            (tree / "f").write_text("".join(start))
            try:
                patch("\n".join(body) + "\n")
            except RpcError as error:
                assert error.code == TOOLERR and "Nothing was changed" in error.message
                assert (tree / "f").read_text() == "".join(start)
            else:
                applied += 1
                assert (tree / "f").read_text() == "".join(["moved\n"] * move + changed)
    assert applied > ROUNDS // 10  # the outermost lines of context may be wrong


# ---- what is written, and how it is read ----


def test_a_hunk_somewhere_else_is_applied_there_and_told(tree, patch):
    (tree / "f").write_text("".join(f"new {n}\n" for n in range(10)) + "one\ntwo\nthree\n")
    said = patch("--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n")
    assert "at line 11, 10 lines further down" in said
    assert (tree / "f").read_text().endswith("one\n2\nthree\n")


@pytest.mark.parametrize("text", [
    "--- f\n+++ f\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n",
    "--- f.orig\t2026-01-01 00:00:00\n+++ f\t2026-01-01 00:00:01\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n",
    "Subject: a mail\n\n---\n f | 2 +-\n\ndiff --git a/f b/f\nindex 123..456 100644\n--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@ one\n one\n-two\n+2\n three\n-- \n2.39.2\n\n",
    "--- a/f\n+++ b/f\n@@ -1,9 +1,9 @@\n one\n-two\n+2\n three\n",
    "--- a/f\n+++ b/f\n@@ -1,2 +1,1 @@\n one\n-two\n+2\n three\n",
    "--- a/f\n+++ b/f\n@@\n-two\n+2\n",
    "--- a/f\n+++ b/f\n@@ ... @@\n one\n-two\n+2\n",
    "```diff\n--- a/f\n+++ b/f\n@@ -2 +2 @@\n-two\n+2\n```\n",
    "*** Begin Patch\n*** Update File: f\n@@\n one\n-two\n+2\n*** End Patch",
    "*** Begin Patch\n*** Update File: f\n-two\n+2\n*** End Patch",
    "*** Begin Patch\n*** Update File: f\n@@ one\n-two\n+2\n*** End Patch\n",
    "*** Update File: f\n@@ one\n-two\n+2\n three\n*** End of File\n",
    "--- a/f\r\n+++ b/f\r\n@@ -1,3 +1,3 @@\r\n one\r\n-two\r\n+2\r\n three\r\n",
])
def test_every_way_to_write_it(tree, patch, text):
    (tree / "f").write_text("one\ntwo\nthree\n")
    patch(text)
    assert (tree / "f").read_text().replace("\r", "") == "one\n2\nthree\n"


def test_files_of_the_other_format(tree, patch):
    write(tree, {"f": b"a\nb\nc\nb\nlast", "gone": b"x\n", "old name": b"one\ntwo\n"})
    said = patch("*** Begin Patch\n*** Add File: new/deep/n\n+first\n+\n+second\n*** Delete File: gone\n"
                 "*** Update File: old name\n*** Move to: moved/new name\n@@\n-two\n+2\n"
                 "*** Update File: f\n@@ c\n-b\n+B\n@@\n+end\n*** End Patch\n")
    assert snapshot(tree) == {"new/deep/n": (b"first\n\nsecond\n", False), "moved/new name": (b"one\n2\n", False), "f": (b"a\nb\nc\nB\nlast\nend\n", False)}
    assert [line[0] for line in said.splitlines()[1:]] == ["R", "A", "M", "D"] or sorted(line[0] for line in said.splitlines()[1:]) == ["A", "D", "M", "R"]


def test_crlf_and_white_space_of_the_file_stay(tree, patch):
    (tree / "f").write_bytes(b"one\r\ntwo  \r\nthree\r\n")
    said = patch("--- a/f\n+++ b/f\n@@ -1,3 +1,4 @@\n one\n two\n+new\n three\n")
    assert (tree / "f").read_bytes() == b"one\r\ntwo  \r\nnew\r\nthree\r\n" and "blanks at the ends" in said
    (tree / "g").write_text("if x:\n\tdo(\u201ca\u201d)\n")
    said = patch("*** Begin Patch\n*** Update File: g\n@@\n if x:\n-    do(\"a\")\n+\tdo(1)\n*** End Patch")
    assert (tree / "g").read_text() == "if x:\n\tdo(1)\n" and "lookalikes" in said


def test_undo_takes_each_file_back(client, tree, patch):
    write(tree, {"f": b"one\n", "old": b"two\n"})
    patch("*** Begin Patch\n*** Update File: f\n@@\n-one\n+1\n*** Update File: old\n*** Move to: new\n@@\n-two\n+2\n*** Add File: a\n+x\n*** End Patch\n")
    for name in ("f", "new", "a"):
        client.ed("undo_edit", tree / name)
    assert snapshot(tree) == {"f": (b"one\n", False), "new": (b"two\n", False)}


def test_a_rename_keeps_the_file_and_its_mode(tree, patch):
    write(tree, {"old": (b"one\n", 0o750)})
    inode = (tree / "old").stat().st_ino
    patch("diff --git a/old b/sub/new\nsimilarity index 100%\nrename from old\nrename to sub/new\n")
    assert (tree / "sub/new").stat().st_ino == inode and (tree / "sub/new").stat().st_mode & 0o777 == 0o750
    write(tree, {"x": b"1\n", "y": b"2\n"})
    patch("diff --git a/x b/y\nrename from x\nrename to y\ndiff --git a/y b/x\nrename from y\nrename to x\n")
    assert (tree / "x").read_bytes() == b"2\n" and (tree / "y").read_bytes() == b"1\n"


# ---- all or none ----

UPDATE = "--- a/{0}\n+++ b/{0}\n@@ -1 +1 @@\n-{1}\n+{2}\n"


@pytest.mark.parametrize("bad, words", [
    (UPDATE.format("f", "nowhere", "x"), ["line 5", "f: ", "does not fit"]),
    (UPDATE.format("f", "One", "x"), ["upper and lower case", "line 1"]),
    (UPDATE.format("f", "one", "one\u00a0").replace("-one", "-zero").replace("+one\u00a0", "+one"), ["applied before"]),
    (UPDATE.format("missing", "x", "y"), ["missing", "does not exist"]),
    (UPDATE.format("../outside", "secret", "x"), ["leads out"]),
    (UPDATE.format("link/outside", "secret", "x"), ["leads out"]),
    (UPDATE.format("to_file", "secret", "x"), ["leads out"]),
    ("--- /dev/null\n+++ b/link/new\n@@ -0,0 +1 @@\n+x\n", ["leads out"]),
    ("--- /dev/null\n+++ b/../new\n@@ -0,0 +1 @@\n+x\n", ["leads out"]),
    ("--- /dev/null\n+++ /etc/toolbox-new\n@@ -0,0 +1 @@\n+x\n", ["leads out"]),
    ("--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+x\n", ["exists already"]),
    ("--- /dev/null\n+++ b/f/x\n@@ -0,0 +1 @@\n+x\n", ["f/x"]),
    ("--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-two\n", ["does not fit"]),
    ("--- a/long\n+++ /dev/null\n@@ -1 +0,0 @@\n-same\n", ["has more in it"]),
    (UPDATE.format("long", "same", "x").replace("-1 +1", "-9 +9"), ["fits in 3 places"]),
    ("diff --git a/f b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+/etc/passwd\n\\ No newline at end of file\n", ["regular files"]),
    ("diff --git a/b b/b\nindex 1..2 100644\nGIT binary patch\nliteral 3\n", ["binary"]),
    ("diff --git a/dir b/new\nrename from dir\nrename to new\n", ["directory"]),
    ("*** Begin Patch\n*** Update File: f\n@@ no such anchor\n-one\n+1\n*** End Patch\n", ["no such anchor"]),
    ("*** Begin Patch\n*** Add File: x\nno plus\n*** End Patch\n", ["begins with a +"]),
])
def test_what_cannot_be_done_changes_nothing(tree, workdir, patch, bad, words):
    write(tree, {"f": b"one\n", "good": b"good\n", "long": b"same\nsame\nsame\n"})
    (workdir / "outside").write_text("secret\n")
    (tree / "dir").mkdir()
    (tree / "link").symlink_to("..")
    (tree / "to_file").symlink_to("../outside")
    before = snapshot(workdir)
    first = "--- a/good\n+++ b/good\n@@ -1 +1 @@\n-good\n+better\n"
    refused(lambda: patch(first + bad), "Nothing was changed" if "directory" not in words and "f/x" not in words else "", *[w.replace("line 5", "line 8") for w in words])
    assert snapshot(workdir) == before


def test_no_patch_is_none(tree, patch):
    for text in ("", "hello\n", "*** Begin Patch\n*** End Patch\n"):
        refused(lambda: patch(text), "no patch")
    refused(lambda: patch("@@ -1 +1 @@\n-a\n+b\n"), "path")
    refused(lambda: patch("x", path=tree / "none"), "no patch")


def test_a_patch_for_one_file(tree, patch):
    write(tree, {"f": b"one\n"})
    patch("@@ -1 +1 @@\n-one\n+two\n", path=tree / "f")
    patch(UPDATE.format("some/other/name", "two", "three"), path=tree / "f")
    assert (tree / "f").read_bytes() == b"three\n"
    refused(lambda: patch(UPDATE.format("a", "x", "y") + UPDATE.format("b", "x", "y"), path=tree / "f"), "2 files")


def test_what_fails_on_the_way_is_put_back(tree, patch):
    """The last file can't be made: those before it are as they were."""
    write(tree, {"f": (b"one\n", 0o640), "old": b"two\n", "gone": b"x\n"})
    before = snapshot(tree)
    name = "n" * 300
    refused(lambda: patch("*** Begin Patch\n*** Update File: f\n@@\n-one\n+1\n*** Update File: old\n*** Move to: new/place\n@@\n-two\n+2\n"
                          f"*** Delete File: gone\n*** Add File: made/a\n+x\n*** Add File: made/b/{name}\n+x\n*** End Patch\n"), "Nothing was changed")
    assert snapshot(tree) == before and sorted(p.name for p in tree.iterdir()) == ["f", "gone", "old"]


# ---- edit_many ----


def test_many_edits_are_one(client, tree):
    def many(edits, **params):
        return client.rpc("text_editor", {"command": "edit_many", "edits": edits, **params})

    f, g = str(tree / "f"), str(tree / "new" / "g")
    write(tree, {"f": b"one two\nthree\n"})
    said = many([{"path": f, "old_str": "one", "new_str": "1"}, {"path": f, "old_str": "1 two", "new_str": "1 2"},
                 {"path": f, "insert_line": 2, "new_str": "four"}, {"path": g, "file_text": "x x\n"},
                 {"path": g, "old_str": "x", "new_str": "y", "replace_all": True}])
    assert (tree / "f").read_text() == "1 2\nthree\nfour\n" and (tree / "new/g").read_text() == "y y\n"
    assert f"M {f}\n" in said and f"A {g}\n" in said
    refused(lambda: many([{"path": f, "old_str": "1", "new_str": "0"}, {"path": g, "old_str": "nowhere"}]), "edits[1]", "does not occur")
    refused(lambda: many([{"path": f, "old_str": "1", "new_str": "0"}, {"path": g, "file_text": ""}]), "edits[1]", "overwrite")
    assert (tree / "f").read_text() == "1 2\nthree\nfour\n"
    client.ed("undo_edit", f)
    assert (tree / "f").read_text() == "one two\nthree\n"
    for edits, words in (([], "is empty"), ([1], "edits[0]"), ([{"path": f}], "file_text"), ([{"old_str": "a"}], "path"), ("x", "array"),
                         ([{"path": f, "insert_line": 1}], "new_str")):
        refused(lambda: many(edits), words, code=PARAMERR)


# ---- the command line ----


def test_the_command_line(client, tree):
    write(tree, {"f": b"one\n"})
    done = client.cli("text_editor", "patch", stdin=UPDATE.format("f", "one", "two").encode(), cwd=tree)
    assert done.returncode == 0 and f"M {tree}/f" in done.stdout.decode() and (tree / "f").read_bytes() == b"two\n"
    done = client.cli("text_editor", "patch", str(tree), "--text", UPDATE.format("f", "one", "two"))
    assert done.returncode == 1 and "applied before" in done.stderr.decode()
