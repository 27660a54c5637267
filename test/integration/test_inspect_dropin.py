"""scripts/inspect-dropin, on a package that has what the script looks at."""
import fcntl
import gzip
import hashlib
import json
import os
import platform
import shutil
import subprocess
import tarfile
import tempfile
import threading
import time
from pathlib import Path

import pytest

from harness import roots
from harness.containers import REPO, Options
from harness.injection import Injector, prefix
from harness.server import request
from harness.users import needs_root

SCRIPT = REPO / "scripts/inspect-dropin"
ELF = b"\x7fELF original "
GZIP = gzip.compress(b"original tar")


@pytest.fixture
def release(workdir):
    """Both binaries, as far as the script looks: the heads of ELF files."""
    folder = workdir / "release"
    data = bytearray(b"\x7fELF" + bytes(60))
    for arch, machine in (("amd64", 62), ("arm64", 183)):
        data[18:20] = machine.to_bytes(2, "little")
        (folder / arch).mkdir(parents=True)
        (folder / arch / "toolbox").write_bytes(data)
    return folder


class Package:
    def __init__(self, venv, version, content=None, release="0.3.1"):
        self.venv, self.version = venv, version
        site = next((venv / "lib").glob("python3*")) / "site-packages"
        self.folder = site / "inspect_ai" / "binaries"
        self.text = site / "inspect_ai" / "tool" / "_sandbox_tools_utils" / "sandbox_tools_version.txt"
        for folder in (self.folder, self.text.parent, site / "inspect_ai.dist-info"):
            folder.mkdir(parents=True, exist_ok=True)
        (site / "inspect_ai" / "__init__.py").touch()
        (site / "inspect_ai.dist-info" / "METADATA").write_text(f"Metadata-Version: 2.1\nName: inspect_ai\nVersion: {release}\n")
        self.dist_info = site / "inspect_ai.dist-info"
        self.text.write_text(f"{version}\n")
        for arch in ("amd64", "arm64"):
            self.artefact(arch).write_bytes((content or (ELF if version < 19 else GZIP)) + arch.encode())

    def artefact(self, arch, libc="", suffix=""):
        return self.folder / f"inspect-sandbox-tools-{arch}{libc}-v{self.version}{suffix}"

    def sums(self):
        return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in self.folder.iterdir() if path.is_file()}


@pytest.fixture(scope="module")
def environment():
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", folder], check=True)
        yield Path(folder)


@pytest.fixture
def venv(environment):
    """One that has no package."""
    for left in environment.glob("lib/python3*/site-packages/inspect_ai*"):
        shutil.rmtree(left)
    return environment


@pytest.fixture
def dropin(venv, release):
    def run(*argv, code=0, env=None, venv=venv):
        where = ["--venv", venv] if venv else []
        done = subprocess.run([SCRIPT, "--release", release, *where, *argv], capture_output=True, text=True,
                              env={**os.environ, **(env or {})})
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    return run


def launcher(artefact):
    with tarfile.open(artefact, "r:gz") as tar:
        [member] = tar.getmembers()
        assert (member.name, member.mode, member.isreg()) == ("inspect-sandbox-tools", 0o755, True)
        return tar.extractfile(member).read()


def test_a_package_that_unpacks_a_tar(venv, dropin, release):
    package = Package(venv, 35)
    before = package.sums()
    assert "not installed" in dropin("status", code=3)
    dropin("install")
    for arch in ("amd64", "arm64"):
        for libc in ("", "-musl"):
            assert launcher(package.artefact(arch, libc)) == (release / arch / "toolbox").read_bytes()
            assert os.access(package.artefact(arch, libc), os.X_OK)
    after = package.sums()
    dropin("install")
    assert package.sums() == after and "installed" in dropin("status")
    dropin("uninstall")
    assert package.sums() == before and list(package.folder.glob(".*")) == []
    assert "not installed" in dropin("uninstall")


def test_a_package_that_runs_a_file(venv, dropin, release):
    package = Package(venv, 18)
    before = package.sums()
    dropin("install")
    assert package.artefact("amd64").read_bytes() == (release / "amd64/toolbox").read_bytes()
    assert not package.artefact("amd64", "-musl").exists()
    dropin("uninstall")
    assert package.sums() == before


def test_a_checkout_looks_for_names_of_its_own(venv, dropin):
    package = Package(venv, 35)
    (package.dist_info / "direct_url.json").write_text(json.dumps({"url": "file:///x", "dir_info": {"editable": True}}))
    dropin("install")
    launcher(package.artefact("arm64", "-musl", "-dev"))
    launcher(package.artefact("arm64"))
    dropin("uninstall")
    assert not package.artefact("arm64", "-musl", "-dev").exists()


@pytest.mark.parametrize("version, code", [(3, 1), (36, 1), (400, 1)])
def test_an_unknown_version_is_refused(venv, dropin, version, code):
    package = Package(venv, version)
    before = package.sums()
    said = dropin("install", code=code)
    assert f"tools version {version}" in said and "Nothing was changed" in said
    assert package.sums() == before and list(package.folder.glob(".*")) == []


def test_a_newer_version_can_be_tried(venv, dropin):
    package = Package(venv, 36)
    dropin("--try-unknown", "install")
    launcher(package.artefact("amd64"))
    dropin("uninstall")


def test_another_form_than_known_is_refused(venv, dropin):
    package = Package(venv, 35, content=ELF)
    before = package.sums()
    assert "not in the form" in dropin("install", code=1)
    assert package.sums() == before


def test_no_package_or_no_environment(venv, dropin, workdir):
    assert "no inspect_ai" in dropin("status", code=1)
    assert "can't be run" in dropin("install", code=1, venv=workdir / "nowhere")
    Package(venv, 35)
    dropin("install", venv=None, env={"VIRTUAL_ENV": str(venv)})
    assert "no inspect_ai" in dropin("status", code=1, venv=None, env={"VIRTUAL_ENV": "", "PATH": "/usr/bin:/bin"})


def test_usage(dropin):
    for argv in ([], ["remove"], ["make"], ["install", "folder"]):
        assert "usage:" in dropin(*argv, code=2)
    assert "usage:" in dropin("--help")


def test_a_release_that_is_not_whole(venv, dropin, release):
    package = Package(venv, 35)
    before = package.sums()
    shutil.copy(release / "amd64/toolbox", release / "arm64/toolbox")
    assert "no program for arm64" in dropin("install", code=1)
    (release / "arm64/toolbox").unlink()
    assert "is missing" in dropin("install", code=1)
    assert package.sums() == before and list(package.folder.glob(".*")) == []


def test_a_newer_toolbox_keeps_the_first_original(venv, dropin, release):
    package = Package(venv, 35)
    before = package.sums()
    dropin("install")
    with open(release / "amd64/toolbox", "ab") as file:
        file.write(b"newer")
    dropin("install")
    assert launcher(package.artefact("amd64")).endswith(b"newer")
    dropin("uninstall")
    assert package.sums() == before


def test_the_package_was_upgraded(venv, dropin):
    """pip removes the files that it has put there, and puts those of the new version."""
    old = Package(venv, 34)
    dropin("install")
    for arch in ("amd64", "arm64"):
        old.artefact(arch).unlink()
    new = Package(venv, 35)
    before = {name: total for name, total in new.sums().items() if "v35" in name}
    assert "not whole" in dropin("status", code=4)
    dropin("install")
    assert "installed" in dropin("status")
    dropin("uninstall")
    assert new.sums() == before


def test_the_package_was_installed_again(venv, dropin):
    Package(venv, 35)
    dropin("install")
    package = Package(venv, 35, content=GZIP + b"another ")
    before = {name: total for name, total in package.sums().items() if "musl" not in name}
    assert "foreign" in dropin("status", code=4)
    dropin("uninstall")
    assert package.sums() == before


def test_an_original_that_was_damaged_is_not_put_back(venv, dropin):
    package = Package(venv, 35)
    dropin("install")
    kept = package.folder / ".toolbox-dropin" / package.artefact("amd64").name
    kept.write_bytes(b"damaged")
    assert "damaged" in dropin("status", code=4)
    assert "--force-reinstall" in dropin("uninstall", code=1)
    launcher(package.artefact("amd64"))


def test_what_the_package_has_unpacked_is_not_believed(venv, dropin):
    """It keeps the uncompressed tar beside an artefact, and takes it from there for ever."""
    package = Package(venv, 35)
    cache = package.folder / f"{package.artefact('amd64').name}.tar"
    cache.write_bytes(b"unpacked from the original")
    dropin("install")
    assert not cache.exists()
    cache.write_bytes(b"unpacked from ours")
    dropin("uninstall")
    assert not cache.exists()


def test_files_that_are_shared_with_another_environment(venv, dropin, workdir):
    """Package managers link them from a cache: that must not change."""
    package = Package(venv, 35)
    shared = workdir / "cache"
    os.link(package.artefact("amd64"), shared)
    before = shared.read_bytes()
    dropin("install")
    dropin("uninstall")
    assert shared.read_bytes() == before == package.artefact("amd64").read_bytes()


def test_one_change_at_a_time(venv, dropin):
    package = Package(venv, 35)
    before = package.sums()
    folder = os.open(package.folder, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    threads = [threading.Thread(target=dropin, args=("install",)) for _ in range(3)]
    for thread in threads:
        thread.start()
    time.sleep(1)
    changed = package.sums() != before
    os.close(folder)
    for thread in threads:
        thread.join()
    assert not changed and "installed" in dropin("status")
    dropin("uninstall")
    assert package.sums() == before


def test_make_is_the_same_every_time(dropin, workdir, release):
    dropin("make", workdir / "one")
    dropin("make", workdir / "two")
    sums = (workdir / "one/SHA256SUMS").read_text()
    assert sums == (workdir / "two/SHA256SUMS").read_text() and len(sums.splitlines()) == 4
    subprocess.run(["sha256sum", "--quiet", "-c", "SHA256SUMS"], cwd=workdir / "one", check=True)
    dropin("--tools-version", "18", "make", workdir / "old")
    assert sorted(os.listdir(workdir / "old")) == ["SHA256SUMS", "inspect-sandbox-tools-amd64-v18", "inspect-sandbox-tools-arm64-v18"]
    assert "unknown" in dropin("--tools-version", "99", "make", workdir / "new", code=1)


# ---- the small program itself ----


@pytest.fixture
def small(workdir):
    """That of this tree, where it was built."""
    built = REPO / "build/guest" / {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), "") / "toolbox"
    if not built.is_file() or built.stat().st_mtime < max((REPO / name).stat().st_mtime for name in ("applets/main.c", "rpc/dispatch.c")):
        pytest.skip("the small program is not built here, or an older one is (make GUEST=1)")
    shutil.copy(built, workdir / "small")
    (workdir / "small").chmod(0o755)
    return workdir / "small"


@pytest.mark.parametrize("word", ["doctor", "inject", "cp", "file"])
def test_what_the_small_program_lacks_it_says(small, server_dir, word):
    done = subprocess.run([small, word], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and f"'{word}' is not in this small build" in done.stderr and "toolbox inject TARGET" in done.stderr
    assert "unknown applet 'nonsense'" in subprocess.run([small, "nonsense"], capture_output=True, text=True, timeout=60).stderr
    env = {**os.environ, "TOOLBOX_DIR": str(server_dir)}
    done = subprocess.run([small, "exec"], input=request("doctor"), capture_output=True, timeout=60, env=env)
    subprocess.run([small, "stop-server"], timeout=60, env=env, check=True)
    error = json.loads(done.stdout)["error"]
    assert error["code"] == -32601 and error["message"].startswith('Method not found: "doctor" ') and "small build" in error["message"]


@needs_root
def test_the_whole_program_is_the_doctor_beside_it(small, toolbox, namespaces):
    container = namespaces.start(roots.get("debian"), Options(files={"/opt/small": small}))
    injector, at = Injector(toolbox), f"exec:{prefix(container)}"
    try:
        def answer(method, params=None):
            return json.loads(container.run(["/opt/small", "exec"], stdin=request(method, params or {})).stdout)["result"]

        name = answer("bash_session_new_session")["session_name"]
        answer("bash_session_run", {"session_name": name, "command": "kept=1"})
        report = injector.call(at, "doctor")
        assert "terminal" in {check["name"] for check in report["checks"] if check["state"] == "works"}
        injector.eject(at)
        assert answer("bash_session_run", {"session_name": name, "command": "echo $kept"})["output"] == "1\n"
    finally:
        injector.run("eject", at)
        container.run(["/opt/small", "stop-server"])
        container.destroy()
