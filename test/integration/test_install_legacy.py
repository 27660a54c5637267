"""`toolbox --install-legacy`: the entry points of older clients, without a browser and without those clients (with both:
test/inspect/test_web_browser.py)."""
import json
import os
import shutil
import subprocess

import pytest

FILES = ["/app/web_browser/web_client.py", "/app/web_browser/web_client_new_session.py", "/opt/inspect/multi-tool-v1.py",
         "/opt/inspect/tool/computer_tool.py"]
LINK = "/usr/local/bin/inspect-tool-support"


@pytest.fixture
def root(workdir, toolbox):
    """A root folder with the entry points in it, which call the program under test."""
    folder = workdir / "root"
    (folder / "usr/local/bin").mkdir(parents=True)
    shutil.copy(toolbox, folder / "usr/local/bin")
    return folder


def install(root, status=0):
    done = subprocess.run([root / "usr/local/bin/toolbox", "--install-legacy", f"{root}/"], capture_output=True, text=True)
    assert done.returncode == status, done.stderr
    return done.stderr


def run(client, root, file, *words, stdin=b"", **env):
    """The script, with the program's path as it is seen from outside of the root."""
    for each in FILES:
        path = root / each.lstrip("/")
        path.write_text(path.read_text().replace('"/usr/local/bin/toolbox"', f'"{client.binary}"'))
    return subprocess.run(["python3", root / file.lstrip("/"), *words], input=stdin, capture_output=True,
                          env={"PATH": os.environ["PATH"], "TOOLBOX_DIR": str(client.dir), **env})


def test_files_and_link(root):
    install(root)
    for file in FILES:
        path = root / file.lstrip("/")
        assert path.stat().st_mode & 0o777 == 0o755
        assert 'TOOLBOX = ["/usr/local/bin/toolbox"]' in path.read_text()
        compile(path.read_text(), file, "exec")
    assert os.readlink(root / LINK.lstrip("/")) == "/usr/local/bin/toolbox"
    install(root)  # its own are replaced


@pytest.mark.parametrize("file", [*FILES, LINK])
def test_what_is_of_others_stays(root, file):
    path = root / file.lstrip("/")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("of another\n")
    assert str(path) in install(root, 1)
    assert path.read_text() == "of another\n"


def test_multi_tool_is_exec(client, root):
    install(root)
    request = '{"jsonrpc":"2.0","id":7,"method":"version"}'
    for words, stdin in (([], request), (["exec"], request), ([request], ""), (["exec", request], "")):
        done = run(client, root, FILES[2], *words, stdin=stdin.encode())
        assert done.returncode == 0 and json.loads(done.stdout)["id"] == 7, done.stderr


def test_web_client_without_a_browser(client, root, workdir):
    install(root)
    nowhere = {"TOOLBOX_BROWSER": str(workdir / "nowhere")}
    done = run(client, root, FILES[1], **nowhere)
    assert done.returncode == 1 and b"no program that can be run" in done.stderr and not done.stdout
    done = run(client, root, FILES[0], "--session_name=Nobody", "web_go", "example.org", **nowhere)
    assert done.returncode == 0 and done.stdout.startswith(b"error :  ") and b"Nobody" in done.stdout
    for words in ((), ("web_fly",), ("web_click",), ("--session_name=Nobody", "web_type", "5")):
        done = run(client, root, FILES[0], *words, **nowhere)
        assert done.returncode == 1 and b"usage: web_client.py" in done.stderr
    done = run(client, root, FILES[0], "--session_name=Nobody", "web_click", "five", **nowhere)
    assert done.returncode == 0 and done.stdout == b"error :  there is no element 'five'\n"


def test_computer_tool_takes_what_it_took(client, root):
    """Its arguments; and what a model is to be told is in its JSON. (With a display: test_computer.py.)"""
    install(root)
    for words in ((), ("fly",), ("key",), ("mouse_move", "--coordinate", "1"), ("scroll", "--scroll_direction", "away", "--scroll_amount", "1"), ("wait", "--duration", "x")):
        done = run(client, root, FILES[3], *words, DISPLAY=":9877")
        assert done.returncode == 2 and b"usage: computer_tool" in done.stderr and not done.stdout, words
    done = run(client, root, FILES[3], "screenshot", DISPLAY=":9877")
    answer = json.loads(done.stdout)
    assert done.returncode == 0 and answer["base64_image"] is answer["output"] is None and ":9877" in answer["error"]


def test_usage(client, workdir):
    for words in ((), ("a", "b")):
        done = client.cli("--install-legacy", *words)
        assert done.returncode == 2 and b"root folder" in done.stderr
    done = client.cli("--install-legacy", str(workdir / "nowhere"))
    assert done.returncode == 1 and b"No such file" in done.stderr
