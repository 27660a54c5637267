"""What people install, as it is made: the same bytes twice, its manual and completions, install.sh. test_packages_installed.py installs it."""
import base64
import hashlib
import io
import os
import re
import shutil
import subprocess
import tarfile
import types
import zipfile

import pytest

from harness import needs, packages
from harness.containers import REPO
from harness.people import Person
from harness.releases import ARCH, Key

PAGES = ["toolbox-bash_session", "toolbox-inject", "toolbox"]


@pytest.fixture(scope="module")
def dist(toolbox, tmp_path_factory):
    return packages.of(toolbox, tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def share(toolbox, tmp_path_factory):
    """share/ of a prefix: manual and completions of the program under test."""
    prefix = tmp_path_factory.mktemp("prefix")
    packages.say(REPO / "scripts/manual", toolbox, prefix, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
    return prefix / "share"


# ---- packages ----


def test_made_twice_they_are_the_same(toolbox, tmp_path_factory, monkeypatch):
    one = packages.make(toolbox, tmp_path_factory.mktemp("one"))
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    before = os.umask(0o077)
    try:
        other = packages.make(toolbox, tmp_path_factory.mktemp("other"))
    finally:
        os.umask(before)
    for name in ("SHA256SUMS", "wheels/SHA256SUMS"):
        assert (one / name).read_text() == (other / name).read_text()


def test_every_kind_is_there(dist):
    names = sorted(path.name for path in dist.iterdir())
    version = packages.one(dist, f"toolbox-*-linux-{ARCH}").name.split("-")[1]
    for name in (f"toolbox_sandbox-{version}.tar.gz", f"toolbox_sandbox-{version}-py3-none-any.whl", f"toolbox-sandbox-{version}.tgz",
                 f"toolbox-sandbox-linux-{packages.CPU}-{version}.tgz", f"toolbox-sandbox_{version}_{ARCH}.deb", f"toolbox-{version}-oci.tar", "install.sh",
                 "toolbox.rb", f"toolbox-{version}-share.tar.gz"):
        assert name in names
    wheel = packages.one(dist, f"wheels/*_{packages.MACHINE}.whl").name
    assert wheel == f"toolbox_sandbox-{version}-py3-none-" + ".".join(f"{tag}_{packages.MACHINE}" for tag in ("manylinux_2_17", "manylinux2014", "musllinux_1_1")) + ".whl"
    for folder in (dist, dist / "wheels"):
        summed = {line.split()[1] for line in (folder / "SHA256SUMS").read_text().splitlines()}
        assert summed == {path.name for path in folder.iterdir() if path.is_file()} - {"SHA256SUMS", "SHA256SUMS.sig"}


def test_wheels_say_what_they_hold(dist):
    for path in dist.glob("**/*.whl"):
        with zipfile.ZipFile(path) as wheel:
            (record,) = [name for name in wheel.namelist() if name.endswith(".dist-info/RECORD")]
            told = dict(line.rsplit(",", 2)[:2] for line in wheel.read(record).decode().splitlines())
            assert set(told) == set(wheel.namelist())
            for name, digest in told.items():
                if name != record:
                    assert digest == "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(wheel.read(name)).digest()).rstrip(b"=").decode()
            sources = {name for name in wheel.namelist() if name.startswith("toolbox_sandbox/") and name.endswith((".py", "py.typed"))}
            there = {f"toolbox_sandbox/{path.name}" for path in (REPO / "clients/python/src/toolbox_sandbox").glob("*") if path.is_file()}
            assert sources == there
            entries = wheel.read(record.replace("RECORD", "entry_points.txt")).decode()
            assert "[inspect_ai]\ntoolbox_sandbox = toolbox_sandbox.inspect_provider\n" in entries
            assert "Provides-Extra: inspect\n" in wheel.read(record.replace("RECORD", "METADATA")).decode()


def test_the_program_in_each_is_the_one_of_the_release(dist):
    whole = packages.one(dist, f"toolbox-*-linux-{ARCH}-all").read_bytes()
    with zipfile.ZipFile(packages.one(dist, f"wheels/*_{packages.MACHINE}.whl")) as wheel:
        (name,) = [name for name in wheel.namelist() if name.endswith(".data/scripts/toolbox")]
        assert wheel.read(name) == whole and wheel.getinfo(name).external_attr >> 16 & 0o111
    with tarfile.open(packages.one(dist, f"toolbox-sandbox-linux-{packages.CPU}-*.tgz")) as tarball:
        assert tarball.extractfile("package/bin/toolbox").read() == whole
    deb = packages.one(dist, f"*_{ARCH}.deb").read_bytes()
    assert deb.startswith(b"!<arch>\ndebian-binary ")
    data = deb[deb.index(b"data.tar.gz") + 60:]
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as tarball:
        assert tarball.extractfile("./usr/bin/toolbox").read() == whole
        assert {"./usr/share/man/man1/toolbox.1.gz", "./usr/share/bash-completion/completions/toolbox", "./usr/share/zsh/vendor-completions/_toolbox",
                "./usr/share/fish/vendor_completions.d/toolbox.fish", "./usr/share/doc/toolbox-sandbox/copyright"} < set(tarball.getnames())


@needs.programs("ruby")
def test_the_formula_is_ruby(dist):
    assert "Syntax OK" in packages.say("ruby", "-c", dist / "toolbox.rb")
    assert hashlib.sha256(packages.one(dist, f"toolbox-*-linux-{ARCH}-all").read_bytes()).hexdigest() in (dist / "toolbox.rb").read_text()


# ---- install.sh ----


def install(dist, prefix, *options, env=None):
    return subprocess.run(["sh", dist / "install.sh", "--prefix", prefix, *options], capture_output=True, text=True, env=env)


def test_install_verifies_and_installs(dist, workdir):
    done = install(dist, workdir / "p")
    assert done.returncode == 0, done.stderr
    assert packages.say(workdir / "p/bin/toolbox", "--version") == packages.say(packages.one(dist, f"toolbox-*-linux-{ARCH}"), "--version")
    assert (workdir / "p/share/man/man1/toolbox.1").exists() and (workdir / "p/share/zsh/site-functions/_toolbox").exists()


def test_install_changes_nothing_where_it_says_so(dist, workdir):
    assert install(dist, workdir / "p", "--dry-run").returncode == 0
    done = install(dist, workdir / "p", "--wrong")
    assert (done.returncode, "--help" in done.stderr) == (2, True)
    assert not (workdir / "p").exists()
    assert "Example:" in packages.say("sh", dist / "install.sh", "--help")


def test_install_refuses_what_was_changed(dist, workdir):
    copy = workdir / "copy"
    shutil.copytree(dist, copy)
    packed = packages.one(copy, f"toolbox-*-linux-{ARCH}-all")
    packed.write_bytes(packed.read_bytes() + b"x")
    done = install(copy, workdir / "p")
    assert done.returncode == 1 and "SHA256SUMS says" in done.stderr and not (workdir / "p").exists()


@needs.programs("openssl")
def test_install_refuses_another_signature(toolbox, workdir, tmp_path_factory):
    key, other = Key(workdir), Key(workdir, "other")
    dist = packages.make(toolbox, tmp_path_factory.mktemp("signed"), PUBLIC_KEY=str(key.public))
    missing = install(dist, workdir / "p")
    assert missing.returncode == 1 and "SHA256SUMS.sig" in missing.stderr
    other.sign(dist)
    refused = install(dist, workdir / "p")
    assert refused.returncode == 1 and "not signed by the key" in refused.stderr and not (workdir / "p").exists()
    key.sign(dist)
    assert "the signature is right" in install(dist, workdir / "p", "--dry-run").stderr
    assert install(dist, workdir / "p", "--dry-run", "--key", other.public).returncode == 1


# ---- the manual ----


def test_a_page_for_each_applet_and_each_option_in_it(toolbox, share):
    applets = packages.say(toolbox, "--list").split()
    assert {path.name for path in (share / "man/man1").iterdir()} == {"toolbox.1", *(f"toolbox-{applet}.1" for applet in applets)}
    for applet in applets:
        page = (share / f"man/man1/toolbox-{applet}.1").read_text().replace("\\-", "-")
        told = packages.say(toolbox, "help", applet)
        commands = re.findall(r"^  ([a-z]+)\b", told.split("\n\n")[2], re.M) if " COMMAND [OPTION]" in told else []
        for text in [told, *(packages.say(toolbox, "help", applet, command) for command in commands)]:
            for option in re.findall(r"^  (?:-\w, )?(--[a-z-]+)", text, re.M):
                assert option in page, (applet, option)


@needs.programs("mandoc")
def test_the_manual_is_well_formed_for_mandoc(share):
    done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", *sorted((share / "man/man1").iterdir())], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, ""), done.stdout


@needs.programs("man", "groff")
@pytest.mark.parametrize("page", PAGES)
def test_the_manual_is_shown_by_man(share, page):
    env = {**os.environ, "LC_ALL": "C.UTF-8", "MANWIDTH": "80"}
    done = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", share / f"man/man1/{page}.1"], env=env, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "SYNOPSIS" in done.stdout
    assert page != "toolbox-inject" or ".da7be258e003d428 \\\n" in done.stdout  # an example of two lines, as it is typed


# ---- completions ----

# What is typed, and the words that a shell then runs. The last word is completed.
COMPLETED = [
    ("toolbox ca", "call"),
    ("toolbox bash_session int", "bash_session interrupt"),
    ("toolbox call loc", "call local:"),
    ("toolbox call local: bash_session_new", "call local: bash_session_new_session"),
    ("toolbox call local: bash_session_run sess", "call local: bash_session_run session_name="),
    ("toolbox call --user root local: bash_session_new", "call --user root local: bash_session_new_session"),
    ("toolbox inject --repl", "inject --replace"),
    ("toolbox server --log-level de", "server --log-level debug"),
    ("toolbox help exec_remote wa", "help exec_remote wait"),
    ("toolbox release fetch --arch ri", "release fetch --arch riscv64"),
    ("toolbox text_editor view uniq", "text_editor view uniquely"),
    ("toolbox call docker:w", "call docker:web"),
    ("toolbox cp uniq", "cp uniquely"),
    ("toolbox cp uniquely docker:w", "cp uniquely docker:web"),
]
DOCKER = "#!/bin/sh\n[ \"$1\" != ps ] || echo web\n"


@pytest.fixture
def places(toolbox, workdir):
    """A PATH on which toolbox is, and a docker that knows of one container; a folder with one file to complete."""
    for name in ("bin", "here"):
        (workdir / name).mkdir()
    (workdir / "here/uniquely").touch()
    (workdir / "bin/toolbox").symlink_to(toolbox)
    (workdir / "bin/docker").write_text(DOCKER)
    (workdir / "bin/docker").chmod(0o755)
    env = {**os.environ, "PATH": f"{workdir}/bin:{os.environ['PATH']}", "HOME": str(workdir), "TERM": "dumb", "PS1": "ready> ", "PROMPT": "ready> ", "TOOLBOX_DIR": f"{workdir}/server"}
    return types.SimpleNamespace(env=env, folder=workdir / "here")


def at(places, *argv):
    def popen(*words, **how):
        return subprocess.Popen(words, env=places.env, cwd=places.folder, **how)

    return Person(types.SimpleNamespace(popen=popen), *argv, cols=200)


def check_completed(person, setup):
    """The command is a function that shows its words, so that what was completed can be seen as it would be run."""
    person.sees("ready> ")
    person.type(f"{setup}\n")
    person.sees("ready> ")
    person.type('toolbox() { printf "<%s>" "$*"; }; echo defi""ned\n')
    person.sees("defined")
    person.sees("ready> ")
    for typed, run in COMPLETED:
        person.type(f"{typed}\t")
        person.sees(run.split(" ")[-1])
        person.type("\n")
        person.sees(f"<{run}>")
        person.sees("ready> ")
    person.type("exit\n")
    person.has_left()


@needs.programs("bash")
def test_completion_in_bash(places, share):
    with at(places, "bash", "--norc", "--noprofile", "-i") as person:
        check_completed(person, f"source {share}/bash-completion/completions/toolbox")


@needs.programs("bash")
def test_bash_shows_what_there_is(places, share):
    with at(places, "bash", "--norc", "--noprofile", "-i") as person:
        person.sees("ready> ")
        person.type(f"source {share}/bash-completion/completions/toolbox; PS1='now> '\n")
        person.sees("now> ")
        person.type("toolbox bash_session re\t\t")
        for word in ("read", "record", "replay", "resize", "restart"):
            person.sees(word)
        person.sees("now> ")


@needs.programs("bash")
def test_sessions_that_run_are_known(client, places, share):
    client.cli("bash_session", "new", "--shell", "/bin/sh")
    with at(places, "bash", "--norc", "--noprofile", "-i") as person:
        person.sees("ready> ")
        person.type(f"source {share}/bash-completion/completions/toolbox; PS1='now> '\n")
        person.sees("now> ")
        person.type("toolbox bash_session read B\t")
        person.sees("BashSession")


@needs.programs("zsh")
def test_completion_in_zsh(places, share):
    with at(places, "zsh", "-f", "-i") as person:
        check_completed(person, f"fpath=({share}/zsh/site-functions $fpath); autoload -Uz compinit; compinit -u -D; setopt nobeep; unset zle_bracketed_paste")


@needs.programs("fish")
def test_completion_in_fish(places, share):
    env = {**places.env, "XDG_DATA_DIRS": str(share), "XDG_CONFIG_HOME": str(places.folder.parent / "config")}
    for typed, run in COMPLETED:
        words = packages.say("fish", "-c", f"complete -C '{typed}'", env=env, cwd=places.folder).splitlines()
        assert run.split(" ")[-1] in [word.split("\t")[0] for word in words], typed


@needs.programs("fish")
def test_fish_has_only_what_fits(places, share):
    env = {**places.env, "XDG_DATA_DIRS": str(share), "XDG_CONFIG_HOME": str(places.folder.parent / "config")}

    def offered(typed):
        return {line.split("\t")[0] for line in packages.say("fish", "-c", f"complete -C '{typed}'", env=env, cwd=places.folder).splitlines()}

    assert offered("toolbox bash_session re") == {"read", "record", "replay", "resize", "restart"}
    assert offered("toolbox st") == {"start-server", "status", "stop-server"}
    assert "--speed" in offered("toolbox bash_session replay --") and "--speed" not in offered("toolbox bash_session run --")
