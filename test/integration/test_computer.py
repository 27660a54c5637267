"""Desktops: real Xvfb, real programs on it, and X servers that are none."""
import base64
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time
import zlib

import pytest

from harness import needs
from harness.client import PARAMERR, TOOLERR, RpcError
from harness.processes import wait_until

TEXT = """Hello, World! 1234567890 $#@ "quoted" 'x' ~`^ \\|<>[]{}"""


class Picture:
    """A PNG, read by the letter of its standard."""

    def __init__(self, data):
        assert data[:8] == b"\x89PNG\r\n\x1a\n"
        chunks, at = {}, 8
        while at < len(data):
            (n,), kind = struct.unpack(">I", data[at:at + 4]), data[at + 4:at + 8]
            body = data[at + 8:at + 8 + n]
            assert struct.unpack(">I", data[at + 8 + n:at + 12 + n])[0] == zlib.crc32(kind + body), kind
            chunks[kind] = body
            at += 12 + n
        assert kind == b"IEND" and at == len(data)
        self.width, self.height, bits, color, *rest = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
        assert rest == [0, 0, 0] and color in (2, 3)
        rows, row = zlib.decompress(chunks[b"IDAT"]), 1 + (self.width * bits * (3 if color == 2 else 1) + 7) // 8
        assert len(rows) == row * self.height
        self.palette = color == 3
        lines, above = [], bytes(row - 1)
        for y in range(self.height):
            kind, line = rows[y * row], bytearray(rows[y * row + 1:(y + 1) * row])
            for i in range(len(line)):
                line[i] = (line[i] + (above[i] if kind == 2 else line[i - 3] if kind == 1 and i >= 3 else 0)) & 255
            lines.append(above := bytes(line))
        if self.palette:
            colors, n = chunks[b"PLTE"], 8 // bits
            lines = [b"".join(colors[3 * i:3 * i + 3] for i in ((byte >> (8 - bits - bits * k)) & (2**bits - 1) for byte in line for k in range(n)))[:3 * self.width]
                     for line in lines]
        self.lines = lines

    def at(self, x, y):
        return tuple(self.lines[y][3 * x:3 * x + 3])


def picture(result):
    assert result["mime_type"] == "image/png"
    made = Picture(base64.b64decode(result["data"]))
    assert (made.width, made.height) == (result["width"], result["height"])
    return made


class Desk:
    def __init__(self, client, **params):
        self.client, self.opened = client, client.rpc("computer_new_session", {"window_manager": "none", "width": 640, "height": 480, **params})
        self.name, self.display = self.opened["session_name"], self.opened["display"]
        self.env = {**os.environ, "DISPLAY": self.display}
        self.started = []

    def __call__(self, method, **params):
        return self.client.rpc(f"computer_{method}", {"session_name": self.name, **params})

    def act(self, action, **params):
        return self("action", action=action, **params)

    def refused(self, action, **params):
        with pytest.raises(RpcError) as raised:
            self.act(action, **params)
        assert raised.value.code == TOOLERR, raised.value
        return str(raised.value)

    def run(self, *words):
        self.started.append(subprocess.Popen(words, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        return self.started[-1]

    def state(self):
        return next(one for one in self.client.rpc("computer_list_sessions") if one["session_name"] == self.name)

    @contextlib.contextmanager
    def terminal(self, folder, *options):
        """An xterm that has the focus, and a file into which it writes what is typed, once it reads."""
        needs.program("xterm")
        typed = folder / f"typed{len(self.started)}"
        xterm = self.run("xterm", "-u8", *options, "-geometry", "80x24+0+0", "-e", "sh", "-c", f"stty -echo; echo > {typed}.ready; cat > {typed}")
        wait_until(lambda: (folder / f"{typed.name}.ready").exists(), "xterm to have started")
        self.act("mouse_move", coordinate=[100, 100])  # without a window manager the focus is where the pointer is
        yield typed
        self.act("key", text="ctrl+d")
        assert xterm.wait(timeout=60) == 0

    def close(self):
        self("close_session")
        for one in self.started:
            with contextlib.suppress(subprocess.TimeoutExpired):
                one.wait(timeout=20)
            if one.poll() is None:
                one.kill()
                one.wait()


@pytest.fixture
def desk(client):
    needs.program("Xvfb")
    desks = []

    def make(**params):
        desks.append(Desk(client, **params))
        return desks[-1]

    yield make
    for one in desks:
        one.close()


def typed(path, text):
    """What has arrived, once there is as much as that."""
    wait_until(lambda: path.exists() and len(path.read_text(errors="replace")) >= len(text), f"the text to arrive: {text[:50]!r}")
    return path.read_text()


# ---- pictures ----

@pytest.mark.parametrize("depth", [16, 24, 30])
def test_a_picture_is_what_is_on_the_screen(desk, depth):
    needs.program("xsetroot")
    d = desk(depth=depth)
    assert (d.opened["width"], d.opened["height"]) == (640, 480)
    subprocess.run(["xsetroot", "-solid", "#ff0080"], env=d.env, check=True)
    seen = picture(d("screenshot", no_cursor=True))
    assert (seen.width, seen.height, seen.palette) == (640, 480, True)
    assert len(set(seen.lines)) == 1
    red, green, blue = seen.at(0, 0)
    assert red == 255 and green == 0 and abs(blue - 128) <= 8 and d.state()["depth"] == depth


def test_a_part_a_change_and_the_pointer(desk):
    needs.program("xsetroot")
    d = desk()
    d.act("mouse_move", coordinate=[320, 240])
    whole = d("screenshot", changed=True)
    assert whole["changed"] and picture(whole).width == 640
    assert d("screenshot", changed=True) == {"changed": False}
    assert picture(d("screenshot", region=[320, 240, 340, 260])).lines != picture(d("screenshot", region=[320, 240, 340, 260], no_cursor=True)).lines
    window = d.run(needs.program("xterm"), "-geometry", "20x5+64+96")
    wait_until(lambda: d("screenshot", changed=True)["changed"], "a window to be seen")
    d("wait", quiet=0.3)
    zoomed = picture(d.act("zoom", region=[64, 96, 164, 146]))
    assert (zoomed.width, zoomed.height) == (100, 50)
    d("screenshot")
    window.terminate()
    window.wait()
    wait_until(lambda: d("screenshot", changed=True)["changed"], "the window to be gone")
    assert "x0 < x1" in d.refused("zoom", region=[10, 10, 10, 20])
    assert "tuple of 4" in d.refused("zoom", region=[10, 10])
    assert "tuple of 4" in d.refused("zoom")


def test_a_large_screen_is_shown_as_models_see_well(desk):
    needs.program("xsetroot")
    d = desk(width=2732, height=1536)
    assert (d.opened["width"], d.opened["height"]) == (1366, 768)
    subprocess.run(["xsetroot", "-gray"], env=d.env, check=True)
    small = picture(d("screenshot", no_cursor=True))
    assert (small.width, small.height) == (1366, 768)
    assert {small.at(x, y) for x in range(0, 1366, 100) for y in range(0, 768, 100)} <= {(127, 127, 127), (128, 128, 128)}, "each stands for four, two of them black"
    d.act("mouse_move", coordinate=[1365, 767])
    assert d.act("cursor_position")["output"] == "X=1365,Y=767"
    assert "Coordinates 1367, 10 are out of bounds" in d.refused("left_click", coordinate=[1367, 10])
    assert picture(d.act("zoom", region=[0, 0, 100, 100])).width == 200
    assert picture(d("screenshot", full=True)).width == 2732


# ---- keys ----

def test_what_is_typed_arrives(desk, workdir):
    d = desk()
    with d.terminal(workdir) as into:
        d.act("type", text=TEXT + "\n")
        assert typed(into, TEXT) == TEXT + "\n"
        more = "äöüß € Привет, ёж 世界 🎉 ∀x∈ℝ ﷺ\n"
        d.act("type", text=more)
        assert typed(into, TEXT + "\n" + more) == TEXT + "\n" + more


def test_more_characters_than_there_are_keys(desk, workdir):
    """Keys are given one character after the other, and none changes before what was typed has arrived."""
    d = desk()
    lines = ["".join(chr(0x4E00 + 97 * line + 13 * i) for i in range(60)) for line in range(6)]
    with d.terminal(workdir) as into:
        for line in lines:
            d.act("type", text=line, press_enter=True)
        want = "\n".join(lines) + "\n"
        assert typed(into, want) == want


@pytest.mark.parametrize("layout", ["de", "fr", "ru", "us,ru"])
def test_other_layouts(desk, workdir, layout):
    needs.program("setxkbmap")
    d = desk()
    subprocess.run(["setxkbmap", layout], env=d.env, check=True)
    text = TEXT + " äöüß é ç Привет Zyxwq\n"
    with d.terminal(workdir) as into:
        d.act("type", text=text)
        assert typed(into, text) == text
        d.act("key", text="Caps_Lock")
        d.act("type", text="Small and LARGE\n")
        assert typed(into, text + "Small and LARGE\n") == text + "Small and LARGE\n"
        d.act("key", text="Caps_Lock")


def test_keys_by_their_names(desk, workdir):
    d = desk()
    with d.terminal(workdir) as into:
        for keys in ("a", "B", "shift+c", "exclam", "KP_5", "é", "U20AC", "space", "Return", "enter", "d e f", "0x67", "plus", "ctrl+v Escape", "Return"):
            d.act("key", text=keys)
        assert typed(into, "aBC!5é€ \n\ndefg+\x1b\n") == "aBC!5é€ \n\ndefg+\x1b\n"
        d("action", type="keypress", keys=["SHIFT", "X"])
        d.act("hold_key", text="y", duration=0.05)
        d.act("key", text="Return")
        assert typed(into, "aBC!5é€ \n\ndefg+\x1b\nXy\n")[-4:].rstrip("y\n").endswith("X")
    assert "No such key name 'foo'" in d.refused("key", text="ctrl+foo")


# ---- the pointer ----

def test_every_click(desk, workdir):
    d = desk()
    needs.program("xev")
    log = open(workdir / "log", "wb")
    d("screenshot")
    d.started.append(subprocess.Popen(["xev", "-geometry", "300x300+0+0", "-event", "button", "-event", "keyboard"], env=d.env, stdout=log))
    wait_until(lambda: d("screenshot", changed=True)["changed"], "a window to be seen")

    def events(n):
        def seen():
            return re.findall(r"(Button|Key)(Press|Release).*?state 0x(\w+), (?:button (\d+)|keycode \d+ \(keysym \w+, (\w+)\))", (workdir / "log").read_text(), re.S)
        wait_until(lambda: len(seen()) >= n, f"{n} events")
        return [(kind + how, int(state, 16) & 0xff, button or key) for kind, how, state, button, key in seen()]

    wanted = []
    for action, button, times in (("left_click", "1", 1), ("right_click", "3", 1), ("middle_click", "2", 1), ("back_click", "8", 1), ("forward_click", "9", 1),
                                  ("double_click", "1", 2), ("triple_click", "1", 3)):
        d.act(action, coordinate=[50, 60])
        wanted += ["ButtonPress", "ButtonRelease"] * times
        assert [e[0] for e in events(len(wanted))] == wanted and events(len(wanted))[-1][2] == button, action
    for direction, button in (("up", "4"), ("down", "5"), ("left", "6"), ("right", "7")):
        d.act("scroll", scroll_direction=direction, scroll_amount=2, coordinate=[50, 60])
        wanted += ["ButtonPress", "ButtonRelease"] * 2
        assert events(len(wanted))[-1][2] == button
    d("action", type="scroll", x=50, y=60, scroll_x=0, scroll_y=-250)
    wanted += ["ButtonPress", "ButtonRelease"] * 2
    assert events(len(wanted))[-1][2] == "4"
    d.act("left_click", coordinate=[50, 60], text="shift")
    wanted += ["KeyPress", "ButtonPress", "ButtonRelease", "KeyRelease"]
    held = events(len(wanted))[-4:]
    assert [e[0] for e in held] == wanted[-4:] and held[1][1] == 1 and held[0][2] == "Shift_L"
    d.act("left_click_drag", start_coordinate=[10, 10], coordinate=[200, 220])
    d.act("left_mouse_down")
    d.act("left_mouse_up")
    d("action", type="drag", path=[{"x": 20, "y": 20}, {"x": 40, "y": 50}, {"x": 100, "y": 120}])
    d("action", type="click", x=30, y=31, button="wheel")
    wanted += ["ButtonPress", "ButtonRelease"] * 4
    assert [e[0] for e in events(len(wanted))] == wanted and events(len(wanted))[-1][2] == "2"
    assert d.act("cursor_position") == {"output": "X=30,Y=31", "x": 30, "y": 31}


def test_errors_in_the_words_of_the_tools(desk):
    d = desk()
    for params, words in (({"action": "mouse_move"}, "coordinate is required for mouse_move"), ({"action": "type"}, "text is required for type"),
                          ({"action": "key", "text": "a", "coordinate": [1, 1]}, "coordinate is not accepted for key"),
                          ({"action": "screenshot", "text": "a"}, "text is not accepted for screenshot"),
                          ({"action": "left_click", "coordinate": [1]}, "coordinate must be a tuple of length 2"),
                          ({"action": "left_click", "coordinate": [-1, 5]}, "must be a tuple of non-negative ints"),
                          ({"action": "left_click", "coordinate": [641, 5]}, "Coordinates 641, 5 are out of bounds"),
                          ({"action": "scroll", "scroll_direction": "away", "scroll_amount": 1}, "must be 'up', 'down', 'left', or 'right'"),
                          ({"action": "scroll", "scroll_direction": "up"}, "scroll_amount must be a non-negative int"),
                          ({"action": "hold_key", "text": "a"}, "duration must be a number"),
                          ({"action": "wait", "duration": 101}, "duration is too long"), ({"action": "wait", "duration": -1}, "duration must be non-negative"),
                          ({"action": "fly"}, "Invalid action: fly"), ({"type": "drag", "path": [{"x": 1}]}, "path must be a list of points")):
        with pytest.raises(RpcError, match=re.escape(words)) as raised:
            d("action", **params)
        assert raised.value.code == TOOLERR
    with pytest.raises(RpcError) as raised:
        d("action")
    assert raised.value.code == PARAMERR
    assert picture(d.act("wait", duration=0.05)).width == 640
    assert picture(d.act("left_click", screenshot=True, settle_ms=0)).width == 640


def test_at_rest(desk, workdir):
    d = desk()
    assert d("wait", quiet=0.2)["stable"]
    d.run(needs.program("xterm"), "-e", "sh", "-c", f"echo > {workdir}/runs; while :; do date +%N; done")
    wait_until(lambda: (workdir / "runs").exists(), "xterm to run")
    assert not d("wait", quiet=1, timeout=1.5)["stable"]


# ---- displays ----

def test_two_at_once_and_their_ends(desk, client):
    one, two = desk(), desk(width=800)
    assert one.display != two.display
    assert [e["width"] for e in client.rpc("computer_list_sessions")] == [640, 800]
    os.kill(one.state()["pid"], signal.SIGKILL)
    wait_until(lambda: one.state()["state"] == "ended", "its end to be known")
    with pytest.raises(RpcError, match="signal 9; open a new session"):
        one("screenshot")
    pid = two.state()["pid"]
    two.close()
    assert not os.path.exists(f"/proc/{pid}")
    with pytest.raises(RpcError, match="has ended"):
        two("screenshot")


def test_a_display_that_is_there(desk, client):
    """Connected to, with its cookie, and left as it was."""
    needs.program("xmodmap")
    there = desk()
    before = subprocess.run(["xmodmap", "-pke"], env=there.env, capture_output=True, check=True).stdout
    opened = client.rpc("computer_new_session", {"display": there.display})
    client.rpc("computer_action", {"session_name": opened["session_name"], "action": "type", "text": "世界"})
    assert subprocess.run(["xmodmap", "-pke"], env=there.env, capture_output=True, check=True).stdout != before
    client.rpc("computer_close_session", {"session_name": opened["session_name"]})
    assert subprocess.run(["xmodmap", "-pke"], env=there.env, capture_output=True, check=True).stdout == before
    assert there.state()["state"] == "idle"


def test_a_cookie(client, workdir):
    needs.program("Xvfb")
    read, write = os.pipe()
    cookie = os.urandom(16)

    def entry(number, data):
        return b"".join([struct.pack(">H", 0xffff), b"\0\0"] + [struct.pack(">H", len(s)) + s for s in (number, b"MIT-MAGIC-COOKIE-1", data)])

    (workdir / "servers").write_bytes(entry(b"", cookie))
    with subprocess.Popen(["Xvfb", "-displayfd", str(write), "-screen", "0", "640x480x24", "-auth", workdir / "servers"], pass_fds=[write], stderr=subprocess.DEVNULL) as x:
        try:
            os.close(write)
            number = os.read(read, 20).strip()
            env = {**client.env, "DISPLAY": f":{number.decode()}"}
            for content, right in ((b"", False), (entry(number, os.urandom(16)), False), (b"\xff\xff\0", False), (entry(b"7777", b"x") + entry(number, cookie), True)):
                (workdir / "authority").write_bytes(content)
                done = subprocess.run([client.binary, "computer", "new"], env={**env, "XAUTHORITY": str(workdir / "authority")}, capture_output=True)
                assert (done.returncode == 0) == right, (content, done)
                assert right or b"refuses us" in done.stderr, done
        finally:
            assert client.cli("computer", "close", "--json").stdout == b"null\n"
            x.terminate()
            os.close(read)


def test_nobody_else_is_let_in(desk, user):
    needs.program("xdpyinfo")
    d = desk()
    assert subprocess.run(["xdpyinfo"], env=d.env, capture_output=True).returncode == 0
    other = subprocess.run(["xdpyinfo"], env={**d.env, "XAUTHORITY": "/nowhere"}, user=user.uid, group=user.gid, extra_groups=[], capture_output=True)
    assert other.returncode != 0 and b"uthoriz" in other.stderr, other


SCREEN = struct.pack("<IIIIHHBBBBBBBBI", 1, 0x200000, 0x1fffff, 0, 0, 0xffff, 1, 1, 0, 0, 32, 32, 8, 255, 0) + struct.pack("<BBB5x", 24, 32, 32) \
    + struct.pack("<IIIIIHHHHHHIBBBB", 77, 0, 0, 0, 0, 640, 480, 1, 1, 1, 1, 33, 0, 0, 24, 1) + struct.pack("<BxH4x", 24, 1) \
    + struct.pack("<IBBHIIII", 33, 4, 8, 256, 0xff0000, 0xff00, 0xff, 0)


def hello(body, status=1, detail=0):
    return struct.pack("<BBHHH", status, detail, 11, 0, (len(body) + 3) // 4) + body + bytes(-len(body) % 4)


@pytest.mark.parametrize("said,words", [
    (b"", "closes the connection"), (b"HTTP/1.0 400 Bad Request\r\n\r\n", "closes the connection"), (hello(b"No way\n", 0, 7), "refuses us: No way"),
    (hello(b"more, please", 2), "refuses us"), (hello(SCREEN[:40]), "none that can be used"), (hello(SCREEN[:-20]), "none that can be used"), (hello(b""), "none that can be used"),
    (hello(SCREEN[:16] + b"\xff\xff" + SCREEN[18:]), "none that can be used"), (hello(SCREEN[:20] + b"\x00" + SCREEN[21:]), "none that can be used"),
    (hello(SCREEN[:21] + b"\xff" + SCREEN[22:]), "none that can be used"), (hello(SCREEN[:26] + b"\x00" + SCREEN[27:]), "none that can be used"),
    (hello(SCREEN), "closed the connection"), (hello(SCREEN) + b"\x01\0\x01\0\xff\xff\xff\x7f" + bytes(24), "sends what can't be an answer"),
    (hello(SCREEN) + b"\0\x02\x01\0" + bytes(28), "closed the connection"), (hello(SCREEN) + bytes([9]) * 32 * 9000, "closed the connection"),
], ids=range(15))
def test_no_x_server(client, said, words):
    """What answers may be anything: it is told, and nothing breaks."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def serve():
            peer, _ = server.accept()
            with peer, contextlib.suppress(OSError):
                peer.recv(1000)
                peer.sendall(said)
                peer.shutdown(socket.SHUT_WR)
                while peer.recv(65536):
                    pass

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        with pytest.raises(RpcError, match=re.escape(words)) as raised:
            client.rpc("computer_new_session", {"display": f"127.0.0.1:{port - 6000}"})
        assert raised.value.code == TOOLERR
        thread.join(30)


def test_what_is_no_display(client):
    for display, words in (("x", "is no display"), (":", "is no display"), (":1.x", "is no display"), (":999999", "is no display"), (":9876", "cannot connect to the display :9876"),
                           ("127.0.0.1:1.700", "is no display")):
        with pytest.raises(RpcError, match=re.escape(words)):
            client.rpc("computer_new_session", {"display": display})
    with pytest.raises(RpcError, match="there is no desktop session 'Computer_5'"):
        client.rpc("computer_screenshot", {"session_name": "Computer_5"})
    done = subprocess.run([client.binary, "computer", "new"], env={**{k: v for k, v in client.env.items() if k != "DISPLAY"}, "PATH": "/nowhere"}, capture_output=True)
    if not os.path.exists("/usr/bin/Xvfb"):
        assert done.returncode == 1 and b"Xvfb is not installed" in done.stderr, done
    client.cli("computer", "close")


# ---- the entry point of inspect_ai's image ----

def test_the_old_entry_point(client, workdir, toolbox):
    """What inspect_ai's computer() runs, word for word, in the place of its image's program."""
    needs.program("Xvfb")
    root = workdir / "root"
    (root / "bin").mkdir(parents=True)
    shutil.copy(toolbox, root / "bin/toolbox")
    subprocess.run([root / "bin/toolbox", "--install-legacy", f"{root}/"], check=True)
    tool = root / "opt/inspect/tool/computer_tool.py"
    tool.write_text(tool.read_text().replace('"/bin/toolbox"', f'"{client.binary}"'))
    env = {**{k: v for k, v in client.env.items() if k != "DISPLAY"}, "WIDTH": "800", "HEIGHT": "600"}
    shows = [["screenshot"], ["wait", "--duration", "0"], ["mouse_move", "--coordinate", "11", "12"], ["left_click", "--coordinate", "1", "2"], ["left_mouse_down"], ["left_mouse_up"],
             ["left_click_drag", "--start_coordinate", "1", "2", "--coordinate", "30", "40"], ["back_click", "--coordinate", "1", "2"], ["triple_click", "--coordinate", "1", "2"],
             ["scroll", "--scroll_amount", "2", "--scroll_direction", "down"], ["scroll", "--scroll_amount", "2", "--scroll_direction", "up", "--coordinate", "7", "8"],
             ["key", "--text", "ctrl+s"], ["hold_key", "--text", "a", "--duration", "0"], ["type", "--text=-- é 'quoted'"], ["zoom", "--region", "0", "0", "800", "600"]]

    def run(words):
        done = subprocess.run(["python3", tool, *words], env=env, capture_output=True)
        assert done.returncode == 0, done
        answer = json.loads(done.stdout)
        assert set(answer) == {"output", "error", "base64_image"}
        return answer

    try:
        for words in shows:
            answer = run(words)
            assert answer["error"] is None and Picture(base64.b64decode(answer["base64_image"])).width == 800, words
        assert run(["cursor_position"]) == {"output": "X=7,Y=8", "error": None, "base64_image": None}
        assert "No such key name" in run(["key", "--text", "nonsense"])["error"]
        assert "out of bounds" in run(["left_click", "--coordinate", "9999", "2"])["error"]
        assert len(client.rpc("computer_list_sessions")) == 1
    finally:
        client.cli("computer", "close")


# ---- the tool of mcp serve ----

def test_the_tool_of_mcp_serve(serve, client):
    """Pictures are image content; the session is one for a connection, opened anew when its display dies, and ends with the connection."""
    needs.program("Xvfb")
    env = {**{k: v for k, v in client.env.items() if k != "DISPLAY"}, "PATH": os.environ["PATH"]}
    mcp = serve("2025-11-25", "--computer", "--tools", "minimal", env=env)

    def call(**arguments):
        answer = mcp.request("tools/call", {"name": "computer", "arguments": arguments})
        return answer["isError"], {part["type"]: part for part in answer["content"]}

    tools = {tool["name"]: tool for tool in mcp.request("tools/list")["tools"]}
    assert set(tools) == {"shell_run", "text_editor", "computer"}
    assert {"screenshot", "left_click_drag", "zoom", "keypress"} <= set(tools["computer"]["inputSchema"]["properties"]["action"]["enum"])
    wrong, content = call(action="screenshot")
    seen = Picture(base64.b64decode(content["image"]["data"]))
    assert not wrong and content["image"]["mimeType"] == "image/png" and (seen.width, seen.height) == (1366, 768) and set(content) == {"image"}
    for arguments in ({"action": "mouse_move", "coordinate": [30, 40]}, {"action": "left_click", "coordinate": "[30, 40]", "text": None}, {"type": "move", "x": 30, "y": 40},
                      {"action": "drag", "path": [{"x": 1, "y": 2}, {"x": 30, "y": 40}]}, {"action": "zoom", "region": [0, 0, 30, 40]}):
        wrong, content = call(**arguments)
        assert not wrong and "image" in content, (arguments, content)
    assert call(action="cursor_position") == (False, {"text": {"type": "text", "text": "X=30,Y=40"}})
    assert call(action="key", text="shift", screenshot=False) == (False, {"text": {"type": "text", "text": "Done"}})
    wrong, content = call(action="left_click", coordinate=[9999, 1])
    assert wrong and "out of bounds" in content["text"]["text"]
    wrong, content = call(action="fly")
    assert wrong and "must be one of screenshot" in content["text"]["text"]
    [session] = client.rpc("computer_list_sessions")
    os.kill(session["pid"], signal.SIGKILL)
    wait_until(lambda: client.rpc("computer_list_sessions")[0]["state"] == "ended", "the display to end")
    wrong, content = call(action="screenshot")
    assert wrong and "the next call opens a new one" in content["text"]["text"]
    assert "image" in call(action="screenshot")[1]
    [session] = client.rpc("computer_list_sessions")
    mcp.close()
    assert client.rpc("computer_list_sessions") == [] and not os.path.exists(f"/proc/{session['pid']}")


def test_mcp_serve_has_no_desktop_unless_asked(serve):
    assert "computer" not in {tool["name"] for tool in serve().request("tools/list")["tools"]}
    assert {tool["name"] for tool in serve("2025-11-25", "--tools", "computer").request("tools/list")["tools"]} == {"computer"}


# ---- the command line ----

def test_the_command_line(client, workdir):
    needs.program("Xvfb")
    env = {k: v for k, v in client.env.items() if k != "DISPLAY"}

    def cli(*words, status=0, **more):
        done = subprocess.run([client.binary, "computer", *words], env=env, capture_output=True, **more)
        assert done.returncode == status, done
        return done.stdout.decode() if status == 0 and not words[0] == "screenshot" else done.stdout if status == 0 else done.stderr.decode()

    name, display = cli("new", "--size", "640x480", "--window-manager", "none").split()
    assert name == "Computer" and display.startswith(":")
    assert Picture(cli("screenshot")).width == 640
    assert cli("screenshot", "--output", workdir / "a.png", "--region", "0,0,64,48") == b"" and Picture((workdir / "a.png").read_bytes()).height == 48
    assert cli("move", "20", "30") == "" and cli("position") == "X=20,Y=30\n"
    assert cli("click", "20", "40", "--times", "2", "--output", workdir / "b.png") == "" and Picture((workdir / "b.png").read_bytes()).height == 480
    assert json.loads(cli("action", '{"action": "cursor_position"}', "--json")) == {"output": "X=20,Y=40", "x": 20, "y": 40}
    assert cli("action", "-", input=b'{"type": "move", "x": 3, "y": 4}') == "" and cli("position") == "X=3,Y=4\n"
    for words in (["drag", "1", "1", "9", "9"], ["scroll", "down"], ["scroll", "up", "2", "5", "5"], ["key", "ctrl+a", "BackSpace"], ["key", "a", "--for", "10ms"],
                  ["type", "text", "--enter"], ["click"], ["click", "1", "2", "--button", "right", "--hold", "ctrl"], ["wait", "--quiet-for", "100ms"]):
        assert cli(*words) == "", words
    assert "nothing has changed" in (cli("screenshot") and cli("screenshot", "--changed", "--output", workdir / "c.png", status=1))
    for words in (["click", "1"], ["click", "a", "b"], ["drag", "1", "2", "3", "4", "5"], ["action", "[]"], ["screenshot", "--region", "1,,2"], ["new", "--size", "640"],
                  ["click", "--times", "4"], ["wait", "--timeout", "x"]):
        assert "Try 'toolbox computer" in cli(*words, status=2), words
    assert "No such key name" in cli("key", "nonsense", status=1)
    assert name in cli("list")
    cli("close")
    assert cli("list", "--json") == "[]\n"
    assert "there is no session" in cli("close", status=1)


def test_an_x_server_that_says_something_else_for_ever(client):
    """Events without an end are no answer."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        def serve():
            peer, _ = server.accept()
            with peer, contextlib.suppress(OSError):
                peer.recv(1000)
                peer.sendall(hello(SCREEN))
                while True:
                    peer.sendall(bytes([9]) * 32 * 1000)
                    time.sleep(0.001)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        with pytest.raises(RpcError, match="does not answer"):
            client.rpc("computer_new_session", {"display": f"127.0.0.1:{server.getsockname()[1] - 6000}"})
        thread.join(30)
