"""file_watch: a mirror that is kept by what it tells alone is what is there in the end, whatever happens meanwhile."""
import json
import os
import random
import re
import select
import shutil
import subprocess
import threading
import time

import pytest

from harness.client import PARAMERR, RpcError
from harness.machine import HANG
from harness.stream import Stream


class Mirror:
    """The paths below a directory, and what is in the files, read anew for each that is said to have changed."""

    def __init__(self, poll, root, **params):
        self.poll, self.root, self.seen, self.ended = poll, root, [], False
        self.cursor = poll(path=str(root), **params)["cursor"]
        self.known = snapshot(root)

    def take(self, answer):
        self.cursor, self.ended = answer["cursor"], answer["ended"]
        for change in answer["changes"]:
            path, how = change["path"], change["change"]
            path = json.loads(path) if path.startswith('"') else path
            self.seen.append((how, path))
            if how == "deleted":
                assert path in self.known, (how, path)
                del self.known[path]
            elif how != "overflow":
                assert (path in self.known) == (how == "changed"), (how, path)
                self.known[path] = content(self.root / path)
        return answer

    def until(self, done):
        deadline = time.monotonic() + HANG
        while not done():
            assert time.monotonic() < deadline, (self.seen[-20:], set(self.known.items()) ^ set(snapshot(self.root).items()))
            self.take(self.poll(cursor=self.cursor, timeout=1))

    def until_same(self):
        self.until(lambda: self.known == snapshot(self.root))


def content(path):
    try:
        return "a directory" if path.is_dir() and not path.is_symlink() else path.read_bytes()
    except OSError:
        return None


def snapshot(root):
    found = {}
    for folder, directories, files in os.walk(root):
        for name in directories + files:
            path = os.path.join(folder, name)
            found[os.path.relpath(path, root)] = content(type(root)(path))
    return found


@pytest.fixture
def tree(workdir):
    """Not the directory in which a server may have begun."""
    (workdir / "tree/a/b").mkdir(parents=True)
    (workdir / "tree/a/b/file").write_text("old\n")
    return workdir / "tree"


@pytest.fixture
def poll(client):
    return lambda **params: client.rpc("file_watch", params)


def test_what_begins_ends_changes_and_moves(poll, tree):
    mirror = Mirror(poll, tree)
    (tree / "new").write_text("1\n")
    mirror.until_same()
    assert mirror.seen[0] == ("created", "new")
    with open(tree / "a/b/file", "a") as file:
        file.write("more\n")
    mirror.until_same()
    assert ("changed", "a/b/file") in mirror.seen
    (tree / "a/b/deep/er").mkdir(parents=True)
    (tree / "a/b/deep/er/x").write_text("x")
    os.rename(tree / "a/b", tree / "moved")
    mirror.until_same()
    (tree / "moved/deep/er/x").write_text("y")  # the watches went along
    mirror.until_same()
    shutil.rmtree(tree / "moved")
    (tree / "moved").write_text("a file now")
    os.symlink("nowhere", tree / "link")
    mirror.until_same()
    os.chmod(tree / "a", 0o700)
    mirror.until(lambda: ("changed", "a") in mirror.seen)


def test_names_that_are_no_text_and_what_is_left_out(poll, tree):
    mirror = Mirror(poll, tree, exclude=["*.o", "a/b"])
    for name in ["x.o", "a/b/y", "line\nend", "ö"]:
        (tree / name).write_text("z")
    mirror.until(lambda: {("created", "line\nend"), ("created", "ö")} <= set(mirror.seen))
    assert {path for _, path in mirror.seen} == {"line\nend", "ö"}
    flat = Mirror(poll, tree, recursive=False)
    (tree / "a/deeper").write_text("z")
    (tree / "here").write_text("z")
    flat.until(lambda: flat.seen)
    assert flat.seen[0] == ("created", "here")


def test_a_file_alone_also_when_it_is_replaced(poll, tree):
    mirror = Mirror(poll, tree / "a/b/file")
    mirror.root, mirror.known = tree / "a/b", {"file": b"old\n"}
    (tree / "a/b/other").write_text("x")
    (tree / "a/b/next").write_text("new\n")
    os.rename(tree / "a/b/next", tree / "a/b/file")
    mirror.until(lambda: mirror.known == {"file": b"new\n"})
    os.remove(tree / "a/b/file")
    mirror.until(lambda: mirror.seen[-1] == ("deleted", "file"))


def test_what_was_told_comes_again_until_it_has_arrived(poll, tree):
    first = poll(path=str(tree))
    (tree / "new").write_text("1\n")
    told = poll(cursor=first["cursor"])
    assert told["changes"][0]["path"] == "new" and poll(cursor=first["cursor"])["changes"][0] == told["changes"][0]
    last = told
    while last["changes"]:
        last = poll(cursor=last["cursor"], timeout=0.2)
    assert last["cursor"] != first["cursor"] and "no cursor of this watch" in refused(poll, cursor=first["cursor"])


def refused(poll, **params):
    with pytest.raises(RpcError) as failed:
        poll(**params)
    return failed.value.message


def test_its_end(poll, tree):
    mirror = Mirror(poll, tree)
    shutil.rmtree(tree)
    mirror.until(lambda: mirror.ended)
    assert mirror.known == {}
    tree.mkdir()
    cursor = poll(path=str(tree))["cursor"]
    assert poll(cursor=cursor, stop=True)["ended"]
    deadline = time.monotonic() + HANG
    while "no watch behind the cursor" not in (said := refused(poll, cursor=cursor)):
        assert "end" in said and time.monotonic() < deadline, said


def test_what_can_not_be_watched(client, poll, tree):
    assert "No such file" in refused(poll, path=str(tree / "nothing"))
    assert "no watch behind" in refused(poll, cursor="FileWatch_9:1") and "no watch behind" in refused(poll, cursor="x")
    for wrong in [{}, {"path": str(tree), "exclude": ["["]}]:
        with pytest.raises(RpcError) as failed:
            poll(**wrong)
        assert failed.value.code == PARAMERR


def test_with_the_rights_of_a_user(poll, tree, user):
    os.chmod(tree / "a", 0o700)
    for path in [tree, *tree.parents]:
        if path != tree.parent.parent and str(path).startswith("/tmp/"):
            os.chmod(path, os.stat(path).st_mode | 0o055)
    answer = poll(path=str(tree), user=user.name)
    (tree / "a/secret").write_text("x")
    (tree / "seen").write_text("x")
    changes = poll(cursor=answer["cursor"])
    assert {change["path"] for change in changes["changes"]} == {"seen"} and changes["incomplete"]
    os.chmod(tree, 0o700)
    assert "Permission denied" in refused(poll, path=str(tree), user=user.name)


def churn(tree, rng, steps):
    """Changes of every kind, at random."""
    names = [f"{a}{b}" for a in "abcdefgh" for b in range(8)]
    for step in range(steps):
        path = tree.joinpath(*rng.choices(names, k=rng.randint(1, 3)))
        try:
            kind = rng.randrange(10)
            if kind < 5:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(b"%d" % step)
            elif kind < 6:
                with open(path, "ab") as file:
                    file.write(b"+")
            elif kind < 7:
                path.unlink()
            elif kind < 8:
                os.rename(path, tree.joinpath(*rng.choices(names, k=rng.randint(1, 2))))
            elif kind < 9:
                os.rename(path.parent, tree.joinpath(rng.choice(names), "moved"))
            else:
                shutil.rmtree(path.parent if path.parent != tree else path)
        except OSError:
            pass


def test_of_ten_thousand_changes_none_is_missed(poll, tree, request):
    """While the watch is asked; a quarter of them, but with --long."""
    mirror = Mirror(poll, tree)
    work = threading.Thread(target=churn, args=(tree, random.Random(7), 10000 if request.config.getoption("--long") else 2500))
    work.start()
    paths = set(mirror.known)
    while work.is_alive():
        answer = poll(cursor=mirror.cursor, timeout=0.1)
        mirror.cursor = answer["cursor"]
        for change in answer["changes"]:  # what is in them by now shows only when all is quiet
            assert (change["path"] in paths) == (change["change"] != "created"), change
            paths = paths | {change["path"]} if change["change"] != "deleted" else paths - {change["path"]}
    work.join()
    mirror.known = {path: content(tree / path) for path in paths}
    mirror.until_same()


def test_more_changes_than_the_kernel_keeps(poll, client, tree):
    """While the watch is stopped: then all is compared, and that is said."""
    limit = int(open("/proc/sys/fs/inotify/max_queued_events").read()) if os.path.exists("/proc/sys/fs/inotify/max_queued_events") else 0
    if not 0 < limit <= 65536:
        pytest.skip(f"fs.inotify.max_queued_events is {limit}")
    mirror = Mirror(poll, tree)
    (keeper,) = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if title(pid) == b"toolbox FileWatch" and is_of(pid, client)]
    os.kill(keeper, 19)
    try:
        for step in range(limit + 2000):
            os.utime(tree / "a/b/file", (step, step))
            os.utime(tree / "a", (step, step))
        (tree / "late/one").mkdir(parents=True)
        (tree / "a/b/file").write_text("new")
    finally:
        os.kill(keeper, 18)
    mirror.until_same()
    mirror.until(lambda: ("overflow", ".") in mirror.seen)


def title(pid):
    try:
        return open(f"/proc/{pid}/cmdline", "rb").read().strip(b"\0")
    except OSError:
        return b""


def is_of(pid, client):
    try:
        return os.path.samefile(f"/proc/{pid}/cwd", client.dir)
    except OSError:
        return False


def test_over_a_stream_it_is_pushed(client, tree):
    process = client.popen("exec", "--stream", bufsize=0)
    try:
        stream = Stream(process.stdout, process.stdin, process)
        stream.request("file_watch", {"path": str(tree)}, id="it")
        seen, event = [], stream.receive()["params"]
        assert event["event"]["changes"] == []
        for name in ["one", "two"]:
            stream.notify("rpc.ack", {"subscription": "it", "seq": event["seq"]})
            (tree / name).write_text("x")
            while ("created", name) not in seen:
                event = stream.receive()["params"]
                stream.notify("rpc.ack", {"subscription": "it", "seq": event["seq"]})
                seen += [(change["change"], change["path"]) for change in event["event"]["changes"]]
        shutil.rmtree(tree)
        while "result" not in (last := stream.receive()):
            stream.notify("rpc.ack", {"subscription": "it", "seq": last["params"]["seq"]})
        assert last["id"] == "it" and last["result"]["ended"]
    finally:
        process.kill()
        process.communicate(timeout=HANG)


def test_the_command(client, tree):
    process = client.popen("file", "watch", ".", "--exclude", "*.o", cwd=tree, stdout=subprocess.PIPE)
    made, deadline = 0, time.monotonic() + HANG
    while not select.select([process.stdout], [], [], 0.2)[0]:  # what is made before it has begun is none of its changes
        assert time.monotonic() < deadline
        (tree / f"{made}.o").write_text("x")
        (tree / f"dir{made}").mkdir()
        made += 1
    assert re.fullmatch(rb"created dir\d+/\n", process.stdout.readline())
    shutil.rmtree(tree)
    rest = process.communicate(timeout=HANG)[0]
    assert b"deleted a/b/file\n" in rest and process.returncode == 0
    done = client.cli("file", "watch", str(tree))
    assert done.returncode == 1 and b"No such file" in done.stderr
