"""`toolbox cp` and `toolbox sync`: files and trees, here and in targets."""
import contextlib
import io
import json
import os
import random
import signal
import stat
import subprocess
import tarfile
import threading
import time

import pytest

from harness import needs, roots
from harness.containers import BUSYBOX, Options
from harness.machine import HANG
from harness.processes import wait_until


def cli(client, *words, input=b"", raw=False, **how):
    done = client.cli(*map(str, words), stdin=input, **how)
    return subprocess.CompletedProcess(words, done.returncode, done.stdout if raw else done.stdout.decode(), done.stderr.decode(errors="replace"))


class Copies:
    """cp and sync; there(path) is how a path of this machine is called at the other side."""

    def __init__(self, client, workdir, remote):
        self.client, self.dir, self.remote = client, workdir / "there", remote

    def there(self, path):
        return f"local:{path}" if self.remote else str(path)

    def run(self, command, *words, status=0, **how):
        done = cli(self.client, command, "--json", *(("--dir", str(self.dir)) if self.remote else ()), *map(str, words), **how)
        assert done.returncode == status, done
        return json.loads(done.stdout) if done.stdout.startswith("{") else done


@pytest.fixture(params=["here", "target"])
def copies(request, client, workdir):
    return Copies(client, workdir, request.param == "target")


def facts(path, times=True, owners=False):
    """All that is to be the same of a tree."""
    found, inodes = {}, {}
    for folder, names, files in os.walk(os.fsencode(path)):
        for name in [b"."] * (folder == os.fsencode(path)) + names + files:
            at = os.path.join(folder, name)
            st = os.lstat(at)
            what = (os.readlink(at) if stat.S_ISLNK(st.st_mode) else open(at, "rb").read() if stat.S_ISREG(st.st_mode) else None)
            twin = inodes.setdefault(st.st_ino, at[len(os.fsencode(path)):]) if st.st_nlink > 1 and not stat.S_ISDIR(st.st_mode) else None
            found[os.path.relpath(at, os.fsencode(path))] = (st.st_mode, what, twin, times and st.st_mtime_ns,
                                                             owners and (st.st_uid, st.st_gid))
    return found


def leftovers(path):
    return [os.path.join(folder, name) for folder, names, files in os.walk(path) for name in files + names if ".toolbox" in name]


def make_tree(at):
    os.makedirs(at / "sub/empty")
    (at / "a").write_bytes(b"one\n")
    os.link(at / "a", at / "sub/twin")
    os.symlink("../a", at / "sub/link")
    os.symlink("/nowhere", at / "dangling")
    os.mkfifo(at / "fifo", 0o640)
    (at / "none").touch()
    (at / "large").write_bytes(os.urandom(3_000_001))
    with open(at / "hole", "wb") as f:
        f.truncate(20_000_000)
        f.seek(9_000_000)
        f.write(b"middle")
    (at / "locked").mkdir()
    (at / "locked/in").write_text("x")
    (at / ("n" * 255)).write_text("long")
    open(os.fsencode(at) + b"/odd \xff\n\\", "wb").write(b"odd")
    deep = at / "d"
    for _ in range(12):
        deep = deep / ("e" * 60)
    deep.mkdir(parents=True)
    (deep / "f").write_text("deep")
    os.chmod(at / "a", 0o751)
    os.chmod(at / "locked", 0o500)
    os.utime(at / "large", ns=(10**18, 981173106123456789))
    os.utime(at / "none", ns=(0, -1_500_000_000))
    os.utime(at / "dangling", ns=(0, 5), follow_symlinks=False)
    os.utime(at / "sub", ns=(0, 77_000_000_001))


@pytest.fixture
def tree(workdir):
    make_tree(workdir / "tree")
    yield workdir / "tree"
    for folder, _, _ in os.walk(workdir):
        with contextlib.suppress(OSError):
            os.chmod(folder, 0o700)


# ---- cp ----


def test_a_tree_is_the_same_at_the_other_side(copies, tree, workdir):
    told = copies.run("cp", "-r", tree, copies.there(workdir / "to"))
    assert facts(workdir / "to") == facts(tree)
    assert (told["ok"], told["failed"], told["links"]) == (True, 0, 2)
    assert os.stat(workdir / "to/hole").st_blocks * 512 < 1_000_000 and not leftovers(workdir / "to")
    copies.run("cp", "-a", copies.there(tree), workdir / "back")
    assert facts(workdir / "back", owners=True) == facts(tree, owners=True)


def test_where_it_goes(copies, workdir):
    os.makedirs(workdir / "src/x")
    (workdir / "src/f").write_text("f")
    (workdir / "dir").mkdir()
    to = copies.there(workdir / "dir")
    copies.run("cp", workdir / "src/f", to)
    copies.run("cp", workdir / "src/f", f"{to}/g")
    copies.run("cp", "-r", workdir / "src", to)
    copies.run("cp", "-r", workdir / "src", f"{to}/new")
    copies.run("cp", "-r", workdir / "src", f"{to}/slash/")
    copies.run("cp", "-r", f"{workdir}/src/.", f"{to}/in")
    copies.run("cp", "-r", f"{workdir}/src/.", f"{to}/in")
    assert sorted(str(p.relative_to(workdir / "dir")) for p in (workdir / "dir").rglob("*")) == sorted(
        ["f", "g"] + [f"{name}{part}" for name in ("src", "new", "slash", "in") for part in ("", "/x", "/f")])
    (workdir / "h").write_text("h")
    copies.run("cp", workdir / "h", workdir / "src/f", to)
    assert (workdir / "dir/h").read_text() == "h"


@pytest.mark.parametrize("words, said", [
    (["src", "to"], "-r"), (["nothing", "to"], "No such file"), (["src/f", "missing/to"], "missing"),
    (["src/f", "src/f", "missing"], "missing"), (["src/f", "to/"], "Not a directory"), (["-r", "src", "src/f"], "Not a directory"),
    (["src/f", "src/f/x"], "Not a directory")])
def test_what_can_t_be(client, workdir, words, said):
    os.makedirs(workdir / "src")
    (workdir / "src/f").write_text("f")
    done = cli(client, "cp", *words, cwd=workdir)
    assert done.returncode == 1 and said in done.stderr, done
    assert sorted(os.listdir(workdir)) == ["src"] and (workdir / "src/f").read_text() == "f"


@pytest.mark.parametrize("words, said", [
    ([], "sources"), (["a"], "sources"), (["-", "-"], "archive"), (["docker:web", "b"], "path"), (["docker:web:", "b"], "path"),
    (["a", "docker:x:/y", "b"], "one place"), (["--frobnicate", "a", "b"], "--frobnicate"), (["", "b"], "empty"), (["-r", "local:", "b"], "path")])
def test_usage(client, words, said):
    done = cli(client, "cp", *words)
    assert done.returncode == 2 and said in done.stderr, done


def test_a_target_that_is_not_there_says_so(client, workdir):
    (workdir / "f").touch()
    done = cli(client, "cp", workdir / "f", "exec:/nowhere/program:/tmp/x")
    assert done.returncode > 2 and "/nowhere/program" in done.stderr, done


def test_an_archive_in_and_out(copies, tree, workdir):
    (tree / "locked").chmod(0o700)
    out = cli(copies.client, "cp", "-a", copies.there(tree), "-", raw=True)
    assert out.returncode == 0, out.stderr
    with tarfile.open(fileobj=io.BytesIO(out.stdout)) as tar:
        names = {member.name: member for member in tar}
        assert names["tree/a"].mode == 0o751 and names["tree/sub/twin"].islnk() and names["tree/fifo"].isfifo()
        assert tar.extractfile("tree/large").read() == (tree / "large").read_bytes()
        assert tar.extractfile("tree/hole").read() == (tree / "hole").read_bytes()
    for form in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        made = io.BytesIO()
        with tarfile.open(fileobj=made, mode="w", format=form) as tar:
            tar.add(tree, "./tree", filter=lambda m: None if m.name.endswith("/none") else m)
        done = cli(copies.client, "cp", "-a", "-", copies.there(workdir / f"in{form}"), input=made.getvalue())
        assert done.returncode == 0, done
        want = {name: fact for name, fact in facts(tree, times=False).items() if name != b"none"}
        assert facts(workdir / f"in{form}/tree", times=False) == want


def test_what_was_there_is_replaced_whole(copies, workdir):
    (workdir / "f").write_text("new")
    (workdir / "old").write_text("old")
    os.link(workdir / "old", workdir / "other name")
    os.symlink("old", workdir / "link")
    copies.run("cp", workdir / "f", copies.there(workdir / "old"))
    copies.run("cp", workdir / "f", copies.there(workdir / "link"))
    assert (workdir / "old").read_text() == "new" and (workdir / "other name").read_text() == "old"
    assert not (workdir / "link").is_symlink()  # the link itself is replaced, not what it leads to


def test_resume_and_checksum_say_what_was_there(copies, workdir):
    os.makedirs(workdir / "src")
    for i in range(20):
        (workdir / f"src/{i}").write_text(f"text {i}")
    to = copies.there(workdir / "to")
    assert copies.run("cp", "-r", workdir / "src", to)["files"] == 20
    (workdir / "to/src").mkdir()
    assert copies.run("cp", "-r", "--resume", f"{workdir}/src/.", to)["skipped"] == 20
    st = os.stat(workdir / "src/3")
    (workdir / "src/3").write_text("TEXT 3")
    os.utime(workdir / "src/3", ns=(0, st.st_mtime_ns))
    told = copies.run("cp", "-r", "--resume", f"{workdir}/src/.", to)
    assert (told["files"], told["skipped"]) == (0, 20)
    told = copies.run("cp", "-r", "--checksum", f"{workdir}/src/.", to)
    assert (told["files"], told["skipped"]) == (1, 19) and (workdir / "to/3").read_text() == "TEXT 3"


def test_what_the_kernel_makes_up_is_read(copies, workdir):
    copies.run("cp", copies.there("/proc/version"), workdir / "v")
    assert "Linux" in (workdir / "v").read_text()


def test_rights_and_programs_of_others_stay_behind_without_a(copies, workdir):
    needs.root("give files away")
    (workdir / "f").write_text("f")
    os.chown(workdir / "f", 12345, 54321)
    os.chmod(workdir / "f", 0o4755)
    os.setxattr(workdir / "f", "user.colour", b"red")
    copies.run("cp", workdir / "f", copies.there(workdir / "plain"))
    copies.run("cp", "-a", workdir / "f", copies.there(workdir / "all"))
    plain, everything = os.stat(workdir / "plain"), os.stat(workdir / "all")
    assert (plain.st_uid, plain.st_mode & 0o7777, os.listxattr(workdir / "plain")) == (0, 0o755, [])
    assert (everything.st_uid, everything.st_gid, everything.st_mode & 0o7777) == (12345, 54321, 0o4755)
    assert os.getxattr(workdir / "all", "user.colour") == b"red"


# ---- streams and places of others ----


def archive(*members):
    """A tar of (name, type, target or content)."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, kind, more in members:
            info = tarfile.TarInfo(name)
            info.type, info.mode = kind, 0o755
            if kind == tarfile.REGTYPE:
                info.size = len(more)
            else:
                info.linkname = more or ""
            tar.addfile(info, io.BytesIO(more) if kind == tarfile.REGTYPE else None)
    return made.getvalue()


FILE, LINK, HARD, DIR = tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE


@pytest.mark.parametrize("members", [
    [("../out", FILE, b"x")], [("a/../../out", FILE, b"x")], [("..", DIR, None)], [("d/..", LINK, "x")],
    [("l", LINK, ".."), ("l/out", FILE, b"x")], [("l", LINK, "/{}"), ("l/secret", FILE, b"x")],
    [("l", LINK, "../secret"), ("l", FILE, b"x")], [("h", HARD, "../secret"), ("h", FILE, b"x")],
    [("l", LINK, ".."), ("h", HARD, "l/secret")], [("l", LINK, ".."), ("l", DIR, None), ("l/out", FILE, b"x")],
    [("d", DIR, None), ("d/l", LINK, "../.."), ("d/l/out/x", FILE, b"x")], [("a\0b/../../out", FILE, b"x")],
    [("dev", tarfile.CHRTYPE, None)]], ids=lambda m: m[-1][0].replace("\0", "0"))
def test_nothing_outside_is_written(client, workdir, members):
    (workdir / "secret").write_text("secret")
    os.makedirs(workdir / "to")
    members = [(name, kind, more.format(workdir) if kind == LINK and more else more) for name, kind, more in members]
    cli(client, "cp", "-a", "-", str(workdir / "to"), input=archive(*members))
    assert (workdir / "secret").read_text() == "secret" and os.stat(workdir / "secret").st_nlink == 1
    assert sorted(os.listdir(workdir)) == ["secret", "to"] and not os.path.exists(workdir / "to/dev")


def test_a_source_sends_nothing_but_what_was_asked_for(client, workdir):
    """A target that answers with other names than that of the source."""
    (workdir / "to").mkdir()
    (workdir / "evil.tar").write_bytes(archive(("wanted", FILE, b"w"), (".profile", FILE, b"evil"), ("wanted2", FILE, b"x")))
    done = cli(client, "transfer", "take", "-", str(workdir / "to"), "wanted", input=(workdir / "evil.tar").read_bytes())
    assert done.returncode == 1 and "not asked for" in done.stderr and os.listdir(workdir / "to") == ["wanted"]


@pytest.mark.parametrize("seed", range(20))
def test_damaged_streams(client, workdir, seed):
    """Any bytes: an error or a result, and nothing outside."""
    pick = random.Random(seed)
    make_tree(workdir / "tree")
    whole = bytearray(cli(client, "cp", "-a", str(workdir / "tree"), "-", raw=True).stdout)
    (workdir / "to").mkdir()
    before = facts(workdir / "tree")
    for _ in range(15):
        data = bytearray(whole)
        for _ in range(pick.randrange(1, 30)):
            at = pick.choice([pick.randrange(len(data)), pick.randrange(min(len(data), 20000))])
            data[at] = pick.randrange(256)
            if pick.random() < 0.5:  # so that the header is looked into
                block = at // 512 * 512
                head = data[block:block + 512]
                head[148:156] = b" " * 8
                data[block + 148:block + 156] = b"%06o\0 " % sum(head)
        if pick.random() < 0.3:
            del data[pick.randrange(len(data)):]
        done = cli(client, "cp", "-r", "-", str(workdir / "to"), input=bytes(data))
        assert done.returncode in (0, 1), done
        assert not leftovers(workdir / "to")
    assert sorted(os.listdir(workdir)) == ["to", "tree"] and facts(workdir / "tree") == before


def test_a_stream_that_breaks_off_leaves_the_old(client, workdir):
    os.makedirs(workdir / "to")
    (workdir / "to/f").write_text("old")
    whole = archive(("f", FILE, b"n" * 100_000), ("g", FILE, b"x"))
    for n in (0, 1, 511, 512, 5000, 100_000, len(whole) - 12_000):
        done = cli(client, "cp", "-", str(workdir / "to"), input=whole[:n])
        assert done.returncode == 1 and "ended before its end" in done.stderr, (n, done)
        assert os.listdir(workdir / "to") == ["f"] and (workdir / "to/f").read_text() == "old"


def test_links_that_are_planted_meanwhile_lead_nowhere(client, workdir):
    """Somebody exchanges a directory of the destination by a link out of it, all the time."""
    (workdir / "outside").mkdir()
    src, to = workdir / "src", workdir / "to"
    for d in range(40):
        os.makedirs(src / f"d{d}/e")
        for f in range(8):
            (src / f"d{d}/e/f{f}").write_text("x")
    to.mkdir()
    stop = threading.Event()

    def exchange():
        pick = random.Random(1)
        while not stop.is_set():
            at = to / f"src/d{pick.randrange(40)}"
            with contextlib.suppress(OSError):
                at = pick.choice([at, at / "e"])
                os.rename(at, workdir / f"aside{pick.random()}")
                os.symlink(workdir / "outside", at)

    thread = threading.Thread(target=exchange)
    thread.start()
    try:
        for _ in range(10):
            cli(client, "cp", "-r", str(src), str(to))
    finally:
        stop.set()
        thread.join()
    assert os.listdir(workdir / "outside") == []


@pytest.mark.parametrize("who", ["cp", "all"])
def test_killed_at_any_moment(copies, workdir, who):
    """The old one or the new one of each file, and nothing else."""
    src, to = workdir / "src", workdir / "to"
    os.makedirs(src)
    sizes = [0, 10, 5000, 200_000, 3_000_000]
    old = {f"f{i}": b"o" * sizes[i % 5] for i in range(40)}
    new = {f"f{i}": b"n" * (sizes[i % 5] + 1) for i in range(40)}
    for name, data in new.items():
        (src / name).write_bytes(data)
    pick = random.Random(who)
    for _ in range(12):
        to.mkdir(exist_ok=True)
        for name, data in old.items():
            (to / name).write_bytes(data)
        words = ("--dir", str(copies.dir)) if copies.remote else ()
        process = copies.client.popen("cp", "-r", *words, f"{src}/.", copies.there(to), start_new_session=who == "all")
        time.sleep(pick.random() * (0.3 if copies.remote else 0.05))
        if who == "all" and not copies.remote:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
        process.wait(HANG)
        wait_until(lambda: not _writes_to(to), "those who write to have ended")
        found = {name: (to / name).read_bytes() for name in os.listdir(to) if ".toolbox-edit-" not in name}
        assert found.keys() == new.keys()
        assert [name for name, data in found.items() if data not in (old[name], new[name])] == []
        assert len(leftovers(to)) <= (who == "all")  # between two calls of the kernel, where all die at once
        for name in leftovers(to):
            os.unlink(name)


def _writes_to(folder):
    """Processes of ours that still take a stream into it."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            words = open(f"/proc/{pid}/cmdline", "rb").read().split(b"\0")
            if os.fsencode(folder) in b" ".join(words) and b"take" in words and open(f"/proc/{pid}/stat").read().split()[2] != "Z":
                return True
    return False


# ---- sync ----


def test_sync_sends_what_differs(copies, tree, workdir):
    to = copies.there(workdir / "to")
    (tree / "locked").chmod(0o700)
    assert copies.run("sync", tree, to)["ok"]
    assert facts(workdir / "to") == facts(tree)
    told = copies.run("sync", tree, to)
    assert (told["files"], told["links"], told["others"], told["bytes"], told["deleted"]) == (0, 0, 0, 0, 0)
    (tree / "a").unlink()
    (tree / "new").write_text("new")
    (tree / "large").write_bytes(b"small")
    os.chmod(tree / "none", 0o600)
    told = copies.run("sync", tree, to)
    assert told["files"] == 3 and (workdir / "to/a").exists()
    told = copies.run("sync", "--delete", tree, to)
    assert told["deleted"] == 1 and facts(workdir / "to", times=False).keys() == facts(tree).keys()


def test_sync_deletes_no_more_than_it_should(copies, workdir):
    src, to = workdir / "src", workdir / "to"
    for at in (src / "kept", to / "gone/deep", to / "gone2/keep.log", to / "kept"):
        at.mkdir(parents=True)
    for at in (src / "kept/f", to / "gone/deep/f", to / "gone2/g", to / "x.log", to / "kept/y.log", to / "dir is file here"):
        at.write_text("x")
    (src / "dir is file here").mkdir()
    (src / "dir is file here/f").write_text("x")
    (to / "file is dir here/d").mkdir(parents=True)
    (to / "file is dir here/d/f").write_text("x")
    (src / "file is dir here").write_text("x")
    copies.run("sync", "--delete", "--exclude", "*.log", src, copies.there(to))
    found = sorted(str(p.relative_to(to)) for p in to.rglob("*"))
    assert found == ["dir is file here", "dir is file here/f", "file is dir here", "gone2", "gone2/keep.log", "kept", "kept/f",
                     "kept/y.log", "x.log"]
    cli(copies.client, "sync", "--delete", str(workdir / "missing"), copies.there(to))  # deletes nothing
    assert sorted(str(p.relative_to(to)) for p in to.rglob("*")) == found


@pytest.mark.parametrize("seed", range(6))
def test_sync_of_random_trees(client, workdir, seed):
    pick = random.Random(seed)
    names = ["a", "a-b", "a.b", "b", "a b", "ü", "a\n", "-x"]

    def change(at, depth=0):
        at.mkdir(exist_ok=True)
        for name in pick.sample(names, 4):
            path = at / name
            if path.is_dir() and not path.is_symlink():
                if pick.random() < 0.6:
                    change(path, depth + 1)
                    continue
                subprocess.run(["rm", "-rf", "--", path], check=True)
            elif os.path.lexists(path):
                path.unlink()
            kind = pick.random()
            if kind < 0.3 and depth < 4:
                change(path, depth + 1)
            elif kind < 0.4:
                path.symlink_to(pick.choice(["a", "../b", "/"]))
            elif kind < 0.45:
                os.mkfifo(path)
            elif kind < 0.9:
                path.write_bytes(pick.randbytes(pick.choice([0, 5, 5000])))

    for _ in range(8):
        change(workdir / "src")
        change(workdir / "to")
        done = cli(client, "sync", "--delete", str(workdir / "src"), str(workdir / "to"))
        assert done.returncode == 0, done
        assert facts(workdir / "to") == facts(workdir / "src")


@contextlib.contextmanager
def watching(copies, *words):
    process = copies.client.popen("sync", "--watch", "--json", *map(str, words), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=HANG)


def test_watch_goes_on(copies, workdir):
    src, to = workdir / "src", workdir / "to"
    src.mkdir()
    (src / "f").write_text("1")
    words = ("--dir", copies.dir) if copies.remote else ()
    with watching(copies, "--delete", "--exclude", "*.tmp", *words, src, copies.there(to)):
        wait_until(lambda: (to / "f").exists(), "the first time")
        (src / "f").write_text("2")
        wait_until(lambda: (to / "f").read_text() == "2", "an edit")
        (src / "d/e").mkdir(parents=True)
        (src / "d/e/g").write_text("g")
        (src / "x.tmp").write_text("x")
        wait_until(lambda: (to / "d/e/g").exists() and (to / "d/e/g").read_text() == "g", "a new directory")
        (src / "d").rename(src / "moved")
        wait_until(lambda: (to / "moved/e/g").exists() and not (to / "moved/e/.x").exists(), "a directory that was moved")
        (src / "moved/e/h").write_text("h")
        wait_until(lambda: (to / "moved/e/h").exists(), "a file in that")
        os.chmod(src / "f", 0o600)
        wait_until(lambda: stat.S_IMODE(os.stat(to / "f").st_mode) == 0o600, "a mode")
        (src / "f").unlink()
        wait_until(lambda: not (to / "f").exists(), "a file that is gone")
        assert not (to / "x.tmp").exists()


def test_watch_misses_nothing(copies, workdir):
    """Many changes, faster than they are sent."""
    src, to = workdir / "src", workdir / "to"
    src.mkdir()
    words = ("--dir", copies.dir) if copies.remote else ()
    with watching(copies, "--delete", *words, src, copies.there(to)):
        wait_until(to.exists, "the first time")
        for i in range(300):
            at = src / f"d{i % 7}/e{i % 3}"
            at.mkdir(parents=True, exist_ok=True)
            (at / f"f{i}").write_text(str(i))
            if i % 5 == 0:
                (at / f"f{i}").unlink()
        wait_until(lambda: facts(to, times=False) == facts(src, times=False), "all of them")


# ---- containers ----


@pytest.mark.parametrize("root", ["debian", "scratch"])
def test_into_a_container_and_out_of_it(docker, toolbox, tree, workdir, root):
    """Neither tar nor a shell is needed there: debian has both, scratch nothing."""
    container = docker.start(roots.get(root), Options())
    (tree / "locked").chmod(0o700)

    def cp(*words):
        done = subprocess.run([toolbox, "cp", "-q", *map(str, words)], env=docker.env, capture_output=True, text=True, timeout=HANG)
        assert (done.returncode, done.stdout) == (0, ""), done

    try:
        cp("-a", tree, f"docker:{container.name}:/copy")
        cp("-a", f"docker:{container.name}:/copy", workdir / "back")
        assert facts(workdir / "back", owners=True) == facts(tree, owners=True)
        cp("-a", f"docker:{container.name}:/copy", f"docker:{container.name}:/again")
        cp("-a", f"docker:{container.name}:/again/.", workdir / "back2")
        assert facts(workdir / "back2", owners=True) == facts(tree, owners=True)
        (workdir / "hosts").write_text("127.0.0.1 here\n")
        cp(workdir / "hosts", f"docker:{container.name}:/etc/hosts")  # mounted by itself: its file stays
        assert container.run([BUSYBOX, "cat", "/etc/hosts"]).stdout == b"127.0.0.1 here\n"
    finally:
        container.destroy()
