"""Fixtures of the integration tests, and the watch over what they leave behind.

Every test gets its binary, its server directory and its client fresh, and fails when a process of its survives it;
the whole suite fails when it has left a file in one of the places where the tool keeps things.
"""
import atexit
import contextlib
import os
import platform
import re
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest

from harness import containers, inherited, leftovers, mcp_client, needs, processes, roots, sandbox, users
from harness import docker as docker_engine
from harness.bridge import Bridge
from harness.client import Client
from harness.machine import Host
from harness.sessions import Shell, shared_server

# Found by all users, and gone at the end: the binary, server directories, all that tests write.
_BASE = Path(tempfile.mkdtemp(prefix="toolbox-test-", dir="/tmp"))
atexit.register(shutil.rmtree, _BASE)  # after what pytest has for the end, which looks into it


def pytest_addoption(parser):
    parser.addoption("--long", action="store_true", help="run also what LONG names: `make long`")
    parser.addoption("--short", action="store_true", help="only the short suite's part also of files that are named")
    parser.addoption("--lane", choices=(*LANES, "tools"), help="run one of three parts, which may run beside each other")


# Most tests wait for something most of the time, so parts of the suite run beside each other (scripts/test). Each lane has the
# files of which a part of their names stands here, "tools" all others. Those of "machines" wait for engines, images and other
# programs, which exist once on a machine: nothing else starts those. Those of "sessions" are most of what waits for promised times.
LANES = {"machines": ("test_client_", "test_containers", "test_demo", "test_getting_started", "test_in", "test_packages_installed", "test_release", "test_runtimes", "test_web_browser", "_peers"),
         "sessions": ("test_bash_session", "test_ends", "test_exec_remote", "test_upgrade")}


def _lane(item):
    return next((lane for lane, parts in LANES.items() if any(part in item.path.name for part in parts)), "tools")


# Files (parts of their names) of which the short suite takes every Nth test: what they hold is many shapes of one matter.
LONG = {"test_adapters": 2, "test_bash_session": 4, "test_call_once": 3, "test_client_inspect": 2, "test_client_python_hostile": 2, "test_client_python_versions": 1000, "test_computer": 3, "test_confine": 4, "test_cp": 2, "test_ends": 2, "test_exec_remote": 2, "test_hostile_places": 2, "test_inject": 4, "test_mcp_bridge": 3, "test_mcp_cli": 3, "test_mcp_peers": 2,
        "test_mcp_serve": 3, "test_model_proxy": 2, "test_multicall": 3, "test_packages_installed": 100, "test_release_fetch": 3, "test_release_dist": 100,
        "test_run.py": 2, "test_runtimes_all": 1000, "test_server.py": 2, "test_status": 2, "test_text_editor_faults": 3, "test_web_browser_peers": 100, "test_web_browser": 6}


def pytest_collection_modifyitems(config, items):
    """Named on the command line, a file is run whole; so is everything with --long."""
    if not os.path.exists("/proc/self/stat"):  # who runs, and who is left, is found there
        for item in items:
            item.add_marker(pytest.mark.skip(reason="/proc is not mounted here (mount -t proc proc /proc)"))
    for item in items:
        reason = sandbox.why_not(item)
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))
    lane = config.getoption("--lane")
    if lane:
        _deselect(config, items, lambda item: _lane(item) == lane)
    named = any("test_" in arg for arg in config.args) or config.getoption("keyword")
    if config.getoption("--long") or (named and not config.getoption("--short")):
        return
    seen, cases = {}, set()

    def is_short(item):
        every = next((n for part, n in LONG.items() if item.path.name.startswith(part)), 1)
        # the tests of listed cases are always there (of injection, where one takes long, a variation of each)
        number = seen[item.path.name] = seen.get(item.path.name, -1) + 1
        first = item.name.startswith("test_c1") and item.originalname not in cases
        cases.add(item.originalname)
        return every == 1 or number % every == 0 or item.name.startswith("test_c0") or first

    _deselect(config, items, is_short)


def _deselect(config, items, wanted):
    kept, left = [], []
    for item in items:
        (kept if wanted(item) else left).append(item)
    items[:] = kept
    config.hook.pytest_deselected(items=left)


def pytest_configure(config):
    _BASE.chmod(0o755)
    tempfile.tempdir = str(_BASE)
    inherited.reset()
    processes.become_init()
    # what has been made on this machine is undone also when the suite is terminated
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def _binary(variable, default, make):
    """A copy of the binary that every user may run, and that no rebuild changes under a running suite."""
    source = Path(os.environ.get(variable) or default)
    if not os.access(source, os.X_OK):
        pytest.exit(f"{source} is missing: run {make}, or set {variable} to the binary to test", returncode=2)
    target = _BASE / "bin" / make.replace(" ", "-") / "toolbox"
    target.parent.mkdir(parents=True)
    shutil.copy(source, target)
    target.chmod(0o755)
    return target


HANGS = 600  # seconds: no test takes as long on any machine (those of `make stress` may)


def _hangs(*_):
    raise TimeoutError(f"the test hangs: {HANGS} s are over")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    """Whatever a test waits for without a limit of its own: it fails, and says where it was, and the suite goes on."""
    before = signal.signal(signal.SIGALRM, _hangs)
    signal.setitimer(signal.ITIMER_REAL, 0 if item.path.name.startswith("stress_") else HANGS)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """What is skipped is told by the test's own place, wherever it turned out that it can't be run."""
    report = (yield).get_result()
    if report.skipped and isinstance(report.longrepr, tuple):
        report.longrepr = (str(item.path), item.location[1] + 1, report.longrepr[2])


@pytest.fixture(scope="session")
def toolbox():
    """Path of the binary under test: $TOOLBOX_BIN, else ./toolbox of this tree."""
    return _binary("TOOLBOX_BIN", containers.REPO / "toolbox", "make")


@pytest.fixture(scope="session")
def foreign_toolbox():
    """That for the other processor, which runs under an emulator: $TOOLBOX_BIN_FOREIGN, else the one of this tree."""
    arch = {"x86_64": "arm64", "aarch64": "amd64"}[platform.machine()]
    return _binary("TOOLBOX_BIN_FOREIGN", containers.REPO / "build" / arch / "toolbox", f"make ARCH={arch}")


@pytest.fixture(scope="session")
def other_build(toolbox):
    """The same program as another build: with another build id, of the same length, in its place."""
    data = toolbox.read_bytes()
    build = re.search(
        rb"build ([0-9a-f]{16})", subprocess.run([toolbox, "--version"], capture_output=True).stdout
    )[1]
    assert build in data
    path = toolbox.parent / "toolbox-other"
    path.write_bytes(data.replace(build, bytes(reversed(build))))
    path.chmod(0o755)
    return path


@pytest.fixture(scope="session", autouse=True)
def _suite_leaves_no_file():
    before = leftovers.snapshot()
    yield
    leftovers.check(before)


@pytest.fixture(autouse=True)
def _test_leaves_nothing():
    watch, descriptors = processes.Watch(), processes.descriptors(os.getpid())
    yield
    watch.check()
    new = set(processes.descriptors(os.getpid()).items()) - set(descriptors.items())
    assert not new, f"the test left descriptors open: {new}"


@pytest.fixture
def bridge(toolbox, workdir):
    """A model proxy whose host answers; it ends well and leaves no file."""
    bridge = Bridge(toolbox, workdir / "service")
    yield bridge
    status, said = bridge.end()
    assert (status, said) == (0, "")
    assert bridge.files() == []


@pytest.fixture
def workdir():
    """A fresh folder that every user may write to (as /tmp), removed with all that is in it."""
    folder = Path(tempfile.mkdtemp(prefix="work-"))
    folder.chmod(0o1777)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def server_dir(workdir):
    """Where a test's server directory is to be: the tool itself makes it."""
    return workdir / "server"


@pytest.fixture(scope="session")
def idle_descriptors(toolbox):
    """How many descriptors a server has that nobody has asked for anything; None when we may not look."""
    with tempfile.TemporaryDirectory() as folder:
        client = Client(Host(), toolbox, folder)
        client.cli("start-server")
        try:  # other tests may have servers by now
            pid = next(pid for pid in processes.servers() if folder in processes.descriptors(pid).values())
            # it reads its own program at first, to note which one it is; and it may not have seen yet that its starter has gone
            processes.wait_until(lambda: list(Path(folder).glob(".program.*")) and processes.is_asleep(pid), "the server to have nothing to do")
            return len(processes.descriptors(pid))
        except PermissionError:
            return None
        finally:
            client.close()


@pytest.fixture
def new_client(toolbox, workdir, idle_descriptors):
    """Makes clients, each with a server directory of its own: new_client(user=…, env=…, dir=…, binary=…). Their servers
    must have no more descriptors at the end than at the start."""
    clients = []

    def make(dir=None, user=None, env=None, binary=toolbox):
        client = Client(Host(), binary, dir or workdir / f"server-{len(clients)}", user, env)
        clients.append(client)
        return client

    yield make
    if idle_descriptors:
        leftovers.check_descriptors(idle_descriptors)
    for client in clients:
        client.close()


@pytest.fixture
def client(new_client, server_dir):
    """A client with a server directory of its own."""
    return new_client(dir=server_dir)


@pytest.fixture(scope="module")
def server(toolbox):
    """A client whose server all tests of a file share (harness/sessions.py)."""
    with shared_server(toolbox) as client:
        yield client


@pytest.fixture
def shell(server):
    """A session of its own there, at its first prompt."""
    with Shell(server) as shell:
        yield shell


@pytest.fixture(scope="session")
def user():
    """A real user with an entry in /etc/passwd, a home and a supplementary group."""
    needs.root("make a user")
    with users.temporary_user(_BASE / "home") as made:
        yield made


@pytest.fixture(scope="session")
def namespaces():
    """Containers without an engine (harness/containers.py)."""
    with tempfile.TemporaryDirectory() as empty:
        return containers.Namespaces(empty)


@pytest.fixture(scope="session")
def apart():
    """The words in front of a command that is to have a mount namespace of its own."""
    needs.root("mount")
    return containers.apart()


@pytest.fixture(scope="session")
def docker():
    """Containers of a Docker engine (harness/docker.py)."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        yield stack.enter_context(docker_engine.runtime(folder))


@pytest.fixture(scope="session", params=["namespaces", "docker"])
def runtime(request):
    """Each of the runtimes that can be had here."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def place(namespaces, toolbox):
    """Starts containers, and gives a client in each: place(root's name, user=…, as in containers.Options)."""
    with contextlib.ExitStack() as stack:

        def make(root, **options):
            container = namespaces.start(roots.get(root), containers.Options(files={"/opt/toolbox": toolbox}, **options))
            stack.callback(container.destroy)
            client = Client(container, "/opt/toolbox")
            stack.callback(client.stop)
            return client

        yield make


@pytest.fixture
def start(runtime):
    """Starts containers: start(root's name, options as in containers.Options). They end with the test."""
    with contextlib.ExitStack() as stack:

        def make(root, **options):
            container = runtime.start(roots.get(root), containers.Options(**options))
            stack.callback(container.destroy)
            return container

        yield make


@pytest.fixture
def serve(client, workdir):
    """Starts MCP servers: serve(revision, *options). They end, in good order, with the test."""
    with contextlib.ExitStack() as stack:

        def make(revision=mcp_client.LEGACY[-1], *options, **how):
            mcp = mcp_client.McpClient(client.popen("mcp", "serve", *options, **{"cwd": workdir, **how}), revision)
            stack.callback(lambda: mcp.process.poll() is None and mcp.close())
            return mcp

        yield make


@pytest.fixture
def mcp(serve):
    return serve()
