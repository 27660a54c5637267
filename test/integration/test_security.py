"""What docs/security.md promises, with a hostile eye; the rest is in the tests of the server, of users and of places."""

import json
import os
import shlex
import shutil
import socket
import stat
import subprocess

import pytest

from harness import processes
from harness.client import LIMIT, TOOLERR, RpcError
from harness.jobs import Job
from harness.server import only_server, request, socket_of
from harness.users import NOBODY_KNOWS, needs_root


def as_user(client, *argv, user=NOBODY_KNOWS):
    return client.machine.run(argv, user=user)


@needs_root
def test_another_user_reads_nothing(client, workdir):
    """Neither socket, log, history nor stored answers: not even their names."""
    client.new()
    client.run("echo secret")
    client.ed("create", workdir / "file", file_text="secret")
    client.answer("text_editor", {"command": "view", "path": str(workdir / "file")}, env={LIMIT: "100"})
    names = {path.name for path in client.dir.iterdir()}
    assert {"log", "undo", "answers"} <= names
    for path in [client.dir, *client.dir.rglob("*")]:
        assert stat.S_IMODE(path.lstat().st_mode) & 0o077 == 0, path
        assert as_user(client, "cat", path).returncode != 0
        assert as_user(client, "ls", path).returncode != 0
    with socket.socket(socket.AF_UNIX) as sock:
        done = as_user(client, "python3", "-c", f"import socket; socket.socket(socket.AF_UNIX).connect({str(socket_of(client.dir))!r})")
        assert b"PermissionError" in done.stderr
        sock.connect(str(socket_of(client.dir)))


# Adds a key to a session keyring of its own and runs a program, or says what key there is.
KEYS = """
import ctypes, os, sys
call, (add, keyctl) = ctypes.CDLL(None, use_errno=True).syscall, (int(word) for word in sys.argv[1].split(","))
if len(sys.argv) > 2:
    if call(keyctl, 1, None) < 0 or call(add, b"user", b"toolbox-test", b"secret", 6, -3) < 0:
        sys.exit("no keys: " + os.strerror(ctypes.get_errno()))
    os.execv(sys.argv[2], sys.argv[2:])
print("key" if call(keyctl, 10, -3, b"user", b"toolbox-test", 0) > 0 else "none")
"""
KEY_CALLS = {"x86_64": "248,250", "aarch64": "217,219"}.get(os.uname().machine)  # add_key, keyctl


@needs_root
def test_no_key_of_roots_is_another_users(client):
    """The kernel's session keyring goes to whatever its owner starts."""
    if not KEY_CALLS:
        pytest.skip("the numbers of the system calls are known for two machines alone")
    started = client.machine.run(["/usr/bin/python3", "-c", KEYS, KEY_CALLS, client.binary, "start-server"], env=client.env)
    if b"no keys" in started.stderr:
        pytest.skip(started.stderr.decode())
    assert started.returncode == 0, started
    look, user = ["/usr/bin/python3", "-c", KEYS, KEY_CALLS], str(NOBODY_KNOWS)
    for who, seen in (({}, "key\n"), ({"user": user}, "none\n")):
        assert Job(client, argv=look, **who).finish()[1] == seen
        assert client.run(shlex.join(look), session=client.new(**who))["output"] == seen


@needs_root
@pytest.mark.parametrize("what", ["directory", "symlink"])
def test_directory_exchanged_by_the_owner_of_its_parent(new_client, workdir, what):
    """The parent of root's directory is the adversary's: he can move it away, and put his own there."""
    mine = workdir / "mine"
    mine.mkdir()
    client = new_client(dir=mine / "server")
    client.new()
    name = socket_of(client.dir).name
    os.chown(mine, NOBODY_KNOWS, NOBODY_KNOWS)
    fake = ("import os, socket, sys; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(); print('up', flush=True)\n"
            "s.settimeout(20)\ntry:\n c = s.accept()[0]; print('got', c.recv(100))\nexcept TimeoutError: print('nothing')")
    script = f"cd {mine} && mv server away && mkdir -m 700 other && " + \
        ("ln -s other server" if what == "symlink" else "mv other server")
    assert as_user(client, "sh", "-c", script).returncode == 0
    listener = client.machine.popen(["python3", "-c", fake, f"{mine}/server/{name}"], user=NOBODY_KNOWS)
    try:
        assert listener.stdout.readline() == b"up\n"
        for command in ("exec", "start-server", "healthcheck"):
            done = client.cli(command, stdin=request("remote_version"))
            assert done.returncode == 1 and str(client.dir).encode() in done.stderr, done
    finally:
        listener.kill()
        assert b"got" not in listener.communicate()[0]
    # what was moved away ends: nobody can reach it
    processes.wait_until(lambda: not processes.servers(), "the server to end")
    subprocess.run(["rm", "-rf", mine / "server", mine / "away"], check=True)


def test_user_namespace(client):
    """Root of a user namespace of one user: he can be nobody else, and all else works."""
    enter = ["unshare", "--user", "--map-root-user"]
    if client.machine.run([*enter, "true"]).returncode != 0:
        pytest.skip("no user namespaces here")

    def rpc(method, **params):
        done = client.machine.run([*enter, client.binary, "exec"], stdin=request(method, params), env=client.env)
        assert done.returncode == 0, done
        return json.loads(done.stdout)
    assert "session_name" in rpc("bash_session_new_session")["result"]
    answer = rpc("bash_session_run", session_name="BashSession", command="id -u")
    assert answer["result"]["output"] == "0\n"
    for refused in (rpc("bash_session_new_session", user="nobody"), rpc("exec_remote_start", command="id", user="nobody"),
                    rpc("text_editor", command="create", path=f"{client.dir}/../new", file_text="x", _run_as_user="nobody")):
        assert refused["error"]["code"] == TOOLERR, refused
        assert "nobody" in refused["error"]["message"] or "65534" in refused["error"]["message"], refused
    assert not (client.dir.parent / "new").exists()
    done = client.machine.run([*enter, client.binary, "stop-server"], env=client.env)
    assert done.returncode == 0


@needs_root
def test_shared_directory_of_two_containers(client, apart, workdir, toolbox):
    """Two roots, one /tmp: each finds its own server, and neither ends or hears the other's."""
    answers = []
    for name in ("one", "two"):
        root = workdir / name
        (root / "tmp").mkdir(parents=True)
        shutil.copy(toolbox, root / "toolbox")
        shutil.copy(shutil.which("busybox"), root / "sh")
    shared = workdir / "shared"
    shared.mkdir(mode=0o1777)

    def inside(name, *words, stdin=b""):
        script = f'mount --bind {shared} {workdir}/{name}/tmp && exec chroot {workdir}/{name} /toolbox "$@"'
        return client.machine.run([*apart, "sh", "-c", script, "sh", *words], stdin=stdin)
    try:
        for name in ("one", "two", "one", "two"):
            answers.append(json.loads(inside(name, "exec", stdin=request("remote_version")).stdout)["result"])
        assert answers[0] == answers[2] != answers[1] == answers[3]
        assert inside("one", "stop-server").returncode == 0
        assert json.loads(inside("two", "exec", stdin=request("remote_version")).stdout)["result"] == answers[1]
        assert inside("two", "start-server", "--replace").returncode == 0
        assert only_server()
    finally:
        assert inside("one", "stop-server").returncode == inside("two", "stop-server").returncode == 0


@needs_root
def test_only_root_becomes_another(new_client):
    with pytest.raises(RpcError) as error:
        new_client(user=NOBODY_KNOWS).new(user="root")
    assert error.value.code == TOOLERR and "root" in error.value.message
