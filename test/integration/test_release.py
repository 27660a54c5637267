"""Which binary is this release's: `release list`, `verify` and `path`, and what is refused."""
import json
import os
import re
import shutil
import subprocess

import pytest

from harness import releases
from harness.releases import ARCH, OTHER, Key, Release, listed, pack, sha256


@pytest.fixture(scope="module")
def release(toolbox):
    return Release(toolbox)


@pytest.fixture
def folder(release, workdir):
    """A release's folder."""
    release.write(workdir / "release")
    return workdir / "release"


@pytest.fixture
def program(release, folder):
    return folder / release.name(ARCH)


@pytest.fixture
def alone(release, workdir):
    """The release's program with nothing beside it."""
    (workdir / "alone").mkdir()
    path = workdir / "alone" / "toolbox"
    path.write_bytes(release.files[release.name(ARCH)])
    path.chmod(0o755)
    return path


def run(program, *argv, **env):
    full = {name: value for name, value in os.environ.items() if name != "TOOLBOX_RELEASE_DIR"}
    return subprocess.run([str(program), "release", *map(str, argv)], capture_output=True, text=True, timeout=60,
                          env={**full, **{name: str(value) for name, value in env.items()}})


def refused(done, *says):
    assert done.returncode == 1, done
    for text in says:
        assert re.search(text, done.stderr), done.stderr
    return done


# ---- where they are found ----------------------------------------------------------------------------------


def test_beside_the_program(release, program):
    found = listed(program)
    assert set(found) == {ARCH, OTHER, "riscv64"}
    for arch, entry in found.items():
        data = release.files[release.name(arch)]
        assert (entry["size"], entry["sha256"]) == (len(data), sha256(data))
        assert entry["path"] == str(program.parent / release.name(arch)) and not entry["packed"]
    assert found[ARCH]["build"] == subprocess.run([program, "--version"], capture_output=True,
                                                  text=True).stdout.split("build ")[1].rstrip(")\n")
    assert len({entry["build"] for entry in found.values()}) == 3


def test_the_build_id_of_another_architecture_is_its_own(program):
    """Where the other architecture's binary was built, it must say what the list says."""
    other = releases.Path(__file__).parents[2] / "build" / OTHER / "build_id"
    own = releases.Path(__file__).parents[2] / "build" / ARCH / "build_id"
    if not other.exists() or other.read_text().split()[0] != own.read_text().split()[0]:
        pytest.skip("not built from the same sources: make ARCH=…")
    entries = listed(program)
    if entries[ARCH]["build"] != own.read_text().split()[1]:
        pytest.skip("the binary under test is another than this tree's")
    assert entries[OTHER]["build"] == other.read_text().split()[1]


def test_in_the_folder_of_the_variable(release, folder, alone):
    assert set(listed(alone)) == {ARCH}
    assert set(listed(alone, {**os.environ, "TOOLBOX_RELEASE_DIR": str(folder)})) == {ARCH, OTHER, "riscv64"}
    done = run(alone, "path", OTHER, TOOLBOX_RELEASE_DIR=folder)
    assert done.stdout == f"{folder / release.name(OTHER)}\n"


def test_nowhere(release, alone):
    done = refused(run(alone, "path", "s390x"), "no toolbox-.*-linux-s390x here", "not set", str(alone.parent))
    assert "TOOLBOX_RELEASE_DIR" in done.stderr
    refused(run(alone, "path", "vax"), "no toolbox-.*-linux-vax here")
    for word in ("", "../x", "AMD64", "x" * 50, "a\nb"):
        refused(run(alone, "path", word), "is no architecture")


def test_packed_into_the_program(release, workdir):
    self_contained = workdir / "all"
    self_contained.write_bytes(pack(release.files))
    self_contained.chmod(0o755)
    found = listed(self_contained)
    assert set(found) == {ARCH, OTHER, "riscv64"} and all(entry["packed"] for entry in found.values())
    for arch, entry in found.items():
        assert entry["sha256"] == sha256(release.files[release.name(arch)])
    refused(run(self_contained, "path", OTHER), "packed into .*--to")
    (workdir / "to").mkdir()
    for arch in found:
        done = run(self_contained, "path", "--to", workdir / "to", arch)
        written = workdir / "to" / release.name(arch)
        assert done.stdout == f"{written}\n" and written.read_bytes() == release.files[release.name(arch)]
        assert written.stat().st_mode & 0o777 == 0o755
    assert len(os.listdir(workdir / "to")) == 3
    assert run(self_contained, "path", "--to", workdir / "made", ARCH).returncode == 0, "the directory is made"
    refused(run(self_contained, "path", "--to", workdir / "nowhere/else", ARCH), "can't make the directory .*nowhere/else")
    # a wrong file in the folder doesn't matter: what is packed is right
    (workdir / release.name(OTHER)).write_bytes(b"wrong")
    assert listed(self_contained)[OTHER]["packed"]


def test_as_the_build_leaves_it(toolbox, release, folder, workdir):
    """Without sums: its own architecture from its own file, others from a release that it is itself part of."""
    assert set(listed(toolbox)) == {ARCH}
    assert listed(toolbox)[ARCH]["sha256"] == sha256(toolbox.read_bytes())
    env = {**os.environ, "TOOLBOX_RELEASE_DIR": str(folder)}
    assert set(listed(toolbox, env)) == {ARCH, OTHER, "riscv64"}
    assert listed(toolbox, env)[ARCH]["sha256"] == sha256(toolbox.read_bytes())

    other = workdir / "changed"
    other.write_bytes(toolbox.read_bytes() + b"x")
    other.chmod(0o755)
    done = refused(run(other, "path", OTHER, TOOLBOX_RELEASE_DIR=folder), "is of another build")
    assert sha256(other.read_bytes()) in done.stderr and sha256(toolbox.read_bytes()) in done.stderr
    (folder / release.name(OTHER)).write_bytes(b"no sums")
    refused(run(toolbox, "path", OTHER, TOOLBOX_RELEASE_DIR=folder), "can't be verified")


def test_a_program_that_was_removed_or_replaced(release, folder, program, workdir):
    """The file that runs counts, not the one that now has its name."""
    script = 'exec 3<&0; "$0" --version >/dev/null; cp "$0" "$1"; exec "$1" release list --json'
    done = subprocess.run(["sh", "-c", script, program, workdir / "copy"], capture_output=True, text=True)
    assert json.loads(done.stdout)[0]["path"] == str(workdir / "copy")


def test_without_proc(namespaces, release, workdir):
    from harness import roots
    from harness.containers import Options

    container = namespaces.start(roots.get("scratch"), Options(proc=False))
    try:
        path = workdir / "packed"
        path.write_bytes(pack(release.files))
        container.copy(path, "/opt/toolbox")
        done = container.run(["/opt/toolbox", "release", "list", "--json"])
        found = {entry["arch"]: entry for entry in json.loads(done.stdout)}
        assert found[OTHER]["sha256"] == sha256(release.files[release.name(OTHER)])
        assert found[ARCH]["path"] == "/opt/toolbox"
    finally:
        container.destroy()


# ---- what is refused ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["bit", "cut", "longer", "plain", "other", "empty"])
def test_a_changed_file(release, folder, program, how):
    path, data = folder / release.name(OTHER), release.files[release.name(OTHER)]
    record = data[-(len(data) - 50000 if OTHER != "riscv64" else 0):]
    changed = {"bit": bytes([data[5] ^ 1]).join((data[:5], data[6:])), "cut": data[:-1], "longer": data + b"\n",
               "plain": data[:-len(record)], "other": release.files[release.name("riscv64")], "empty": b""}[how]
    path.write_bytes(changed)
    done = refused(run(program, "path", OTHER), "isn't toolbox-|sums behind it", release.name(OTHER))
    if how == "bit":
        wanted = re.search(rf"([0-9a-f]{{64}})  {release.name(OTHER)}\n", data[-400:].decode()).group(1)
        assert wanted in done.stderr and len(set(re.findall("[0-9a-f]{64}", done.stderr))) == 2
    # it is final: no other place is looked at, and the list says so
    listing = run(program, "list", "--json")
    assert listing.returncode == 1 and "error" in {e["arch"]: e for e in json.loads(listing.stdout)}[OTHER]


def test_consistent_sums_of_another_release(toolbox, release, folder, program, workdir):
    """Everything fits together, only the program that asks isn't part of it."""
    theirs = Release(toolbox, others=(OTHER,))
    theirs.write(workdir / "theirs")
    shutil.copy(workdir / "theirs" / release.name(OTHER), folder)
    shutil.copy(workdir / "theirs" / "SHA256SUMS", folder)
    refused(run(program, "path", OTHER), "sums behind it aren't this release's")


def test_things_that_are_no_files(release, folder, program):
    path = folder / release.name(OTHER)
    path.unlink()
    path.mkdir()
    refused(run(program, "path", OTHER), "is no regular file")
    path.rmdir()
    os.mkfifo(path)
    refused(run(program, "path", OTHER), "is no regular file")
    path.unlink()
    path.symlink_to("/dev/zero")
    refused(run(program, "path", OTHER), "is no regular file")
    path.unlink()
    with open(path, "wb") as file:
        file.truncate(1 << 30)
    refused(run(program, "path", OTHER), "can't read")


def test_a_changed_program(release, workdir):
    """What is behind it says what it was."""
    data = bytearray(release.files[release.name(ARCH)])
    at = data.index(b"report on this binary")  # of a text: it runs all the same
    data[at] ^= 0x20
    for name, content in (("one", bytes(data)), ("all", pack({**release.files, release.name(ARCH): bytes(data)}))):
        path = workdir / name
        path.write_bytes(content)
        path.chmod(0o755)
        for command in (["path"], ["path", OTHER], ["verify"]):
            done = run(path, *command)
            assert done.returncode == 1
        refused(run(path, "path"), "isn't toolbox-", "the release's sums say")


@pytest.mark.parametrize("lines", [b"", b"rubbish\n", b"1 x\n", b"0 %s\n", b"999999999 %s\n", b"-1 %s\n", b"99999999999999999999 %s\n"])
def test_a_damaged_pack(release, workdir, lines):
    path = workdir / "all"
    own = release.name(ARCH)
    lines = lines.replace(b"%s", own.encode())
    path.write_bytes(release.files[own] + releases.mark("pack", lines))
    path.chmod(0o755)
    for command in (["path", ARCH], ["path", OTHER], ["list"], ["verify"]):
        assert run(path, *command).returncode in (0, 1)
    refused(run(path, "path", OTHER), "damaged|larger than|shorter than|isn't|can't be verified|no toolbox-")


# ---- verify ------------------------------------------------------------------------------------------------


def test_verify_a_folder(release, folder, program, workdir):
    key = Key(workdir)
    key.sign(folder)
    done = run(program, "verify", folder)
    assert done.returncode == 0 and "can't be checked without a key" in done.stdout
    done = run(program, "verify", "--key", key.public, "--json", folder)
    verdicts = {entry["name"]: entry for entry in json.loads(done.stdout)}
    assert done.returncode == 0 and all(entry["ok"] for entry in verdicts.values())
    assert "signed by the key" in verdicts["SHA256SUMS.sig"]["verdict"]
    assert set(release.files) < set(verdicts)

    (folder / release.name("riscv64")).unlink()
    assert "not there" in run(program, "verify", folder).stdout and run(program, "verify", folder).returncode == 0

    (folder / release.name(OTHER)).write_bytes(b"evil")
    done = run(program, "verify", folder)
    line = next(line for line in done.stdout.splitlines() if line.startswith("REFUSED"))
    assert done.returncode == 1 and sha256(b"evil") in line and sha256(release.files[release.name(OTHER)]) in line
    (folder / release.name(OTHER)).write_bytes(release.files[release.name(OTHER)])

    (folder / "toolbox-extra").write_text("")
    done = run(program, "verify", folder)
    assert done.returncode == 1 and "isn't in SHA256SUMS" in done.stdout
    (folder / "toolbox-extra").unlink()

    (folder / "SHA256SUMS").write_bytes((folder / "SHA256SUMS").read_bytes() + b"0" * 64 + b"  x\n")
    done = run(program, "verify", "--key", key.public, folder)
    assert done.returncode == 1 and "isn't one by this key" in done.stdout
    (folder / "SHA256SUMS.sig").unlink()
    assert run(program, "verify", "--key", key.public, folder).returncode == 1
    refused(run(program, "verify", workdir / "nowhere"), "can't open")
    refused(run(program, "verify", workdir), "can't read .*SHA256SUMS")


def test_verify_finds_a_release_with_new_sums(toolbox, release, folder, program, workdir):
    """An arm64 file and a SHA256SUMS to match, put beside a program that knows better."""
    Release(toolbox, others=(OTHER, "riscv64", "s390x")).write(workdir / "theirs")
    for name in (release.name(OTHER), "SHA256SUMS"):
        shutil.copy(workdir / "theirs" / name, folder)
    shutil.copy(workdir / "theirs" / release.name("riscv64"), folder)
    (folder / release.name(ARCH)).rename(workdir / "program")
    done = run(workdir / "program", "verify", folder)
    assert done.returncode == 1 and "sums behind it aren't this release's" in done.stdout


# ---- the command line --------------------------------------------------------------------------------------


@pytest.mark.parametrize("argv, says", [
    ([], "a command is missing"), (["lst"], "did you mean 'list'"), (["list", "x"], "takes no arguments, not 'x'"), (["path", "a", "b"], "one argument too many"),
    (["fetch"], "lacks an argument"), (["fetch", "--arch", "amd46", "https://x/"], "did you mean 'amd64'"),
    (["fetch", "--timeout", "0", "https://x/"], "takes a time from"), (["fetch", "--timeout", "1x", "https://x/"], "takes a time such as"),
    (["list", "--jsn"], "did you mean '--json'"), (["path", "--to"], "takes a value"),
])
def test_usage(toolbox, argv, says):
    done = run(toolbox, *argv)
    assert done.returncode == 2 and says in done.stderr


def test_a_full_standard_output(program):
    with open("/dev/full", "wb") as full:
        for command in (["list"], ["path"], ["verify", program.parent], ["list", "--json"]):
            done = subprocess.run([program, "release", *command], stdout=full, stderr=subprocess.PIPE, text=True)
            assert done.returncode == 1 and "cannot write" in done.stderr
