"""The methods file_*: bytes, trees and what is known of them (docs/files.md)."""
import base64
import contextlib
import grp
import hashlib
import json
import os
import pwd
import socket
import stat
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness import needs
from harness.client import PARAMERR, TOOLERR, RpcError
from harness.users import NOBODY_KNOWS as NOBODY


@pytest.fixture
def do(client):
    def do(method, path, **params):
        return client.rpc(f"file_{method}", {"path": str(path), **params})

    do.client = client
    return do


@pytest.fixture
def kind(client):
    """The kind of the error of a call."""

    def kind(method, path, **params):
        error = client.answer(f"file_{method}", {"path": str(path), **params})["error"]
        assert error["code"] == TOOLERR and str(path)[:20] in error["message"], error
        return error["data"]["kind"]

    return kind


def sha(data):
    return hashlib.sha256(data).hexdigest()


# ---- reading ----


def test_a_file_and_parts_of_it(do, workdir):
    data = os.urandom(300_000)
    (workdir / "f").write_bytes(data)
    got = do("read", workdir / "f", encoding="base64", sha256=True)
    assert (base64.b64decode(got["data"]), got["end"], got["sha256"], got["size"]) == (data, True, sha(data), len(data))
    got = do("read", workdir / "f", encoding="base64", offset=100, length=1000)
    assert (base64.b64decode(got["data"]), got["offset"], got["length"], got["end"]) == (data[100:1100], 100, 1000, False)
    assert do("read", workdir / "f", encoding="base64", offset=300_000)["data"] == ""
    got = do("read", workdir / "f", encoding="latin-1")
    assert got["data"].encode("latin-1") == data


def test_text_that_is_cut_in_a_character(do, kind, workdir):
    (workdir / "t").write_text("a€b")
    assert [do("read", workdir / "t", length=n)["data"] for n in range(1, 6)] == ["a", "a", "a", "a€", "a€b"]
    (workdir / "t").write_bytes(b"a\xffb")
    assert kind("read", workdir / "t") == "not_text"


@pytest.mark.parametrize("text", ["", "\0", "one\r\n", "é\u2028\U0001f600"])
def test_what_is_written_is_read(do, workdir, text):
    do("write", workdir / "f", data=text)
    assert (workdir / "f").read_bytes() == text.encode() and do("read", workdir / "f")["data"] == text


def test_what_is_no_file_is_not_opened(do, kind, workdir):
    os.mkfifo(workdir / "fifo")
    assert kind("read", workdir / "fifo") == "not_regular" and kind("write", workdir / "fifo", data="") == "not_regular"
    assert kind("read", "/dev/zero") == "not_regular" and kind("read", workdir) == "is_directory"
    assert kind("read", workdir / "nothing") == "not_found" and kind("read", workdir / "fifo/x") == "not_directory"
    os.symlink("loop", workdir / "loop")
    assert kind("read", workdir / "loop") == "loop"
    assert "Linux" in do("read", "/proc/version")["data"]  # its size says 0


# ---- writing ----


def test_a_whole_content_keeps_what_the_file_is(do, workdir):
    path = workdir / "f"
    path.write_text("old")
    path.chmod(0o751)
    os.symlink("f", workdir / "link")
    before = path.stat()
    got = do("write", workdir / "link", data="new")
    after = path.stat()
    assert (got["created"], got["atomic"], path.read_text()) == (False, True, "new")
    assert after.st_mode == before.st_mode and (workdir / "link").is_symlink() and after.st_ino != before.st_ino
    os.link(path, workdir / "other")
    assert do("write", path, data="both")["atomic"] is False and (workdir / "other").read_text() == "both"


def test_modes_and_parents(do, kind, workdir):
    assert kind("write", workdir / "a/b/f", data="") == "not_found"
    assert do("write", workdir / "a/b/f", data="", parents=True, mode=0o640)["mode"] == 0o640
    assert stat.S_IMODE((workdir / "a/b/f").stat().st_mode) == 0o640
    assert do("write", workdir / "a/b/f", data="x", mode=0o600)["mode"] == 0o600
    assert kind("write", workdir / "a/b/f/g", data="", parents=True) == "not_directory"


def test_parts(do, workdir):
    do("write", workdir / "f", data="0123456789")
    assert do("write", workdir / "f", data="ab", offset=3)["atomic"] is False
    do("write", workdir / "f", data="end", append=True)
    do("write", workdir / "f", data="!", offset=15)
    assert (workdir / "f").read_bytes() == b"012ab56789end\0\0!"


def test_only_where_it_is_what_it_was(do, kind, workdir, client):
    do("write", workdir / "f", data="one", exclusive=True)
    assert kind("write", workdir / "f", data="two", exclusive=True) == "exists"
    assert kind("write", workdir / "f", data="two", if_sha256=sha(b"two")) == "changed"
    assert kind("write", workdir / "g", data="two", if_sha256=sha(b"")) == "not_found"
    do("write", workdir / "f", data="two", if_sha256=sha(b"one"))
    assert (workdir / "f").read_text() == "two" and sorted(os.listdir(workdir)) == ["f"]
    answer = client.answer("file_write", {"path": str(workdir / "f"), "data": "x", "append": True, "if_sha256": sha(b"two")})
    assert answer["error"]["code"] == PARAMERR


def test_of_two_who_saw_the_same_one_wins(client, workdir):
    (workdir / "n").write_text("0")

    def add(times=20):
        outcomes = []
        for _ in range(times):
            text = (workdir / "n").read_text()
            answer = client.answer("file_write", {"path": str(workdir / "n"), "data": str(int(text) + 1), "if_sha256": sha(text.encode())})
            outcomes.append("won" if "result" in answer else answer["error"]["data"]["kind"])
        return outcomes

    with ThreadPoolExecutor(3) as pool:
        outcomes = [outcome for adding in [pool.submit(add) for _ in range(3)] for outcome in adding.result()]
    assert set(outcomes) <= {"won", "changed"} and os.listdir(workdir) == ["n"]
    assert int((workdir / "n").read_text()) == outcomes.count("won") >= 20


def test_many_who_make_the_same_file(client, workdir):
    def write(i):
        return client.answer("file_write", {"path": str(workdir / "new"), "data": str(i) * 1000})

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(write, range(8)))
    assert all("result" in answer for answer in answers), answers
    assert (workdir / "new").read_text() in {str(i) * 1000 for i in range(8)} and os.listdir(workdir) == ["new"]


def test_readers_see_the_old_or_the_new(client, workdir):
    path, done = workdir / "f", threading.Event()
    texts = {"a" * 200_000, "b" * 300_000}
    path.write_text("a" * 200_000)

    def read():
        seen = set()
        while not done.is_set():
            seen.add(path.read_text())
        return seen

    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(read)
        try:
            for i in range(20):
                client.rpc("file_write", {"path": str(path), "data": sorted(texts)[i % 2]})
        finally:
            done.set()
        assert reading.result() <= texts


# ---- trees ----


@pytest.fixture
def tree(workdir):
    top = workdir / "tree"
    for name in ("a/1", "a/2/deep", "a-b", "b/.hidden", ".dot", "z"):
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(name)
    os.symlink("../z", top / "a/link")
    os.symlink("/", top / "root")
    (top / b"bad\xff\n".decode(errors="surrogateescape")).write_text("")
    return top


ALL = [".dot", "a", "a/1", "a/2", "a/2/deep", "a/link", "a-b", "b", "b/.hidden", '"bad\\377\\n"', "root", "z"]


def test_a_list_is_paged_and_in_order(do, tree):
    for limit in (1, 2, 5, 1000):
        seen, after = [], None
        while True:
            got = do("list", tree, depth=100, limit=limit, **({"after": after} if after else {}))
            seen += [entry["path"] for entry in got["entries"]]
            after = got.get("next")
            if after is None:
                break
        assert seen == ALL
    assert [entry["path"] for entry in do("list", tree)["entries"]] == [name for name in ALL if "/" not in name]
    by_name = {entry["path"]: entry for entry in do("list", tree, depth=2)["entries"]}
    assert by_name["a/link"]["target"] == "../z" and by_name["a"]["type"] == "directory" and by_name["z"]["size"] == 1


def test_a_list_of_some(do, tree, client):
    assert [entry["path"] for entry in do("list", tree, depth=9, glob="**/[0-9]*")["entries"]] == ["a/1", "a/2"]
    assert not [entry for entry in do("list", tree, depth=9, hidden=False)["entries"] if "/." in f"/{entry['path']}"]
    assert client.answer("file_list", {"path": str(tree), "glob": "[a"})["error"]["code"] == PARAMERR


def test_names_that_are_no_text(do, tree):
    (name,) = [entry["path"] for entry in do("list", tree)["entries"] if "bad" in entry["path"]]
    path = f'"{tree}/{name[1:]}'
    do("write", path, data="new")
    assert do("read", path)["data"] == "new" and len(os.listdir(tree)) == 7
    do("remove", path)
    assert len(os.listdir(tree)) == 6


def test_a_copy_of_a_tree(do, kind, tree, workdir):
    os.utime(tree / "z", (1, 2.5))
    (tree / "a/1").chmod(0o751)
    assert kind("copy", tree, to=str(workdir / "copy")) == "is_directory"
    do("copy", tree, to=str(workdir / "copy"), recursive=True)

    def what(top):
        return {str(p.relative_to(top)).encode(errors="surrogateescape"): (p.lstat().st_mode, p.lstat().st_mtime, p.is_symlink() and os.readlink(p), p.is_file() and p.read_bytes())
                for p in top.rglob("*") if not p.is_symlink() or p.lstat()}

    assert what(workdir / "copy") == {**what(tree), **{name: what(workdir / "copy")[name] for name in (b"a/link", b"root")}}
    assert os.readlink(workdir / "copy/root") == "/"
    do("copy", tree, to=str(tree / "a/inside"), recursive=True)  # not into itself for ever
    assert sorted(os.listdir(tree / "a/inside/a")) == ["1", "2", "link"]
    assert kind("copy", tree, to=str(workdir / "copy"), recursive=True) == "exists"


def test_a_copy_that_fails_leaves_nothing(do, kind, tree, workdir):
    import socket
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(tree / "y.sock"))
    assert kind("copy", tree, to=str(workdir / "copy"), recursive=True) == "other"
    assert not (workdir / "copy").exists()


def test_a_copy_of_a_file(do, kind, workdir):
    (workdir / "f").write_text("new")
    (workdir / "g").write_text("old")
    assert kind("copy", workdir / "f", to=str(workdir / "g")) == "exists"
    assert do("copy", workdir / "f", to=str(workdir / "g"), overwrite=True) == {"files": 1, "bytes": 3}
    assert (workdir / "g").read_text() == "new" and kind("copy", workdir / "f", to=str(workdir), overwrite=True) in ("is_directory", "exists")


def test_removing(do, kind, tree, workdir):
    outside = workdir / "outside"
    outside.mkdir()
    (outside / "kept").write_text("")
    os.symlink(outside, tree / "out")
    assert kind("remove", tree) == "not_empty" and kind("remove", tree / "nothing") == "not_found"
    with pytest.raises(RpcError, match="Directory not empty: `recursive`"):
        do("remove", tree)
    do("remove", tree / "z")
    do("remove", tree / "root")
    do("remove", tree, recursive=True)
    assert not tree.exists() and (outside / "kept").exists() and os.listdir("/")


def test_names_modes_and_times(do, kind, workdir):
    do("make_dir", workdir / "a/b", parents=True, mode=0o700)
    do("make_dir", workdir / "a/b", parents=True)
    assert kind("make_dir", workdir / "a/b") == "exists" and kind("make_dir", workdir / "x/y") == "not_found"
    do("touch", workdir / "f", mtime=12.5)
    assert do("stat", workdir / "f")["mtime"] == 12.5 and (workdir / "f").stat().st_mtime == 12.5
    do("touch", workdir / "f")
    assert abs((workdir / "f").stat().st_mtime - time.time()) < 3600
    do("chmod", workdir / "f", mode=0o4711)
    assert do("stat", workdir / "f")["mode"] == 0o4711
    do("link", workdir / "l", to="f")
    do("link", workdir / "h", to=str(workdir / "f"), hard=True)
    assert do("stat", workdir / "l", follow=False)["target"] == "f" and do("stat", workdir / "l")["type"] == "file"
    assert do("stat", workdir / "h")["links"] == 2 and kind("link", workdir / "l", to="f") == "exists"
    (workdir / "g").write_text("")
    assert kind("move", workdir / "g", to=str(workdir / "f")) == "exists"
    do("move", workdir / "g", to=str(workdir / "f"), overwrite=True)
    assert not (workdir / "g").exists() and kind("move", workdir / "g", to=str(workdir / "i")) == "not_found"


def test_owners_and_groups_by_name_and_number(do, kind, workdir):
    if os.geteuid() != 0:
        pytest.skip("only root gives files away")
    path, name = workdir / "f", pwd.getpwuid(0).pw_name
    group = grp.getgrall()[-1]
    path.write_text("")
    for owner, uid, gid in [(f"{name}:{group.gr_name}", 0, group.gr_gid), (str(NOBODY), NOBODY, group.gr_gid), (":0", NOBODY, 0), (f"0:{NOBODY}", 0, NOBODY),
                            (f"{NOBODY}:", NOBODY, NOBODY)]:
        do("chown", path, owner=owner)
        assert (path.stat().st_uid, path.stat().st_gid) == (uid, gid), owner
    got = do("write", path, data="x", owner="0:0")
    assert (got["uid"], got["gid"], got["atomic"]) == (0, 0, True)
    got = do("write", workdir / "new", data="x", owner=f"{NOBODY}:{NOBODY}", mode=0o640)
    assert (got["uid"], got["gid"], got["mode"]) == (NOBODY, NOBODY, 0o640)
    got = do("write", workdir / "new", data="y", append=True, owner="0")
    assert (got["uid"], got["gid"], (workdir / "new").read_text()) == (0, NOBODY, "xy")
    for owner in ["no such user", "0:no such group", "", "0:-1"]:
        error = do.client.answer("file_write", {"path": str(path), "data": "z", "owner": owner})["error"]
        assert error["data"]["kind"] == "no_user" and path.read_text() == "x", (owner, error)


def test_a_list_in_another_order(do, kind, workdir):
    for number, size in enumerate([3, 10, 1, 10, 7]):
        (workdir / f"f{number}").write_bytes(b"x" * size)
        os.utime(workdir / f"f{number}", ns=(0, 10**18 + [5, 1, 9, 9, 2][number]))
    orders = {"name": [0, 1, 2, 3, 4], "size": [1, 3, 4, 0, 2], "mtime": [2, 3, 0, 4, 1]}
    for order, numbers in orders.items():
        want = [f"f{number}" for number in numbers]
        assert [entry["path"] for entry in do("list", workdir, sort=order)["entries"]] == want
        found, after = [], {}
        while after is not None:
            answer = do("list", workdir, sort=order, limit=2, **after)
            found += [entry["path"] for entry in answer["entries"]]
            after = {"after": answer["next"]} if "next" in answer else None
        assert found == want
    assert [entry["path"] for entry in do("list", workdir, sort="size", glob="f[34]")["entries"]] == ["f3", "f4"]
    error = do.client.answer("file_list", {"path": str(workdir), "sort": "size", "after": "gone"})["error"]
    assert error["data"]["kind"] == "not_found" and "gone" in error["message"]
    assert do.client.answer("file_list", {"path": str(workdir), "sort": "colour"})["error"]["code"] == PARAMERR


def test_a_copy_keeps_holes(do, workdir):
    with open(workdir / "f", "wb") as f:
        f.write(b"begin")
        f.seek(1 << 36)
        f.write(b"middle")
        f.truncate(1 << 40)
    if (workdir / "f").stat().st_blocks > 10_000:
        pytest.skip("this file system has no holes")
    assert do("copy", workdir / "f", to=str(workdir / "g"))["bytes"] == 1 << 40
    assert (workdir / "g").stat().st_size == 1 << 40 and (workdir / "g").stat().st_blocks < 10_000
    for at, data in [(0, b"begin"), (5, b"\0"), (1 << 36, b"middle"), ((1 << 40) - 1, b"\0")]:
        assert base64.b64decode(do("read", workdir / "g", offset=at, length=len(data), encoding="base64")["data"]) == data


def test_kinds_of_odd_places(kind, workdir):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(workdir / "socket"))
        assert kind("read", workdir / "socket") == kind("write", workdir / "socket", data="") == "not_regular"
    (workdir / "f").write_text("")
    assert kind("write", f"{workdir}/f/", data="") == "not_directory" and kind("write", f"{workdir}/new/", data="") == "is_directory"
    assert kind("write", "x/" * 3000, data="") == kind("read", "x/" * 3000) == "name_too_long"


def test_how_much_there_is(do, tree):
    got = do("disk_usage", tree)
    assert (got["entries"], got["bytes"], got["incomplete"]) == (13, sum(p.lstat().st_size for p in tree.rglob("*") if p.is_file() and not p.is_symlink()), False)
    space = do("space", tree)
    there = os.statvfs(tree)
    assert space["total_bytes"] == there.f_blocks * there.f_frsize and space["read_only"] is False


def test_a_deep_tree(do, workdir):
    at = workdir / "deep"
    at.mkdir()
    os.chdir(at)
    try:
        for _ in range(300):
            os.mkdir("d")
            os.chdir("d")
    finally:
        os.chdir("/")
    assert len(do("list", at, depth=100)["entries"]) == 100
    do("remove", at, recursive=True)
    assert not at.exists()


# ---- whose rights ----


@pytest.mark.skipif(os.getuid() != 0, reason="another user takes root")
def test_as_another_user(do, kind, workdir):
    secret = workdir / "secret"
    secret.write_text("x")
    secret.chmod(0o600)
    user = {"uid": NOBODY, "gid": NOBODY, "groups": []}
    assert kind("read", secret, user=user) == "permission" and kind("write", secret, data="", user=user) in ("permission",)
    assert do("write", workdir / "mine", data="x", user=user)["uid"] == NOBODY
    assert (workdir / "mine").stat().st_uid == NOBODY
    assert len(base64.b64decode(do("read", secret, encoding="base64")["data"])) == 1
    (workdir / "big").write_bytes(b"x" * 3_000_000)
    assert len(do("read", workdir / "big", user=user, length=3_000_000)["data"]) == 3_000_000
    do("chown", workdir / "mine", owner="root", gid=0)
    assert (workdir / "mine").stat().st_uid == 0


def test_links_that_are_exchanged_while_a_tree_is_removed(client, workdir):
    """Whoever exchanges a directory for a link while its tree is walked leads nobody out of it."""
    outside = workdir / "outside"
    outside.mkdir()
    for i in range(50):
        (outside / str(i)).write_text("kept")
    done = threading.Event()
    top = workdir / "top"

    def exchange():
        while not done.is_set():
            try:
                os.rename(top / "x", top / "y")
                os.symlink(outside, top / "x")
                os.unlink(top / "x")
                os.rename(top / "y", top / "x")
            except OSError:
                pass

    thread = threading.Thread(target=exchange)
    thread.start()
    try:
        for _ in range(30):
            with contextlib.suppress(OSError):  # exchanged meanwhile
                (top / "x/z").mkdir(parents=True, exist_ok=True)
            client.answer("file_copy", {"path": str(top), "to": str(workdir / "copy"), "recursive": True})
            client.answer("file_remove", {"path": str(top), "recursive": True})
            assert not [p for p in (workdir / "copy").rglob("*") if not p.is_symlink() and p.is_file()]
            client.answer("file_remove", {"path": str(workdir / "copy"), "recursive": True})
    finally:
        done.set()
        thread.join()
    assert {str(i) for i in range(50)} <= set(os.listdir(outside))  # and what the loop itself has made through the link


def test_in_a_connection(client, workdir):
    done = client.cli("exec", "--stream", stdin=json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": "file_read", "params": {"path": str(workdir / "none")}}).encode())
    answer = [json.loads(line) for line in done.stdout.splitlines()][1]
    assert answer["error"]["data"] == {"kind": "not_found"}


METHODS = ["read", "write", "stat", "list", "make_dir", "remove", "move", "copy", "link", "chmod", "chown", "touch", "disk_usage", "space", "find", "search", "watch"]
NEEDED = {"write": {"data": "x"}, "move": {"to": "x"}, "copy": {"to": "x"}, "link": {"to": "x"}, "chmod": {"mode": 0o600}, "search": {"pattern": "x"}}


@pytest.mark.parametrize("method", METHODS)
def test_every_method_says_of_what_kind_a_failure_is(client, workdir, method):
    """Also one that came before the work, or was met by a process that had just begun."""
    def fails(**params):
        error = client.answer(f"file_{method}", {"path": str(workdir / "none" / "none"), **NEEDED.get(method, {}), **params})["error"]
        assert error["code"] == TOOLERR, error
        return error["data"]["kind"]

    assert fails(user="nosuchuser") == "no_user"
    if method != "link":
        assert fails() == "not_found"


def test_every_file_method_is_among_them(client):
    known = {method["name"].removeprefix("file_") for method in json.loads(client.cli("methods", "--json").stdout) if method["name"].startswith("file_")}
    assert known == set(METHODS)


def test_a_watch_that_is_not_there_is_of_a_kind_as_well(client):
    assert client.answer("file_watch", {"cursor": "FileWatch:1"})["error"]["data"]["kind"] == "not_found"


# ---- what only leads to a directory ----


@pytest.mark.parametrize("path", [".", "..", "d/.", "d/..", "d/../", "link/..", "/"])
def test_a_directory_is_removed_by_its_name_alone(client, workdir, path):
    """Refused before anything in it is gone."""
    (workdir / "d/e").mkdir(parents=True)
    (workdir / "d/f").touch()
    os.symlink("d", workdir / "link")
    at = path if path == "/" else f"{workdir}/d/{path}" if path in (".", "..") else f"{workdir}/{path}"
    if path != "/":  # where it would be done
        error = client.answer("file_remove", {"path": at, "recursive": True})["error"]
    else:
        error = client.answer("file_remove", {"path": at})["error"]
    assert error["data"]["kind"] == "busy" and sorted(os.listdir(workdir / "d")) == ["e", "f"]


def test_a_slash_behind_a_link_removes_nothing(kind, workdir):
    (workdir / "d").mkdir()
    (workdir / "d/f").touch()
    os.symlink("d", workdir / "link")
    assert kind("remove", f"{workdir}/link/", recursive=True) == "not_directory"
    assert os.listdir(workdir / "d") == ["f"] and (workdir / "link").is_symlink()


def test_what_the_kernel_makes_up_is_written_in_place(client, do):
    needs.root("set a value of the kernel's")
    path = "/proc/sys/fs/lease-break-time"
    before = open(path).read()
    if not os.access(path, os.W_OK) or os.statvfs(path).f_flag & os.ST_RDONLY:
        pytest.skip(f"{path} can't be written here")
    assert do("write", path, data=before)["atomic"] is False and open(path).read() == before
