"""What `make dist` makes, with a throwaway key: the folder, the self-contained program, the SBOM, other processors."""
import json
import os
import re
import shutil
import subprocess

import pytest

from harness import jobs, peers
from harness.client import Client
from harness.containers import REPO
from harness.machine import Emulated, Host
from harness.releases import ARCH, Key, listed, openssl, sha256

QEMU = {"amd64": "x86_64", "arm64": "aarch64", "armv7": "arm"}


@pytest.fixture(scope="module")
def key(tmp_path_factory):
    return Key(tmp_path_factory.mktemp("key"))


@pytest.fixture(scope="module")
def dist(key, tmp_path_factory):
    """A signed release of all architectures that there are compilers for ($TOOLBOX_DIST_ARCHES: of those)."""
    folder = tmp_path_factory.mktemp("dist")
    env = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL")}
    env.setdefault("TOOLBOX_CACHE", str(REPO / "build/cache"))
    arguments = [f"DIST={folder / 'dist'}", f"SIGN_KEY={key.private}", "BUILD=build/dist-test"]
    if env.get("TOOLBOX_DIST_ARCHES"):
        arguments.append(f"ARCHES={env['TOOLBOX_DIST_ARCHES']}")
    done = subprocess.run(["make", "dist", *arguments], cwd=REPO, env=env, text=True, capture_output=True, timeout=1800)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "dist"


def names(dist, end=""):
    return sorted(path for path in dist.glob(f"toolbox-[0-9]*-linux-*{end}") if path.name.endswith("-all") == bool(end))


@pytest.fixture
def program(dist):
    return next(path for path in names(dist) if path.name.endswith(f"-linux-{ARCH}"))


def test_a_key_that_is_none(workdir):
    """Before anything is built."""
    for content, says in (("no key", "is no private key"), (None, "is no private key")):
        path = workdir / "key"
        if content:
            path.write_text(content)
        done = subprocess.run(["make", "dist", f"SIGN_KEY={path}", f"DIST={workdir / 'dist'}"], cwd=REPO, capture_output=True,
                              text=True)
        assert done.returncode != 0 and says in done.stderr
        path.unlink(missing_ok=True)
    wrong = Key(workdir, "wrong", "secp384r1")
    done = subprocess.run(["make", "dist", f"SIGN_KEY={wrong.private}", f"DIST={workdir / 'dist'}"], cwd=REPO,
                          capture_output=True, text=True)
    assert done.returncode != 0 and "another curve than P-256" in done.stderr
    assert not (workdir / "dist").exists()


def test_sums_and_signature(dist, key):
    for folder in (dist / "wheels", dist):
        assert subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=folder, capture_output=True).returncode == 0
        openssl("dgst", "-sha256", "-verify", key.public, "-signature", folder / "SHA256SUMS.sig", folder / "SHA256SUMS")
        summed = {line.split()[1] for line in (folder / "SHA256SUMS").read_text().splitlines()}
        assert summed == {path.name for path in folder.iterdir() if path.is_file()} - {"SHA256SUMS", "SHA256SUMS.sig"}
    assert {"LICENSE", "LICENSE.cjson", "LICENSE.mbedtls", "LICENSE.musl"} < summed


def test_the_key_is_in_the_programs(dist, program):
    done = subprocess.run([program, "release", "verify", dist], capture_output=True, text=True)
    assert done.returncode == 0 and "SHA256SUMS.sig: signed by the key" in done.stdout, done.stdout


def test_no_private_key_in_the_release(dist, key):
    secret = subprocess.run(["openssl", "ec", "-in", key.private, "-outform", "DER"], capture_output=True).stdout[7:39]
    assert all(secret not in path.read_bytes() for path in dist.rglob("*") if path.is_file())


def test_the_self_contained_program_needs_nothing_else(dist, workdir):
    packed = next(path for path in names(dist, "-all") if f"-{ARCH}-" in path.name)
    shutil.copy(packed, workdir / "toolbox")
    found = listed(workdir / "toolbox")
    assert set(found) == {path.name.rsplit("-", 1)[1] for path in names(dist)}
    for path in names(dist):
        assert found[path.name.rsplit("-", 1)[1]]["sha256"] == sha256(path.read_bytes())


def test_the_size(dist, program):
    assert program.stat().st_size <= 1_048_576


def test_the_sbom(dist):
    validator = peers.folder("python-sbom") / "bin/pyspdxtools"
    sbom = next(dist.glob("*.spdx.json"))
    done = subprocess.run([validator, "--infile", sbom], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    document = json.loads(sbom.read_text())
    assert {package["name"] for package in document["packages"]} == {"toolbox", "cjson", "mbedtls", "musl"}
    sums = {file["fileName"][2:]: file["checksums"][1]["checksumValue"] for file in document["files"]}
    assert sums == {path.name: sha256(path.read_bytes()) for path in [*names(dist), *names(dist, "-all")]}


def check_edit(client, path):
    client.ed("create", path, file_text="one\n\ttwo\n")
    client.ed("str_replace", path, old_str="two", new_str="zwei")
    assert path.read_text() == "one\n\tzwei\n"
    client.ed("undo_edit", path)
    assert path.read_text() == "one\n\ttwo\n"


@pytest.mark.parametrize("arch", ["amd64", "arm64", "armv7", "i386", "ppc64le", "riscv64", "s390x"])
def test_every_processor(dist, arch, workdir):
    """probe, version, a session, an edit and a job."""
    if not any(path.name.endswith(f"-linux-{arch}") for path in names(dist)):
        pytest.skip(f"there is no compiler for {arch} here: scripts/setup dist")
    path = next(path for path in names(dist) if path.name.endswith(f"-linux-{arch}"))
    emulator = f"qemu-{QEMU.get(arch, arch)}-static"
    if arch != ARCH and not shutil.which(emulator):
        pytest.skip(f"no {emulator}")
    client = Client(Host() if arch == ARCH else Emulated(Host(), emulator), path, workdir / "server")
    try:
        found = client.probe()
        assert (found["arch"], found["sha256"], found["size"]) == (arch, sha256(path.read_bytes()), path.stat().st_size)
        assert found["build"] == listed(next(p for p in names(dist) if p.name.endswith(ARCH)))[arch]["build"]
        assert client.rpc("version") == found["version"]
        session = client.rpc("bash_session_new_session", {})["session_name"]
        done = client.rpc("bash_session_run", {"session_name": session, "command": "x=6; echo $((x*7)); (exit 3)", "timeout": 60})
        assert (done["state"], done["exit_code"], done["output"]) == ("completed", 3, "42\n")
        if arch != "s390x":  # its emulator leaves the nanoseconds of stat(2) unset, and so every file seems to change
            check_edit(client, workdir / "file")
        assert jobs.run(client, "echo job; exit 5") == (5, "job\n", "")
    finally:
        client.close()


@pytest.mark.parametrize("name", ["toolbox-v1", "inspect-sandbox-tools", "inspect-tool-support", "anything"])
def test_names_that_stay(dist, program, workdir, name):
    link = workdir / name
    link.symlink_to(program)
    request = '{"jsonrpc":"2.0","id":1,"method":"version"}'
    done = subprocess.run([link, "exec"], input=request, capture_output=True, text=True)
    assert re.search(r'"result":"\d+\.\d+\.\d+"', done.stdout)
