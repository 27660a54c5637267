"""What is left of a file when an edit fails, is killed or isn't alone: the old content or the new, never both."""

import contextlib
import fcntl
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from harness import needs
from harness.client import TOOLERR, RpcError
from harness.users import needs_root

# Instants at which an edit is killed, for each way of writing.
KILLS = int(os.environ.get("TOOLBOX_TEST_KILLS", 15))


@pytest.fixture(params=["beside", "copied", "in place"])
def way(request):
    """How the file gets its new content and the history the old one: by a rename, the old file going into the history
    itself; by a rename, and a copy for a history on another file system; in place because it has a second link."""
    return request.param


@pytest.fixture
def tree(request, workdir):
    way = request.getfixturevalue("way") if "way" in request.fixturenames else "beside"
    with contextlib.ExitStack() as stack:
        top = workdir
        if way == "copied":
            top = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=needs.shared_memory())))
            if top.stat().st_dev == workdir.stat().st_dev:
                pytest.skip("there is one file system")
        folder = top / "tree"
        folder.mkdir()
        yield folder


@pytest.fixture
def file(tree, way):
    def make(content, name="file"):
        path = tree / name
        path.write_bytes(content)
        if way == "in place":
            os.link(path, tree / f"{name}.link")
        return path

    return make


def names(way, *more):
    return sorted(["file", *more] + ["file.link"] * (way == "in place"))


# ---- no room ----


@contextlib.contextmanager
def small_tmpfs(folder, size):
    if (
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], capture_output=True
        ).returncode
        != 0
    ):
        pytest.skip("can't mount here")
    try:
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


@needs_root
def test_full_disk(client, tree, file, way):  # C-042
    with small_tmpfs(tree, "64k"):
        path = file(b"abc\n")
        os.utime(path, ns=(1, 1_000_000_001))
        with open(tree / "filler", "wb", buffering=0) as filler, contextlib.suppress(OSError):
            while True:
                filler.write(b"x" * 4096)
        for command, params in [
            ("str_replace", {"old_str": "b", "new_str": "B" * 9000}),
            ("insert", {"insert_line": 1, "new_str": "y" * 9000}),
            ("create", {"file_text": "x"}),
        ]:
            with pytest.raises(RpcError, match="[Nn]o space") as caught:
                client.ed(command, path if command != "create" else tree / "new", **params)
            assert caught.value.code == TOOLERR
            assert path.read_bytes() == b"abc\n" and sorted(os.listdir(tree)) == names(way, "filler")
            assert path.stat().st_mtime_ns == 1_000_000_001
        (tree / "filler").unlink()
        client.ed("str_replace", path, old_str="b", new_str="B" * 9000)
        assert path.read_bytes() == b"a" + b"B" * 9000 + b"c\n"


@needs_root
def test_undo_on_a_full_disk_can_be_tried_again(client, tree, file, way):  # C-050
    with small_tmpfs(tree, "64k"):
        path = file(b"old" * 9000)
        client.ed("str_replace", path, old_str="old" * 9000, new_str="new")
        with open(tree / "filler", "wb", buffering=0) as filler, contextlib.suppress(OSError):
            while True:
                filler.write(b"x" * 4096)
        for _ in range(2):
            with pytest.raises(RpcError, match="[Nn]o space"):
                client.ed("undo_edit", path)
            assert path.read_bytes() == b"new"
        (tree / "filler").unlink()
        client.ed("undo_edit", path)
        assert path.read_bytes() == b"old" * 9000


@needs_root
def test_full_store(client, tree, file):
    """The edit is done, and says that it can't be undone."""
    client.dir.mkdir(0o700)
    with small_tmpfs(client.dir, "64k"):
        os.chmod(client.dir, 0o700)
        path = file(b"abc\n" + b"x" * 100_000)
        answer = client.ed("str_replace", path, old_str="abc", new_str="ABC")
        assert path.read_bytes()[:4] == b"ABC\n" and "can't be undone" in answer
        assert not any((client.dir / "undo").iterdir()) and not (client.dir / "journal").exists()


@pytest.mark.parametrize("limit", [0, 3, 5000])
def test_file_size_limit(client, tree, file, way, limit):  # C-042
    content = b"abc\n" if limit < 5000 else b"abc\n" + b"x" * 8000
    path = file(content)

    def shrink():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    for params in (
        {"command": "str_replace", "path": str(path), "old_str": "b", "new_str": "B" * 6000},
        {"command": "create", "path": str(tree / "new"), "file_text": "x" * 6000},
    ):
        with pytest.raises(RpcError, match="[Ff]ile too large") as caught:
            client.rpc("text_editor", params, preexec_fn=shrink)
        assert caught.value.code == TOOLERR
        assert path.read_bytes() == content and sorted(os.listdir(tree)) == names(way)


# ---- killed ----


def _edited(content):
    return content.replace(b"MARK", b"a longer mark")


def _request(path, command="str_replace", **params):
    """A request as the bytes that exec reads; by default for the edit that most tests make."""
    params = params or {"old_str": "MARK", "new_str": "a longer mark"}
    params = {"command": command, "path": str(path), **params}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "text_editor", "params": params}).encode()


def _replace(client, path):
    client.ed("str_replace", path, old_str="MARK", new_str="a longer mark")


@pytest.mark.parametrize("command", ["str_replace", "undo_edit"])
def test_killed_at_any_instant(client, tree, file, way, command):
    """Slow: 20 MB a kill, written, compared and undone."""
    content = b"first\nMARK\n" + random.Random(1).randbytes(20 << 20).replace(b"MARK", b"")
    path = file(content)
    started = time.monotonic()
    _replace(client, path)
    whole = time.monotonic() - started
    rng = random.Random(f"{way} {command}")
    for _ in range(KILLS):
        if (path.read_bytes() == content) == (command == "undo_edit"):
            _replace(client, path) if command == "undo_edit" else client.ed("undo_edit", path)
        with client.popen("exec") as process:
            process.stdin.write(_request(path, command))
            process.stdin.close()
            time.sleep(rng.uniform(0, whole))
            process.send_signal(signal.SIGKILL)
        client.ed("view", path, view_range=[1, 2])  # the next call puts things right
        assert path.read_bytes() in (content, _edited(content)), "a mixture"
    while path.read_bytes() != content:
        client.ed("undo_edit", path)
    client.ed("str_replace", path, old_str="MARK", new_str="x")  # and clears away what was begun
    assert sorted(os.listdir(tree)) == names(way)
    client.ed("undo_edit", path)
    assert path.read_bytes() == content


# Every call that can change a file or a directory, or stands between two that do.
WRITES = (
    "write",
    "writev",
    "pwrite64",
    "fallocate",
    "ftruncate",
    "renameat",
    "renameat2",
    "openat",
    "fchmod",
    "utimensat",
    "sync_file_range",
    "linkat",
    "unlinkat",
    "mkdirat",
    "flock",
    "close",
)

needs_strace = needs.programs("strace")


class Injector:
    """Makes one call of a run fail, or kills the tool there: the n-th of each kind, all that there are."""

    def __init__(self, client, tree, what):
        self.client, self.tree, self.what = client, tree, what
        self.runs = 0

    def __iter__(self):
        """Yields (kind, n) in a fresh folder, as long as the runs that are made meet such a call."""
        for kind in WRITES:
            for n in range(1, 100):
                shutil.rmtree(self.tree)
                self.tree.mkdir()
                self.at, self.met = (kind, n), False
                yield self.at
                if not self.met:
                    break
                self.runs += 1

    def run(self, request):
        """Returns what the tool says."""
        trace = self.tree.parent / "trace"
        kind, n = self.at
        argv = self.client.tampered(f"{kind}:{self.what}:when={n}", "exec", out=trace)
        done = self.client.machine.run(argv, stdin=request, env=self.client.env)
        traced = trace.read_bytes()
        self.met = b"INJECTED" in traced or b"killed by SIGKILL" in traced
        return done.stdout


@needs_strace
@pytest.mark.parametrize("error", ["ENOSPC", "EINTR", "EIO"])
@pytest.mark.parametrize("command", ["str_replace", "undo_edit"])
def test_every_call_that_writes_fails_once(client, tree, file, way, command, error):
    """An answer is true, and what isn't done is not half done."""
    content = b"first\nMARK\n" + b"x" * 300_000
    old, new = (content, _edited(content)) if command == "str_replace" else (_edited(content), content)
    injector = Injector(client, tree, f"error={error}")
    for at in injector:
        path = file(content)
        if command == "undo_edit":
            _replace(client, path)
        said = injector.run(_request(path, command))
        client.ed("view", path)
        found = path.read_bytes()
        assert found in (old, new), at
        if b'"result"' in said:
            assert found == new, at
        elif b'"error"' in said:
            assert found == old and b"-32099" in said, at
        if command == "undo_edit" and found == old:
            client.ed("undo_edit", path)
            assert path.read_bytes() == content, at
    assert injector.runs > 20


@needs_strace
@pytest.mark.parametrize("command", ["str_replace", "undo_edit"])
def test_killed_at_every_call(client, tree, file, way, command):
    """The history goes with the file: what came about can be undone, and nothing else."""
    content = b"first\nMARK\n" + b"x" * 3000
    injector = Injector(client, tree, "signal=KILL")
    for at in injector:
        path = file(content)
        client.ed("insert", path, insert_line=0, new_str="zero")
        if command == "undo_edit":
            _replace(client, path)
        injector.run(_request(path, command))
        client.ed("view", path)
        found = path.read_bytes()
        assert found in (b"zero\n" + content, b"zero\n" + _edited(content)), at
        if found != b"zero\n" + content:
            client.ed("undo_edit", path)
            assert path.read_bytes() == b"zero\n" + content, at
        client.ed("undo_edit", path)
        assert path.read_bytes() == content, at
        with pytest.raises(RpcError, match="no edit"):
            client.ed("undo_edit", path)
        assert path.stat().st_nlink == 1 + (way == "in place"), at
    assert injector.runs > 20


@needs_strace
def test_create_killed_at_every_call(client, tree):
    path = tree / "new"
    request = _request(path, "create", file_text="text")
    injector = Injector(client, tree, "signal=KILL")
    for at in injector:
        injector.run(request)
        if path.exists():
            assert path.read_text() == "text", at
            client.ed("undo_edit", path)
            assert not path.exists(), at
        client.ed("create", path, file_text="more")
        assert os.listdir(tree) == ["new"], at  # and what was begun is cleared away
        client.ed("undo_edit", path)
        assert not path.exists(), at
    assert injector.runs > 15


@needs_strace
def test_undo_of_create_killed(client, tree):
    """It was deleted; what somebody then makes in its place is not."""
    path = tree / "new"
    client.ed("create", path, file_text="text")
    # Deleted, and killed before the history hears of it: there the next call is a rename.
    argv = client.tampered("renameat:signal=KILL:when=2", "exec")
    client.machine.run(argv, stdin=_request(path, "undo_edit"), env=client.env)
    assert not path.exists()
    path.write_text("another file")
    with pytest.raises(RpcError, match="no edit"):
        client.ed("undo_edit", path)
    assert path.read_text() == "another file"


# ---- not alone ----


def _at_once(client, requests):
    """Runs all requests side by side: each is let go by the end of its input. Returns the answers."""
    running = []
    for request in requests:
        process = client.popen("exec")
        process.stdin.write(request)
        process.stdin.flush()
        running.append(process)
    for process in running:
        process.stdin.close()
    answers = []
    for process in running:
        with process:
            answers.append(json.loads(process.stdout.read()))
    return answers


def test_edits_at_the_same_time(client, tree, file):
    """None of them is lost."""
    path = file(b"begin\n" + b"x" * 400_000)
    link = f"{path}.link" if os.path.exists(f"{path}.link") else path
    targets = [link if i % 2 else path for i in range(24)]
    edits = [
        _request(target, "insert", insert_line=1, new_str=f"line {i}") for i, target in enumerate(targets)
    ]
    answers = _at_once(client, edits)
    assert all("result" in answer for answer in answers), answers
    lines = path.read_text().split("\n")
    assert lines[0] == "begin" and sorted(lines[1:-1]) == sorted(f"line {i}" for i in range(24))
    for _ in range(10):
        client.ed("undo_edit", path)
    assert path.read_text().split("\n")[1:-1] == lines[11:-1]


def test_creates_at_the_same_time(client, tree):
    """One of them makes the file, whole; the others are told."""
    path = tree / "new"
    texts = [f"{i}" * 5000 for i in range(12)]
    answers = _at_once(client, [_request(path, "create", file_text=text) for text in texts])
    made = ["result" in answer for answer in answers]
    assert made.count(True) == 1, answers
    assert path.read_text() == texts[made.index(True)] and os.listdir(tree) == ["new"]


def test_locked_by_another_program(client, tree, file, way):
    """A lock that isn't ours holds an edit up, but not for ever. Slow: the lock is waited for as long as it is promised, 5 s."""
    path = file(b"abc\n")
    with open(path) as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert "abc" in client.ed("view", path)
        if way != "in place":
            client.ed("str_replace", path, old_str="b", new_str="B")
            assert path.read_bytes() == b"aBc\n"
        else:
            with pytest.raises(RpcError, match="locked"):
                client.ed("str_replace", path, old_str="b", new_str="B")
            assert path.read_bytes() == b"abc\n"


@needs_strace
def test_file_that_is_being_written(client, tree, file, way):
    """What another program writes while an edit is under way is not written over."""
    path = file(b"MARK\n")
    trace = tree.parent / "trace"
    # Slow between reading the file and replacing it: there are the locks of the new file and of the history.
    with client.machine.popen(client.tampered("flock:delay_enter=1000000:when=2+", "exec", out=trace), env=client.env) as process:
        process.stdin.write(_request(path))
        process.stdin.close()
        while not trace.exists() or trace.read_bytes().count(b"flock") < 1:
            time.sleep(0.01)
        time.sleep(0.2)
        with open(path, "ab") as other:
            other.write(b"by another program\n")
        answer = process.stdout.read()
    assert b"changed by another program" in answer and b"-32099" in answer
    assert path.read_bytes() == b"MARK\nby another program\n" and sorted(os.listdir(tree)) == names(way)
    with pytest.raises(RpcError, match="no edit"):
        client.ed("undo_edit", path)


@needs_strace
def test_create_in_place_of_a_file_that_appears(client, tree):
    """Between the look and the last step somebody else makes the file."""
    path = tree / "new"
    with client.machine.popen(client.tampered("flock:delay_enter=1000000", "exec"), env=client.env) as process:
        process.stdin.write(_request(path, "create", file_text="x"))
        process.stdin.close()
        while not os.listdir(tree):
            time.sleep(0.01)
        path.write_text("somebody else's")
        answer = process.stdout.read()
    assert b"exists" in answer and b"-32099" in answer
    assert path.read_text() == "somebody else's" and os.listdir(tree) == ["new"]
    with pytest.raises(RpcError, match="no edit"):
        client.ed("undo_edit", path)


@needs_strace
def test_what_a_killed_edit_left_is_cleared_away(client, tree):
    path = tree / "file"
    path.write_bytes(b"MARK\n")
    client.machine.run(client.tampered("renameat2:signal=KILL", "exec"), stdin=_request(path), env=client.env)
    assert sorted(os.listdir(tree))[0].startswith(".toolbox-edit-")
    assert path.read_bytes() == b"MARK\n"
    _replace(client, path)
    assert os.listdir(tree) == ["file"]
    client.ed("undo_edit", path)
    assert path.read_bytes() == b"MARK\n"


# ---- what becomes of the old file ----


@pytest.fixture
def overlay(workdir):
    """A file in the lower layer of an overlay, and the overlay, which holds the history as well."""
    lower, upper, work, merged = (workdir / name for name in ("lower", "upper", "work", "merged"))
    for folder in (lower, upper, work, merged):
        folder.mkdir()
    (lower / "file").write_text("v0\n")
    options = f"lowerdir={lower},upperdir={upper},workdir={work}"
    if subprocess.run(["mount", "-t", "overlay", "-o", options, "overlay", merged], capture_output=True).returncode:
        pytest.skip("can't mount here")
    yield lower / "file", merged
    subprocess.run(["umount", merged], check=True)


@needs_strace
def test_link_that_a_killed_edit_left(client, tree):
    """Killed between linking and swapping, the file has two names, but is none that has to be written in place."""
    path = tree / "file"
    path.write_bytes(b"MARK\n")
    client.machine.run(client.tampered("renameat2:signal=KILL", "exec"), stdin=_request(path), env=client.env)
    before = path.stat()
    assert path.read_bytes() == b"MARK\n" and before.st_nlink == 2
    _replace(client, path)
    assert path.stat().st_nlink == 1 and path.stat().st_ino != before.st_ino
    client.ed("undo_edit", path)
    assert path.read_bytes() == b"MARK\n"
    with pytest.raises(RpcError, match="no edit"):
        client.ed("undo_edit", path)


@needs_root
def test_overlay(client, overlay):
    """A file of a lower layer is not made a link of, which would copy and sync it; one that has been edited is."""
    lower, merged = overlay
    client.env["TOOLBOX_DIR"] = str(merged / "store")
    path = merged / "file"
    for i in range(3):
        client.ed("str_replace", path, old_str=f"v{i}", new_str=f"v{i + 1}")
    entries = [entry.read_bytes() for entry in (merged / "store" / "undo").iterdir()]
    assert sorted(entries) == [b"v0\nv1" + bytes(path), b"v1\n", b"v2\n"]
    for i in (2, 1, 0):
        client.ed("undo_edit", path)
        assert path.read_text() == f"v{i}\n"
    assert lower.read_text() == "v0\n"


@needs_strace
@pytest.mark.parametrize("age, synced", [(0, 0), (60, 1)])
def test_new_content_is_on_its_way_to_the_disk(client, tree, age, synced):
    """Where the file has been at rest: else one edit after the other would wait for it."""
    path, trace = tree / "file", tree.parent / "trace"
    path.write_bytes(b"MARK\n")
    os.utime(path, (time.time() - age,) * 2)
    client.machine.run(
        ["strace", "-qq", "-o", trace, "-e", "trace=?sync_file_range,?sync_file_range2", client.binary, "exec"],
        stdin=_request(path),
        env=client.env,
    )
    assert trace.read_bytes().count(b"sync_file_range") == synced


@needs_root
def test_small_store(client, tree, file):
    """The oldest entries make way when the file system holds less than the history may."""
    client.dir.mkdir(0o700)
    with small_tmpfs(client.dir, "1m"):
        os.chmod(client.dir, 0o700)
        paths = [file(b"v0" + b"x" * 200_000, name=f"f{i}") for i in range(8)]
        for path in paths:
            assert "can't be undone" not in client.ed("str_replace", path, old_str="v0", new_str="v1")
        with pytest.raises(RpcError, match="no edit"):
            client.ed("undo_edit", paths[0])
        client.ed("undo_edit", paths[-1])
        assert paths[-1].read_bytes()[:2] == b"v0"
        big = file(b"v0" + b"x" * 2_000_000, name="big")  # can't be had at any price
        assert "can't be undone" in client.ed("str_replace", big, old_str="v0", new_str="v1")
        client.ed("undo_edit", paths[-2])


# ---- an edit that can't be kept ----


def filled(folder):
    """Fills the file system up to the last byte; gives the way to make room again."""
    filler = folder / "filler"
    for size in (65536, 4096, 1):
        with open(filler, "ab", buffering=0) as f, contextlib.suppress(OSError):
            while True:
                f.write(b"x" * size)
    return filler


@needs_root
def test_undo_does_not_take_back_two_edits(client, tree, file, way):
    """After one that could not be kept the one before it isn't the last one: undo says so, and changes nothing."""
    client.dir.mkdir(0o700)
    with small_tmpfs(client.dir, "1m"):
        os.chmod(client.dir, 0o700)
        path = file(b"v0" + b"x" * 2000)
        client.ed("str_replace", path, old_str="v0", new_str="v1")
        client.ed("str_replace", path, old_str="v1", new_str="v2" + "y" * 2_000_000)
        assert "can't be undone" in client.ed("str_replace", path, old_str="v2", new_str="v3")
        before = path.read_bytes()
        for _ in range(2):
            with pytest.raises(RpcError, match="could not be kept.*can't be undone"):
                client.ed("undo_edit", path)
            assert path.read_bytes() == before
        path.write_bytes(before[:2000])  # what can be kept
        client.ed("str_replace", path, old_str="v3", new_str="v4")
        client.ed("undo_edit", path)
        assert path.read_bytes() == before[:2000]
        with pytest.raises(RpcError, match="could not be kept"):
            client.ed("undo_edit", path)
        assert path.read_bytes() == before[:2000]


@needs_root
def test_undo_does_not_delete_what_was_edited(client, tree):
    """The creation was kept and the edit behind it not."""
    client.dir.mkdir(0o700)
    with small_tmpfs(client.dir, "64k"):
        os.chmod(client.dir, 0o700)
        path = tree / "new"
        client.ed("create", path, file_text="v0" + "x" * 100_000)
        filled(client.dir)
        assert "can't be undone" in client.ed("str_replace", path, old_str="v0", new_str="v1")
        with pytest.raises(RpcError, match="could not be kept"):
            client.ed("undo_edit", path)
        assert path.read_bytes()[:2] == b"v1"


@needs_root
def test_a_failed_edit_leaves_the_one_before_to_be_undone(client, tree, file):
    """Neither was kept nor made: the last edit is the one before."""
    client.dir.mkdir(0o700)
    with small_tmpfs(client.dir, "64k"), small_tmpfs(tree, "1m"):
        os.chmod(client.dir, 0o700)
        path = file(b"v0" + b"x" * 200_000)
        path.write_bytes(b"v0")
        client.ed("str_replace", path, old_str="v0", new_str="v1")
        (path.parent / "filler").write_bytes(b"")
        filled(client.dir)
        filled(tree)
        with pytest.raises(RpcError, match="[Nn]o space"):
            client.ed("str_replace", path, old_str="v1", new_str="v2" + "y" * 300_000)
        (tree / "filler").unlink()
        (client.dir / "filler").unlink()
        client.ed("undo_edit", path)
        assert path.read_bytes() == b"v0"


@needs_root
def test_nothing_is_undone_from_a_store_that_cannot_be_changed(client, tree, file):
    """It would be undone once more the next time."""
    client.dir.mkdir(0o700)
    with small_tmpfs(client.dir, "1m"):
        os.chmod(client.dir, 0o700)
        path = file(b"v0")
        client.ed("str_replace", path, old_str="v0", new_str="v1")
        subprocess.run(["mount", "-o", "remount,ro", client.dir], check=True)
        with pytest.raises(RpcError, match="Nothing was undone.*[Rr]ead-only"):
            client.ed("undo_edit", path)
        assert path.read_bytes() == b"v1"
        assert "can't be undone" in client.ed("str_replace", path, old_str="v1", new_str="v2")
        assert path.read_bytes() == b"v2"
        subprocess.run(["mount", "-o", "remount,rw", client.dir], check=True)


def test_descriptors_run_out_at_any_point(client, tree, file):
    """However many there are, an edit is kept, or refused, or undo knows that it isn't kept."""
    path = file(b"v0")
    client.ed("str_replace", path, old_str="v0", new_str="v1")
    outcomes = set()
    for limit in range(3, 24):
        request = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "text_editor",
            "params": {"command": "str_replace", "path": str(path), "old_str": "v1", "new_str": "v2"},
        }
        done = subprocess.run(
            [client.binary, "exec"],
            input=json.dumps(request).encode(),
            env=client.env,
            capture_output=True,
            preexec_fn=lambda limit=limit: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)),
        )
        if path.read_bytes() == b"v1":
            outcomes.add("refused")
            continue
        assert path.read_bytes() == b"v2"
        if b"can't be undone" in done.stdout:
            outcomes.add("unkept")
            with pytest.raises(RpcError, match="could not be kept"):
                client.ed("undo_edit", path)
            path.write_bytes(b"v1")
        else:
            outcomes.add("kept")
            client.ed("undo_edit", path)
            assert path.read_bytes() == b"v1"
    assert {"refused", "kept"} <= outcomes


def test_an_interrupted_edit_that_others_changed_counts(client, tree, file):
    """Killed between the replacement and its entry's becoming a kept one, and changed since: it is the last edit."""
    path = file(b"v0\n")
    client.ed("str_replace", path, old_str="v0", new_str="v1")
    first = set((client.dir / "undo").iterdir())
    client.ed("str_replace", path, old_str="v1", new_str="v2")
    (entry,) = set((client.dir / "undo").iterdir()) - first
    entry.rename(entry.with_name(entry.name + ".new"))
    path.write_bytes(b"v2\nby others\n")
    client.ed("undo_edit", path)
    assert path.read_bytes() == b"v1\n"
