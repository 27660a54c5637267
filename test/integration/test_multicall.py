"""One binary, many names: which applet is meant, what is said about each, and what when that is not known."""

import json
import os
import platform
import re
import subprocess
import sys

import pytest

from harness.client import CHUNK, LIMIT, Client
from harness.machine import Host
from harness.processes import wait_until
from harness.server import SERVER, SESSION, kill_servers, only_server, quiet, request, titled
from harness.users import NOBODY_KNOWS, needs_root

needs_own_start = pytest.mark.skipif(platform.machine() != "x86_64" or "TOOLBOX_SANITIZED" in os.environ,
                                     reason="only the program for amd64 is relocated in two parts")
APPLETS = [
    "exec",
    "probe",
    "bash_session",
    "exec_remote",
    "text_editor",
    "mcp",
    "web_browser",
    "computer",
    "model_proxy",
    "file",
    "doctor",
    "inject",
    "eject",
    "call",
    "connect",
    "run",
    "confine",
    "policy",
    "shell",
    "forward",
    "cp",
    "sync",
    "settle",
    "transfer",
    "methods",
    "server",
    "start-server",
    "stop-server",
    "healthcheck",
    "status",
    "upgrade",
    "adopt",
    "release",
]
VERSION = request("version")
NAMES = ["inspect-sandbox-tools", "inspect-tool-support"]


def said(done, status=0):
    """What it printed; the other stream has to be silent."""
    assert done.returncode == status, done
    out, other = (done.stdout, done.stderr) if status == 0 else (done.stderr, done.stdout)
    assert other == b"", done
    return out.decode()


@pytest.fixture
def links(client, toolbox, workdir):
    """A folder of links, as --install makes it."""
    folder = workdir / "bin"
    folder.mkdir()
    assert said(client.cli("--install", "-s", folder)) == ""
    return folder


# ---- help ----


def test_alone_and_help(client):
    text = said(client.cli())
    for words in (["--help"], ["-h"], ["help"], ["help", "help"], ["help", "version"]):
        assert said(client.cli(*words)) == text
    assert "unknown applet 'exek'; did you mean 'exec'" in said(client.cli("help", "exek"), 2)
    listed = [line.split()[0] for line in text.partition("\nApplets (")[2].split("\n")[1:] if line]
    assert listed == APPLETS
    assert re.match(r"toolbox \d+\.\d+\.\d+: ", text) and "Usage: toolbox APPLET" in text


def test_list(client):
    assert said(client.cli("--list")).split("\n") == [*APPLETS, ""]


def test_version(client):
    version, build = re.fullmatch(
        r"toolbox (\d+\.\d+\.\d+) \(build ([0-9a-f]{16})\)\n", said(client.cli("--version"))
    ).groups()
    found = client.probe()
    assert (found["version"], found["build"]) == (version, build) and client.rpc("version") == version


@pytest.mark.parametrize("applet", APPLETS)
def test_usage_of(client, links, applet):
    text = said(client.cli(applet, "--help"))
    assert text.startswith(f"Usage: toolbox {applet}") and text.endswith("\n") and "\t" not in text
    assert said(client.cli(applet, "-h")) == said(client.cli("help", applet)) == text
    assert said(client.machine.run([links / applet, "--help"], env=client.env)) == text
    assert not client.dir.exists(), "help has started something"


# ---- the name that it is called by ----


def test_links(client, links):
    assert sorted(os.listdir(links)) == sorted([*APPLETS, "toolbox"])
    for applet in APPLETS:
        assert os.path.samefile(links / applet, client.binary)
    assert json.loads(said(client.machine.run([links / "exec"], stdin=VERSION, env=client.env)))["result"]
    found = json.loads(said(client.machine.run([links / "probe", "--json"], env=client.env)))
    assert found["path"] == client.binary
    started = client.machine.run([links / "start-server"], env=client.env)
    assert said(started) == ""
    assert (
        said(client.machine.run(["sh", "-c", f"cd {links} && PATH=.:$PATH stop-server"], env=client.env))
        == ""
    )
    assert not titled(SERVER)


def test_any_other_name_is_the_program(client, workdir):
    for name in ("toolbox", "toolbox-0.1", "tb", "exec.old", "a b", "é"):
        (workdir / name).symlink_to(client.binary)
        assert said(client.machine.run([workdir / name, "--list"])).split() == APPLETS
        assert json.loads(said(client.machine.run([workdir / name, "exec"], stdin=VERSION)))["id"] == 1


def test_odd_argument_zero(client):
    for name in ("", "/", "exec/", "x" * 5000, "\udcff"):
        done = subprocess.run([name, "--list"], executable=client.binary, capture_output=True)
        assert said(done).split() == APPLETS
    done = subprocess.run(["/no/such/exec"], executable=client.binary, input=VERSION, capture_output=True)
    assert json.loads(said(done))["id"] == 1


def test_server_of_a_short_name(client, workdir):
    """Its title is written over the arguments, however few they are; the environment stays whole."""
    (workdir / "t").symlink_to(client.binary)
    first = {"A": "1", **client.env, "Z": "last"}
    done = subprocess.run(
        ["./t", "exec"],
        env=first,
        input=request("bash_session_new_session"),
        cwd=workdir,
        capture_output=True,
    )
    client.session = json.loads(said(done))["result"]["session_name"]
    assert "1-last" in client.bs("echo $A-$Z\n")
    done = subprocess.run(["t", "stop-server"], executable=client.binary, env=client.env, capture_output=True)
    assert said(done) == "" and not titled(SERVER)
    done = subprocess.run(
        ["t", "start-server"], executable=client.binary, env=client.env, capture_output=True
    )
    assert said(done) == ""
    kill_servers()


@pytest.mark.parametrize("name", NAMES)
def test_names_of_other_tool_servers(client, workdir, name):
    (workdir / name).symlink_to(client.binary)
    run = Client(Host(), workdir / name, client.dir)
    assert said(run.cli("--list")).split() == APPLETS
    assert run.rpc("version") == client.rpc("version")
    for words in (["post-install"], ["post-install", "--no-web-browser"]):
        assert said(run.cli(*words)) == ""
    assert said(run.cli("start-server")) == ""
    assert run.rpc("remote_version") == client.rpc("remote_version")
    assert run.cli("healthcheck").returncode == 0
    # Their hosts that know of pieces set the variable; the others get an answer of any length whole.
    for limit, whole in ((None, True), ("70000", False), ("0", False)):
        read = {"session_name": quiet(client, "x" * 150_000), "wait_for_output": 1, "idle_timeout": 0.1}
        answer = run.answer("bash_session", read, env={} if limit is None else {LIMIT: limit})
        assert (answer.get("result") == "x" * 150_000) == whole and (CHUNK in answer) != whole


# ---- what is not known ----


@pytest.mark.parametrize(
    "word, near",
    [
        ("prob", "probe"),
        ("porbe", "probe"),
        ("Exec", "exec"),
        ("start_server", "start-server"),
        ("bash-session", "bash_session"),
        ("stopserver", "stop-server"),
        ("frobnicate", None),
        ("", None),
        ("x" * 3000, None),
        ("--lst", "--list"),
        ("--verison", "--version"),
        ("--Help", "--help"),
        ("--instal", "--install"),
        ("-x", None),
        ("--frobnicate", None),
        ("--dash", None),
    ],
)
def test_unknown_applet_or_option(client, word, near):
    text = said(client.cli(word), 2)
    kind = "option" if word.startswith("-") else "applet"
    assert text.startswith(f"toolbox: unknown {kind} '{word}'") and "Try 'toolbox --help'." in text
    assert re.findall(r"did you mean '(.*?)'\?", text) == ([near] if near else [])


@pytest.mark.parametrize("applet", APPLETS)
@pytest.mark.parametrize("word", ["--frobnicate", "-Z", "--", "-"])
def test_unknown_option_of(client, applet, word):
    if (applet, word) in (("server", "--"), ("model_proxy", "--")):
        pytest.skip("it serves, and doesn't end")
    done = client.cli(applet, word)
    if done.returncode == 0 and word in ("--", "-"):
        pytest.skip("the applet knows it")
    text = said(done, 2)
    assert text.startswith(f"toolbox {applet}: ") and f"Try 'toolbox {applet} --help'." in text
    assert not client.dir.exists(), "has started something"


@pytest.mark.parametrize("applet", ["probe", "server", "start-server", "stop-server", "healthcheck", "methods"])
def test_unknown_argument_of(client, applet):
    assert "'now'" in said(client.cli(applet, "now"), 2)
    assert not client.dir.exists()


def test_too_many_arguments_of_exec(client):
    assert "one request at most" in said(client.cli("exec", "{}", "{}"), 2)


# ---- links ----


def test_install_again(client, links):
    before = {name: os.readlink(links / name) for name in os.listdir(links)}
    assert set(before.values()) == {client.binary}
    assert said(client.cli("--install", "-s", links)) == ""
    assert {name: os.readlink(links / name) for name in os.listdir(links)} == before


def test_install_hard_links(client, toolbox):
    folder = toolbox.parent / "links"
    folder.mkdir()
    try:
        assert said(client.cli("--install", folder)) == ""
        assert {os.stat(folder / name).st_ino for name in APPLETS} == {os.stat(toolbox).st_ino}
        assert said(client.cli("--install", folder)) == ""
        assert json.loads(said(client.machine.run([folder / "exec"], stdin=VERSION)))["id"] == 1
    finally:
        for name in os.listdir(folder):
            (folder / name).unlink()
        folder.rmdir()


def test_install_where_something_is_in_the_way(client, workdir):
    folder = workdir / "bin"
    folder.mkdir()
    (folder / "exec").write_text("mine")
    (folder / "probe").symlink_to("dangling")
    (folder / "server").mkdir()
    text = said(client.cli("--install", "-s", folder), 1)
    for name in ("exec", "probe", "server"):
        assert f"{folder}/{name}: " in text
    assert (folder / "exec").read_text() == "mine" and os.readlink(folder / "probe") == "dangling"
    assert sorted(os.listdir(folder)) == sorted([*APPLETS, "toolbox"])


def test_install_wrong_use(client, workdir):
    for words in ([], ["-s"], ["a", "b"], ["-s", "a", "b"], ["--soft", workdir]):
        text = said(client.cli("--install", *words), 2)
        assert "--install" in text
    assert said(client.cli("--install", "-s", workdir / "missing"), 1).count(f"{workdir}/missing: No such file") == 1
    assert os.listdir(workdir) == []


@needs_root
def test_install_without_permission(client, workdir):
    workdir.chmod(0o755)
    assert "ermission denied" in said(client.cli("--install", "-s", workdir, user=NOBODY_KNOWS), 1)
    assert os.listdir(workdir) == []


# ---- standard descriptors that are not there, or refuse ----

PRINTS = [
    [],
    ["--list"],
    ["--version"],
    ["exec", VERSION.decode()],
    ["probe"],
    ["probe", "--json"],
    ["healthcheck"],
    *([applet, "--help"] for applet in APPLETS),
]


@pytest.mark.parametrize("words", PRINTS, ids=" ".join)
def test_output_that_cannot_be_written(client, words):
    """It fails and says so, whether the disk is full, there is no standard output or its reader has gone."""
    with open("/dev/full", "wb") as full:
        done = client.machine.popen([client.binary, *words], env=client.env, stdout=full)
        _, err = done.communicate()
        assert done.returncode == 1 and b"No space left" in err, err
    done = client.cli(*words, preexec_fn=lambda: os.close(1))
    assert done.returncode == 1 and b"toolbox" in done.stderr, done


@pytest.mark.parametrize("words", [["exec"], ["probe", "--json"], ["--help"]])
def test_reader_has_gone(client, words):
    read, write = os.pipe()
    os.close(read)
    done = client.machine.popen([client.binary, *words], env=client.env, stdout=write)
    os.close(write)
    _, err = done.communicate(VERSION)
    assert done.returncode in (1, -13), (done.returncode, err)


def test_closed_standard_input(client):
    done = client.cli("exec", preexec_fn=lambda: os.close(0))
    assert "cannot read stdin" in said(done, 1)
    assert json.loads(said(client.cli("exec", VERSION.decode(), preexec_fn=lambda: os.close(0))))["id"] == 1


def test_closed_standard_error(client):
    done = client.cli("frobnicate", preexec_fn=lambda: os.close(2))
    assert (done.returncode, done.stdout) == (2, b"")
    assert json.loads(said(client.cli("exec", stdin=VERSION, preexec_fn=lambda: os.close(2))))["id"] == 1


def test_all_closed(client):
    def close():
        os.closerange(0, 3)

    for words, status in (
        (["--help"], 1),
        (["frobnicate"], 2),
        (["exec"], 1),
        (["start-server"], 0),
        (["stop-server"], 0),
    ):
        assert client.cli(*words, preexec_fn=close).returncode == status, words


def test_nothing_but_the_arguments(client):
    """No environment at all, not even a path."""
    done = subprocess.run([client.binary, "exec"], env={}, input=VERSION, capture_output=True)
    assert json.loads(said(done))["id"] == 1
    done = subprocess.run(
        [client.binary, "start-server"], env={"TOOLBOX_DIR": str(client.dir)}, capture_output=True
    )
    assert said(done) == ""
    pid = only_server()
    client.new()
    assert "42" in client.bs("echo $((6*7))\n")
    client.stop()
    wait_until(lambda: not os.path.exists(f"/proc/{pid}"), "the server to end")


# ---- what is relocated when --------------------------------------------------------------------------------


COUNT_FAULTS = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt)
"""


def _faults(*command):
    """The fewest page faults of three runs."""
    return min(int(subprocess.run([sys.executable, "-c", COUNT_FAULTS, *command], check=True, capture_output=True).stdout)
               for _ in range(3))


@needs_own_start
@pytest.mark.parametrize("name", ["toolbox", *NAMES])
def test_a_short_call_leaves_the_tables_of_other_applets_alone(toolbox, workdir, name):
    program = workdir / name
    program.symlink_to(toolbox)
    every = _faults(program, "--list")
    if every < 15:
        pytest.skip("the kernel tells no page faults")
    assert _faults(program, "exec", "version") <= every - 8


@needs_own_start
@needs_root
def test_tables_are_read_only_in_what_stays(client):
    """They hold the addresses of functions. Of the program's file just the page of variables is writable."""
    client.new()
    wait_until(lambda: titled(SERVER) and titled(SESSION), "both")
    for process in titled(SERVER) + titled(SESSION):
        maps = [line.split() for line in open(f"/proc/{process.pid}/maps") if line.endswith("/toolbox\n")]
        sizes = {words[1]: int(words[0].split("-")[1], 16) - int(words[0].split("-")[0], 16) for words in maps}
        assert list(sizes) == ["r-xp", "r--p", "rw-p"] and sizes["rw-p"] <= 8192 < sizes["r--p"], maps
