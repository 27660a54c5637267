"""text_editor through the real binary: what a model sees, and what happens to the file."""

import contextlib
import json
import os
import re
import resource
import shutil
import socket
import stat
import subprocess
import time
from pathlib import Path

import pytest

from harness.client import PARAMERR, TOOLERR, RpcError
from harness.sessions import SANITIZED
from harness.users import NOBODY_KNOWS, needs_root

LINKS = "[Tt]oo many"


@contextlib.contextmanager
def refused(code=TOOLERR, match=None):
    """The call must fail with that code, and say so in words that match."""
    with pytest.raises(RpcError, match=match) as caught:
        yield caught
    assert caught.value.code == code, caught.value


def numbered(text):
    """The lines of a numbered view, as {number: text}, whatever stands above and below."""
    found = {}
    for line in text.split("\n"):
        number, tab, rest = line.partition("\t")
        if tab and len(number) >= 6 and number.strip().isdigit():
            found[int(number)] = rest
    return found


def identity(path):
    info = os.stat(path)
    return info.st_ino, info.st_mode, info.st_uid, info.st_gid


@pytest.fixture
def tree(workdir):
    """A folder for the files that are edited, without the server directory in it."""
    folder = workdir / "tree"
    folder.mkdir()
    folder.chmod(0o1777)
    return folder


@pytest.fixture
def file(tree):
    """Makes a file with some content (text or bytes)."""

    def make(content, name="file"):
        path = tree / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return make


# ---- paths ----


def test_missing_file(client, tree):  # C-029
    path = tree / "no" / "such.txt"
    for command, params in [
        ("view", {"view_range": [1, 100]}),
        ("str_replace", {"old_str": "a"}),
        ("insert", {"insert_line": 0, "new_str": "x"}),
        ("undo_edit", {}),
        ("create", {"file_text": "x"}),
    ]:
        with refused(match="such.txt"):
            client.ed(command, path, **params)
    assert not path.parent.exists()


def test_nul_in_the_path(client, file, tree):  # C-031
    path = file("a")
    for command, params in [
        ("str_replace", {"old_str": "a", "new_str": "b"}),
        ("view", {}),
        ("create", {"file_text": ""}),
    ]:
        with refused():
            client.ed(command, f"{path}\0.bak", **params)
    assert path.read_text() == "a" and os.listdir(tree) == ["file"]


def test_empty_long_and_odd_paths(client, tree):
    with refused(match="empty"):
        client.ed("view", "")
    for path in ("a" * 5000, "/".join(["a" * 200] * 30)):
        with refused():
            client.ed("view", path)
        with refused():
            client.ed("create", path, file_text="x")
    with refused(match="not a directory|Not a directory"):
        client.ed("view", "/etc/passwd/")
    with refused(match="slash"):
        client.ed("create", f"{tree}/new/", file_text="x")
    assert os.listdir(tree) == []


def test_relative_path(client, tree):
    (tree / "sub").mkdir()
    answer = client.rpc(
        "text_editor", {"command": "create", "path": "sub/../rel", "file_text": "x"}, cwd=tree
    )
    assert (tree / "rel").read_text() == "x" and f"{tree}/rel" in answer


def test_slashes_in_front(client, file):
    """Two of them are one: the file, its history and a listing go by one name."""
    path = file("a\n")
    client.ed("str_replace", f"/{path}", old_str="a", new_str="b")
    path.write_text("by others\n")
    path.rename(path.parent / "gone")
    file("new\n")
    client.ed("undo_edit", path)
    assert path.read_text() == "a\n"
    assert client.ed("view", "//").split("\n")[1] == "/"


def test_missing_directories_are_named(client, tree):
    with refused(match=f"no directory {tree}/no\\)"):
        client.ed("view", tree / "no" / "such" / "file")
    with refused(match=f"no directory {tree}/no\\).*make"):
        client.ed("create", tree / "no" / "such" / "file", file_text="x")
    with refused(match=f"rel does not exist; it is taken from {tree},"):
        client.rpc("text_editor", {"command": "view", "path": "rel"}, cwd=tree)


def test_symlink_loop(client, tree):  # C-033
    (tree / "a").symlink_to("b")
    (tree / "b").symlink_to("a")
    for command, params in [
        ("view", {}),
        ("create", {"file_text": "x"}),
        ("str_replace", {"old_str": "a"}),
        ("undo_edit", {}),
    ]:
        with refused(match=LINKS):
            client.ed(command, tree / "a", **params)


def test_symlinks_are_followed_and_kept(client, file, tree):  # C-034
    real = file("x=1\n", "real")
    (tree / "link").symlink_to("real")
    (tree / "link2").symlink_to("link")
    client.ed("str_replace", tree / "link2", old_str="1", new_str="2")
    assert real.read_text() == "x=2\n" and not real.is_symlink()
    assert os.readlink(tree / "link") == "real" and os.readlink(tree / "link2") == "link"
    client.ed("undo_edit", real)
    assert real.read_text() == "x=1\n"
    client.ed("str_replace", real, old_str="1", new_str="3")
    client.ed("undo_edit", tree / "link")
    assert real.read_text() == "x=1\n"


def test_create_through_a_dangling_symlink(client, tree):  # C-034
    (tree / "link").symlink_to("target")
    client.ed("create", tree / "link", file_text="new")
    assert os.readlink(tree / "link") == "target" and (tree / "target").read_text() == "new"
    client.ed("undo_edit", tree / "link")
    assert os.readlink(tree / "link") == "target" and not (tree / "target").exists()
    (tree / "lost").symlink_to("no/target")
    with refused(match="directory"):
        client.ed("create", tree / "lost", file_text="new")


@pytest.mark.parametrize(
    "name", [b"with space", b"new\nline", b'quote"s', b"back\\slash", "é日本".encode(), b"-rf"]
)
def test_odd_names(client, tree, name):
    path = os.fsencode(tree) + b"/" + name
    text = path.decode()
    client.ed("create", text, file_text="x")
    assert os.listdir(os.fsencode(tree)) == [name]
    assert "x" in numbered(client.ed("view", text)).values()
    client.ed("undo_edit", text)
    assert os.listdir(tree) == []


# ---- what hangs on the inode ----


def test_hard_link_mode_and_owner(client, file, tree):  # C-035
    path, other = file("#!/bin/sh\necho hi\n"), tree / "other"
    path.chmod(0o755)
    os.link(path, other)
    if os.geteuid() == 0:
        os.chown(path, 1234, 4321)
        path.chmod(0o4755)
    before = identity(path)
    client.ed("str_replace", other, old_str="hi", new_str="hello, world")
    assert identity(path) == before == identity(other)
    assert path.read_text() == other.read_text() == "#!/bin/sh\necho hello, world\n"
    client.ed("undo_edit", path)
    assert path.read_text() == "#!/bin/sh\necho hi\n" and identity(path) == before
    with refused(match="no edit"):
        client.ed("undo_edit", other)


@needs_root
def test_setuid_bit_of_a_users_file_written_in_place(new_client, tree):
    """The kernel takes it away with every write that isn't root's."""
    path = tree / "f"
    path.write_text("a\n")
    os.link(path, tree / "link")
    os.chown(path, NOBODY_KNOWS, NOBODY_KNOWS)
    path.chmod(0o6755)
    before = identity(path)
    new_client(user=NOBODY_KNOWS).ed("str_replace", path, old_str="a", new_str="b")
    assert identity(path) == before and path.read_text() == "b\n"


def test_mode_and_owner_of_a_single_link(client, file):
    path = file("a\n")
    if os.geteuid() == 0:
        os.chown(path, 1234, 4321)
    path.chmod(0o6751)
    before = identity(path)[1:]
    client.ed("str_replace", path, old_str="a", new_str="b")
    assert identity(path)[1:] == before and path.read_text() == "b\n"


@needs_root
def test_writable_file_in_a_directory_that_is_not(new_client, tree):  # C-035
    folder = tree / "d"
    folder.mkdir()
    path = folder / "f"
    path.write_text("one\ntwo\n")
    os.chown(path, NOBODY_KNOWS, NOBODY_KNOWS)
    client = new_client(user=NOBODY_KNOWS)
    inode = path.stat().st_ino
    client.ed("str_replace", path, old_str="two", new_str="twenty-two")
    assert path.read_text() == "one\ntwenty-two\n" and path.stat().st_ino == inode
    client.ed("undo_edit", path)
    assert path.read_text() == "one\ntwo\n" and os.listdir(folder) == ["f"]


@needs_root
def test_file_of_another_in_a_shared_directory(new_client, tree):
    """Writable by its mode; a rename would change the owner (and is forbidden in a sticky directory)."""
    path = tree / "f"
    path.write_text("one\n")
    path.chmod(0o666)
    client = new_client(user=NOBODY_KNOWS)
    before = identity(path)
    client.ed("str_replace", path, old_str="one", new_str="1")
    assert path.read_text() == "1\n" and identity(path) == before


@needs_root
def test_file_that_may_not_be_written(new_client, tree):
    folder = tree / "d"
    folder.mkdir()
    os.chown(folder, NOBODY_KNOWS, NOBODY_KNOWS)
    path = folder / "f"
    path.write_text("one\n")
    os.chown(path, NOBODY_KNOWS, NOBODY_KNOWS)
    path.chmod(0o444)
    client = new_client(user=NOBODY_KNOWS)
    with refused(match="[Pp]ermission denied"):
        client.ed("str_replace", path, old_str="one", new_str="1")
    assert path.read_text() == "one\n" and os.listdir(folder) == ["f"]


def test_extended_attributes(client, file):
    path = file("a\n")
    try:
        os.setxattr(path, "user.comment", b"keep \0 me")
    except OSError as error:
        pytest.skip(f"no extended attributes here: {error}")
    # An ACL: user::rw-, user:1234:rwx, group::r--, mask::rwx, other::---
    acl = bytes.fromhex(
        "02000000 01000600ffffffff 02000700d2040000 04000400ffffffff 10000700ffffffff 20000000ffffffff"
    )
    with contextlib.suppress(OSError):
        os.setxattr(path, "system.posix_acl_access", acl)
    before = {name: os.getxattr(path, name) for name in os.listxattr(path)}, path.stat().st_mode
    client.ed("str_replace", path, old_str="a", new_str="b")
    assert ({name: os.getxattr(path, name) for name in os.listxattr(path)}, path.stat().st_mode) == before
    assert path.read_text() == "b\n"


def test_new_files_get_the_umask(toolbox, client, tree):  # C-035
    for umask, mode in [(0o022, 0o644), (0o077, 0o600), (0, 0o666)]:
        path = tree / f"new{umask}"
        os_umask = os.umask(umask)
        try:
            client.ed("create", path, file_text="x")
        finally:
            os.umask(os_umask)
        assert stat.S_IMODE(path.stat().st_mode) == mode


@needs_root
def test_mount_point(client, file, tree):
    """Container engines mount single files (/etc/hosts): those can't be renamed over."""
    source, target = file("127.0.0.1 localhost\n", "source"), file("", "target")
    if subprocess.run(["mount", "--bind", source, target], capture_output=True).returncode != 0:
        pytest.skip("can't mount here")
    try:
        client.ed("insert", target, insert_line=1, new_str="127.0.0.2 other")
        assert source.read_text() == "127.0.0.1 localhost\n127.0.0.2 other\n"
        client.ed("undo_edit", target)
        assert source.read_text() == "127.0.0.1 localhost\n"
    finally:
        subprocess.run(["umount", target], check=True)
    assert sorted(os.listdir(tree)) == ["source", "target"]


def test_running_program(client, tree):
    """A program that runs can't be written in place, but replaced."""
    path = tree / "prog"
    shutil.copy("/bin/sleep", path)
    with open(path, "ab") as end:
        end.write(b"#MARK#")
    with subprocess.Popen([path, "60"]) as process:
        try:
            client.ed("str_replace", path, old_str="#MARK#", new_str="#mark!#")
        finally:
            process.kill()
    assert path.read_bytes().endswith(b"#mark!#")


# ---- bytes outside the edit ----


def test_tabs_are_untouched(client, file):  # C-036
    original = b"all:\n\techo hi\n\techo bye\n"
    path = file(original)
    client.ed("str_replace", path, old_str="hi", new_str="HI")
    assert path.read_bytes() == b"all:\n\techo HI\n\techo bye\n"
    client.ed("insert", path, insert_line=1, new_str="\techo first")
    assert path.read_bytes() == b"all:\n\techo first\n\techo HI\n\techo bye\n"
    client.ed("undo_edit", path)
    client.ed("undo_edit", path)
    assert path.read_bytes() == original


def test_tab_that_is_not_at_a_tab_stop(client, file):  # C-037
    path = file("ab\tc\n")
    client.ed("str_replace", path, old_str="b\tc", new_str="Q")
    assert path.read_text() == "aQ\n"
    path = file("é\tx\n")
    client.ed("str_replace", path, old_str="\tx", new_str="-")
    assert path.read_text() == "é-\n"


def test_crlf(client, file):  # C-038
    original = b"a\r\nb\r\nc\r\n"
    path = file(original)
    answer = client.ed("str_replace", path, old_str="b", new_str="B")
    assert path.read_bytes() == b"a\r\nB\r\nc\r\n" and "\r" not in answer
    client.ed("str_replace", path, old_str="a\r\nB", new_str="1\r\n2")
    assert path.read_bytes() == b"1\r\n2\r\nc\r\n"
    client.ed("str_replace", path, old_str="1\n2", new_str="a\nb")
    assert path.read_bytes() == original
    client.ed("insert", path, insert_line=1, new_str="x")
    assert path.read_bytes() == b"a\r\nx\r\nb\r\nc\r\n"
    client.ed("insert", path, insert_line=0, new_str="y\nz")
    assert path.read_bytes() == b"y\r\nz\r\na\r\nx\r\nb\r\nc\r\n"
    client.ed("insert", path, insert_line=7, new_str="end")
    assert path.read_bytes() == b"y\r\nz\r\na\r\nx\r\nb\r\nc\r\n\r\nend"
    for _ in range(6):
        client.ed("undo_edit", path)
    assert path.read_bytes() == original
    view = client.ed("view", path)
    assert "\r" not in view and numbered(view) == {1: "a", 2: "b", 3: "c", 4: ""}


def test_crlf_lines_brought_into_one(client, file):
    path = file(b"a\r\nb\r\n")
    client.ed("str_replace", path, old_str="b", new_str="1\n2")
    assert path.read_bytes() == b"a\r\n1\r\n2\r\n"


def test_mixed_line_ends(client, file):  # C-038
    path = file(b"a\r\nb\nc\r\nd")
    client.ed("str_replace", path, old_str="a\nb\nc", new_str="A\nB\nC")
    assert path.read_bytes() == b"A\r\nB\nC\r\nd"
    client.ed("insert", path, insert_line=2, new_str="x")
    assert path.read_bytes() == b"A\r\nB\nx\nC\r\nd"
    client.ed("insert", path, insert_line=4, new_str="y")
    assert path.read_bytes() == b"A\r\nB\nx\nC\r\ny\r\nd"
    with refused(match="2 times"):
        client.ed("str_replace", file(b"a\r\nb a\r\nb"), old_str="a\nb", new_str="")


def test_lone_cr(client, file):  # C-038
    path = file(b"a\rb\n")
    view = client.ed("view", path)
    assert "\r" not in view and numbered(view)[1] == "a\u240db"
    client.ed("str_replace", path, old_str="a\rb", new_str="c\rd")
    assert path.read_bytes() == b"c\rd\n"


def test_crlf_old_str_in_a_lf_file_says_why(client, file):
    with refused(match="line ends"):
        client.ed("str_replace", file("a\nb\n"), old_str="a\r\nb", new_str="x")


def test_bom_and_no_final_newline(client, file):
    path = file(b"\xef\xbb\xbfone\ntwo")
    client.ed("insert", path, insert_line=0, new_str="zero")
    assert path.read_bytes() == b"\xef\xbb\xbfzero\none\ntwo"
    client.ed("str_replace", path, old_str="two", new_str="2")
    assert path.read_bytes() == b"\xef\xbb\xbfzero\none\n2"
    client.ed("undo_edit", path)
    client.ed("undo_edit", path)
    assert path.read_bytes() == b"\xef\xbb\xbfone\ntwo"


def test_bytes_that_are_no_utf8(client, file):
    original = b"caf\xe9 \xff\xfe\0\x80 key=1\nnext \xe2\x82\n"
    path = file(original)
    view = client.ed("view", path)
    assert "\ufffd" in view and numbered(view)[1].endswith("key=1") and numbered(view)[2] == "next \ufffd"
    client.ed("str_replace", path, old_str="key=1", new_str="key=é")
    assert path.read_bytes() == original.replace(b"key=1", "key=é".encode())
    client.ed("undo_edit", path)
    assert path.read_bytes() == original


def test_half_surrogates_are_refused(client, file, tree):  # C-042, C-111
    path = file("abc\n")
    for text in ("\\ud800", "\\udc80", "x\\ud83dX", "\\ud83d\\ud83d\\ude00"):
        for request in (
            '{"command":"str_replace","path":"%s","old_str":"b","new_str":"%s"}' % (path, text),
            '{"command":"insert","path":"%s","insert_line":0,"new_str":"%s"}' % (path, text),
            '{"command":"create","path":"%s","file_text":"%s"}' % (tree / "new", text),
        ):
            answer = client.line('{"jsonrpc":"2.0","id":1,"method":"text_editor","params":%s}' % request)
            assert b"-32602" in answer and b"surrogate" in answer
    assert path.read_text() == "abc\n" and not (tree / "new").exists()
    client.ed("create", tree / "new", file_text="\U0001f600 \\ud800")  # a pair, and a backslash before u
    assert (tree / "new").read_text() == "\U0001f600 \\ud800"


# ---- lines ----


def test_empty_file(client, file):  # C-043
    for params, after in [({"insert_line": 0}, "x\n"), ({"insert_line": 1}, "\nx")]:
        path = file("")
        assert numbered(client.ed("view", path)) == {1: ""}
        assert numbered(client.ed("view", path, view_range=[1, 1])) == {1: ""}
        client.ed("insert", path, new_str="x", **params)
        assert path.read_text() == after
    with refused(match="insert_line"):
        client.ed("insert", file(""), insert_line=2, new_str="x")


@pytest.mark.parametrize(
    "line, text, after",
    [
        (0, "z", "z\none\ntwo\n"),
        (2, "three", "one\ntwo\nthree\n"),
        (3, "z", "one\ntwo\n\nz"),
        (2, "three\n", "one\ntwo\nthree\n\n"),
        (1, "", "one\n\ntwo\n"),
    ],
)
def test_line_behind_the_last_newline(client, file, line, text, after):  # C-043
    path = file("one\ntwo\n")
    assert numbered(client.ed("view", path)) == {1: "one", 2: "two", 3: ""}
    assert numbered(client.ed("view", path, view_range=[3, 3])) == {3: ""}
    answer = client.ed("insert", path, insert_line=line, new_str=text)
    assert path.read_text() == after
    assert numbered(answer).items() <= dict(enumerate(after.split("\n"), 1)).items()


@pytest.mark.parametrize("line", [-1, 4, 2**40])
def test_insert_line_out_of_range(client, file, line):
    path = file("one\ntwo\n")
    with refused(match="0 to 3"):
        client.ed("insert", path, insert_line=line, new_str="x")
    assert path.read_text() == "one\ntwo\n"


def test_view_range(client, file):  # C-045
    path = file("1\n2\n3\n4\n5\n")
    whole = {1: "1", 2: "2", 3: "3", 4: "4", 5: "5", 6: ""}

    def lines(first, last):
        return {number: text for number, text in whole.items() if first <= number <= last}

    for view_range, expected in [
        ([2, 100], lines(2, 6)),
        ([3, -1], lines(3, 6)),
        ([6, 6], lines(6, 6)),
        ([2, 3], lines(2, 3)),
        ([], whole),
        (None, whole),
    ]:
        assert numbered(client.ed("view", path, view_range=view_range)) == expected
    for view_range in ([0, 2], [7, 8], [4, 2], [2, -2], [-1, 3], [1], [1, 2, 3]):
        with refused(match="view_range"):
            client.ed("view", path, view_range=view_range)
    for view_range in (["1", 2], [1.5, 2], [True, 2], [None, 2], "12", {}):
        with refused(PARAMERR, match="view_range"):
            client.ed("view", path, view_range=view_range)
    try:
        assert numbered(client.ed("view", path, view_range=[1, 9999999999999999999])) == whole
    except RpcError as error:
        assert error.code == PARAMERR
    assert str(path) in client.ed("view", path.parent, view_range=[1, 2])


def test_tabs_in_a_view(client, file):
    path = file("\ta\tb\n1234567\tc\n12345678\td\né\tx\n")
    assert numbered(client.ed("view", path)) == dict(enumerate(path.read_text().split("\n"), 1))
    assert client.ed("view", path).splitlines()[1].startswith("     1\t\ta")


def test_tabs_in_a_view_under_the_name_that_hosts_of_inspect_know(new_client, toolbox, file, workdir):
    (workdir / "inspect-sandbox-tools").symlink_to(toolbox)
    path = file("\ta\tb\n1234567\tc\n12345678\td\né\tx\n")
    expected = path.read_text().expandtabs().split("\n")
    assert numbered(new_client(binary=workdir / "inspect-sandbox-tools").ed("view", path)) == dict(enumerate(expected, 1))


@pytest.mark.parametrize("content, old, whole", [("\tif x:\n\t\ty\n", "        if x:\n                y", "\tif x:\n\t\ty"),
                                                 ("a\n\tb\n", "    b\n", "\tb\n"), ("  a  \nb\n", "a \nb", "  a  \nb")])
def test_white_space_that_differs_is_shown_of_both(client, file, content, old, whole):
    with refused(match=re.escape(f"{json.dumps(whole)}, and old_str is {json.dumps(old)}")):
        client.ed("str_replace", file(content), old_str=old, new_str="z")


@pytest.mark.parametrize(
    "content",
    ["x" * 40_000, "line\n" * 20_000, "é" * 40_000, "\t" * 40_000, "a\n" + "y" * 40_000],
    ids=["one line", "lines", "two bytes each", "tabs", "long second line"],
)
def test_long_views_are_cut(client, file, content):
    path = file(content)
    view = client.ed("view", path)
    assert 12_000 < len(view) < 17_000 or content.startswith("a")
    assert "view_range" in view and "\ufffd" not in view
    shown = numbered(view)
    expected = content.split("\n")
    assert all(expected[number - 1].startswith(text) for number, text in shown.items())
    if content.startswith("line"):  # whole lines, and how to go on
        after = max(shown) + 1
        assert f"[{after}, -1]" in view and shown[after - 1] == "line"
        left = len(content) - 5 * (after - 1)
        assert f"{left} more bytes" in view
        assert numbered(client.ed("view", path, view_range=[after, -1]))[after] == "line"


def test_view_of_exactly_the_limit(client, file):
    assert "Cut" not in client.ed("view", file("x" * (16_000 - 7 - 1)))
    assert "Cut" in client.ed("view", file("x" * (16_000 - 7 + 1)))


def test_snippet_has_four_lines_around(client, file):
    path = file("".join(f"{i}\n" for i in range(1, 31)))
    answer = client.ed("str_replace", path, old_str="15\n", new_str="a\nb\n")
    assert numbered(answer) == {
        11: "11",
        12: "12",
        13: "13",
        14: "14",
        15: "a",
        16: "b",
        17: "16",
        18: "17",
        19: "18",
        20: "19",
        21: "20",
    }
    client.ed("undo_edit", path)
    answer = client.ed("insert", path, insert_line=10, new_str="new")
    assert numbered(answer) == {
        7: "7",
        8: "8",
        9: "9",
        10: "10",
        11: "new",
        12: "11",
        13: "12",
        14: "13",
        15: "14",
    }
    answer = client.ed("undo_edit", path)
    assert numbered(answer)[11] == "11"


@pytest.mark.parametrize("head", ["x" * 50_000, "é" * 20_000, "x" * 50_000 + "\n", ("x" * 9_000 + "\n") * 4])
def test_snippet_shows_the_edit_beside_long_lines(client, file, head):
    path = file(f"{head}MARK{'y' * 50_000}\n")
    answer = client.ed("str_replace", path, old_str="MARK", new_str="edited")
    (line,) = [text for number, text in numbered(answer).items() if "edited" in text]
    before = line.partition("edited")[0]
    if head.endswith("\n"):
        assert before == ""
    else:
        assert before[0] == "…" and head.endswith(before[1:]) and "\ufffd" not in answer
        assert f"first {len(head.encode()) - len(before[1:].encode())} bytes of line 1" in answer
    assert "[Cut at 16000" in answer and len(answer) < 17_000


# ---- matching ----


def test_several_matches_are_listed(client, file):
    path = file("a = 1\nb = 2\na = 1\n\nx a = 1 a = 1\n")
    with refused(match=r"4 times.* lines 1, 3, 5\b"):
        client.ed("str_replace", path, old_str="a = 1", new_str="")
    path = file("a\r\nb\r\nc\r\na\r\nb\r\n")
    with refused(match=r"2 times.* lines 1, 4\b"):  # but for line ends
        client.ed("str_replace", path, old_str="a\nb", new_str="")
    path = file("same\n" * 1000)
    with refused(match="1000 times"):
        client.ed("str_replace", path, old_str="same", new_str="")
    assert path.read_text() == "same\n" * 1000


def test_replacement_is_taken_literally(client, file):
    path = file("cost: 5 & more\n")
    client.ed("str_replace", path, old_str="5 &", new_str="\\1 $1 & \\n %s \0")
    assert path.read_bytes() == b"cost: \\1 $1 & \\n %s \0 more\n"


def test_deletion(client, file):
    path = file("one\ntwo\nthree\n")
    client.ed("str_replace", path, old_str="two\n")
    assert path.read_text() == "one\nthree\n"
    client.ed("str_replace", path, old_str="one\nthree\n", new_str=None)
    assert path.read_text() == ""
    client.ed("undo_edit", path)
    client.ed("undo_edit", path)
    assert path.read_text() == "one\ntwo\nthree\n"
    with refused(match="empty"):
        client.ed("str_replace", path, old_str="", new_str="x")


@pytest.mark.parametrize(
    "content, old, words",
    [
        (
            "def f():\n\tif x:\n\t\treturn 1\n",
            "if x:\n        return 1",
            ["white space", "lines 2-3", r"\n\t\treturn 1"],
        ),
        ("def f():\n    return 1\n", "return  1", ["white space", "line 2"]),
        ("Hello World\n", "hello world", ["case", "line 1"]),
        ("a\n  Foo Bar\n", "foo  bar", ["white space", "case", "line 2"]),
        (
            "alpha\nint compute_total(int a, int b)\n{\n    return a + b;\n}\n",
            "int compute_totl(int a, int b)\n{",
            ["closest", "lines 2-3"],
        ),
        ("x\n\treturn a + b;\n", "retrun a", ["closest", "line 2"]),
        ("x\n" + "y" * 300 + " some_function(first) " + "y" * 300, "some_functoin(first)", ["closest", "line 2"]),
        ("one\ntwo\u00a0three\n", "two three", ["white space", "line 2", "a no-break space (U+00A0) where old_str has a space"]),
        ("say \u201chi\u201d\n", 'say "hi"', ["look alike", "line 1", "'\u201c' (U+201C) where old_str has '\"'"]),
        ("it\u2019s \u2013 so\n", "it's - so", ["look alike", "(U+2019)"]),
        ("x\ncafe\u0301 au lait\n", "caf\u00e9 au", ["look alike", "line 2", "accent behind it (U+0301)", "(U+00E9)", 'there it is (as a JSON string): "cafe\u0301 au"']),
        ("x\ncafé au lait\n", "cafe\u0301", ["look alike", "line 2", '"café"']),
        ("na\u200bme = 1\n", "name = 1", ["look alike", "can't be seen (U+200B)"]),
        ("a \u201cb\u201d\tc\n", 'a "b" c', ["white space and characters that look alike", "line 1"]),
        ("if x:\n\treturn\n", "if x:\n    return", ["white space", "line 2", "a tab where old_str has a space"]),
        ("one  \ntwo\n", "one\ntwo", ["white space", "The first difference, in line 1: blanks at the end of the line, where old_str has none"]),
        ("one\ntwo\n", "one \ntwo", ["no blanks at the end of the line, where old_str has some"]),
        ('x\nif a:\n\tprint("b")\n', r'if a:\n\tprint(\"b\")', ["escaped", "lines 2-3"]),
        ("one\ntwo\n", "     1\tone\n     2\ttwo", ["line numbers"]),
        ("one\ntwo\n", "nothing like it at all", ["View the file"]),
        ("", "x", ["View the file"]),
    ],
)
def test_near_misses_are_explained(client, file, content, old, words):
    path = file(content)
    with refused(match="does not occur") as caught:
        client.ed("str_replace", path, old_str=old, new_str="x")
    for word in words:
        assert word in caught.value.message
    assert path.read_text() == content


def test_every_place_is_replaced(client, file):
    path = file("".join(f"x{i} foo foo\n" for i in range(500)))
    before = path.read_bytes()
    with refused(match=r"occurs 1000 times in .*, in lines 1, 2, .*…\. .*`replace_all`"):
        client.ed("str_replace", path, old_str="foo", new_str="a\nb")
    with refused(match="occurs 1000 times .* expected_count is 999"):
        client.ed("str_replace", path, old_str="foo", new_str="a\nb", replace_all=True, expected_count=999)
    with refused(PARAMERR, match="expected_count"):
        client.ed("str_replace", path, old_str="foo", expected_count=0)
    with refused(match="does not occur"):
        client.ed("str_replace", path, old_str="nowhere", replace_all=True)
    assert path.read_bytes() == before
    said = client.ed("str_replace", path, old_str="foo", new_str="a\nb", replace_all=True)
    assert "1000 times, in lines 1, 2, 3," in said and numbered(said)[1] == "x0 a" and numbered(said)[2] == "b a"
    assert path.read_bytes() == before.replace(b"foo", b"a\nb")
    client.ed("undo_edit", path)
    assert path.read_bytes() == before
    client.ed("str_replace", path, old_str="x1 ", new_str="y", expected_count=1)
    client.ed("str_replace", path, old_str=" foo", new_str="", expected_count=999)
    assert path.read_bytes() == before.replace(b"x1 ", b"y").replace(b" foo", b"")


def test_create_over_a_file_and_with_its_directories(client, tree, file):
    path = file("old\n")
    path.chmod(0o640)
    before = identity(path)
    with refused(match="overwrite"):
        client.ed("create", path, file_text="new\n")
    assert "overwritten" in client.ed("create", path, file_text="new\n", overwrite=True)
    assert path.read_text() == "new\n" and identity(path)[1:] == before[1:]
    client.ed("undo_edit", path)
    assert path.read_text() == "old\n"
    deep = tree / "a" / "b" / "c.txt"
    with refused(match="directory"):
        client.ed("create", deep, file_text="x")
    client.ed("create", deep, file_text="x", parents=True, overwrite=True)
    assert deep.read_text() == "x"
    for where, why in [(path / "d" / "e", "can't be made|irectory"), (tree / "n" / "o" / ("f" * 300), "too long"), (tree / "a", "is a directory")]:
        with refused(match=why):
            client.ed("create", where, file_text="x", parents=True, overwrite=True)
    assert sorted(p.name for p in tree.iterdir()) == ["a", "file"]


# ---- directories ----


def test_directory_names(client, tree):  # C-046
    for name in ("a b", "$(touch pwn)", ";x", "-rf", "it's", "*", "ünï"):
        folder = tree / "v" / name
        folder.mkdir(parents=True)
        (folder / "file").touch()
        lines = client.rpc("text_editor", {"command": "view", "path": str(folder)}, cwd=tree).splitlines()
        assert str(folder) in lines and f"{folder}/file" in lines
    assert not (tree / "pwn").exists() and not (tree / "v" / "pwn").exists()


def test_directory_two_levels_sorted_without_hidden(client, tree):
    top = tree / ".top"
    for name in ("b/c/d", "a/.hid", ".hidden/x", "a-b", "a/z"):
        (top / name).mkdir(parents=True)
    (top / "link").symlink_to("b")
    (top / "gone").symlink_to("nowhere")
    lines = client.ed("view", top).splitlines()
    assert lines[1:] == sorted(
        str(top / name) if name else str(top) for name in ("", "a", "a-b", "a/z", "b", "b/c", "gone", "link")
    )
    assert client.ed("view", top / "link").splitlines()[1:] == [f"{top}/b", f"{top}/b/c", f"{top}/b/c/d"]
    for command, params in [
        ("str_replace", {"old_str": "a"}),
        ("insert", {"insert_line": 0, "new_str": "a"}),
        ("undo_edit", {}),
    ]:
        with refused(match="directory"):
            client.ed(command, top, **params)
    with refused(match="exists"):
        client.ed("create", top, file_text="")


def test_directory_with_odd_names(client, tree):
    for name in (b"new\nline", b"\xff\xfe", b"esc\x1b[31m", b"tab\t"):
        os.mkdir(os.fsencode(tree) + b"/" + name)
    lines = client.ed("view", tree).splitlines()
    assert f'"{tree}/new\\nline"' in lines and f'"{tree}/\\377\\376"' in lines
    assert f'"{tree}/esc\\033[31m"' in lines and f'"{tree}/tab\\t"' in lines


def test_names_that_json_cant_say(client, tree):
    """A listing shows such a name quoted, and takes it back in that form."""
    path = os.fsencode(tree) + b'/\xff\n\\"\x01'
    with open(path, "wb") as made:
        made.write(b"a\n")
    quoted = client.ed("view", tree).splitlines()[2]
    assert quoted == f'"{tree}/\\377\\n\\\\\\"\\001"'
    client.ed("str_replace", quoted, old_str="a", new_str="b")
    with open(path, "rb") as changed:
        assert changed.read() == b"b\n"
    client.ed("undo_edit", quoted)
    (tree / '"q"').write_text("literally")
    (tree / "q").write_text("not")
    assert "literally" in client.rpc("text_editor", {"command": "view", "path": '"q"'}, cwd=tree)


def test_directory_with_many_entries(client, tree):
    """Slow: 12,000 files are made and removed."""
    top = tree / "many"
    top.mkdir()
    for i in range(12_000):
        (top / f"{i:05}").touch()
    view = client.ed("view", top)
    lines = view.splitlines()
    assert len(view) < 17_000
    assert lines[1:101] == [str(top)] + [str(top / f"{i:05}") for i in range(99)]
    shown = len(lines) - 3
    assert f"{12_000 - shown} more entries" in lines[-1]


@needs_root
def test_unreadable_part_of_a_directory(new_client, tree):
    (tree / "open").mkdir()
    (tree / "closed").mkdir(mode=0o700)
    (tree / "closed" / "secret").touch()
    client = new_client(user=NOBODY_KNOWS)
    view = client.ed("view", tree)
    assert "secret" not in view and "closed can't be read" in view and f"{tree}/open" in view.splitlines()
    with refused(match="[Pp]ermission denied"):
        client.ed("view", tree / "closed")


def test_root_directory(client):
    lines = client.ed("view", "/").splitlines()
    assert lines[1] == "/" and "/etc" in lines and not any("//" in line for line in lines)


# ---- special files ----


def test_special_files(client, tree):  # C-048
    os.mkfifo(tree / "p")
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(tree / "s"))
        for path in (tree / "p", tree / "s", "/dev/zero", "/dev/tty"):
            started = time.monotonic()
            for command, params in [
                ("view", {}),
                ("str_replace", {"old_str": "a"}),
                ("undo_edit", {}),
                ("insert", {"insert_line": 0, "new_str": "x"}),
            ]:
                with refused(match="not a regular file"):
                    client.ed(command, path, **params)
            assert time.monotonic() - started < 30
    with refused(match="exists"):
        client.ed("create", "/dev/null", file_text="x")


def test_proc_and_sys(client):  # C-048
    assert "Name:" in client.ed("view", "/proc/self/status")
    assert numbered(client.ed("view", "/proc/self/status", view_range=[1, 1]))[1].startswith("Name:")
    path = "/sys/kernel/mm/transparent_hugepage/enabled"
    if os.path.exists(path):
        assert Path(path).read_text().strip() in client.ed("view", path)


@needs_root
def test_edit_of_a_proc_file(client):
    """Such a file takes its content in one write, and has no size."""
    path = Path("/proc/sys/kernel/domainname")
    before = path.read_text()
    try:
        path.write_text("before.example\n")
    except OSError as error:
        pytest.skip(f"/proc/sys is read-only here: {error}")
    try:
        client.ed("str_replace", path, old_str="before", new_str="after")
        assert path.read_text() == "after.example\n"
    finally:
        path.write_text(before)


def test_sparse_file(client, tree, toolbox):  # C-048
    path = tree / "sparse"
    with open(path, "wb") as sparse:
        sparse.truncate(20 << 30)
    limit = None if SANITIZED else lambda: resource.setrlimit(resource.RLIMIT_AS, (512 << 20, 512 << 20))
    view = client.rpc("text_editor", {"command": "view", "path": str(path)}, preexec_fn=limit)
    assert "Cut" in view and len(view) < 17_000
    with refused(match="has 1 line"):
        client.ed("view", path, view_range=[2, 3])
    with open(path, "r+b") as sparse:  # lines between holes
        for i in range(4):
            sparse.seek((i + 1) << 32)
            sparse.write(b"\nline %d\n" % i)
    assert numbered(client.ed("view", path, view_range=[4, 4])) == {4: "line 1"}
    for params in (
        {"command": "str_replace", "old_str": "x"},
        {"command": "insert", "insert_line": 0, "new_str": "x"},
    ):
        with refused(match="too large"):
            client.rpc("text_editor", {"path": str(path), **params}, preexec_fn=limit)
    assert path.stat().st_blocks < 1000


# ---- parameters ----


def test_parameters(client, tree):  # C-112
    path = str(tree / "f")
    for params, field in [
        ({}, "command"),
        ({"command": "view"}, "path"),
        ({"command": "cut", "path": path}, "command"),
        ({"command": 5, "path": path}, "command"),
        ({"command": "view", "path": 5}, "path"),
        ({"command": "create", "path": path}, "file_text"),
        ({"command": "create", "path": path, "file_text": None}, "file_text"),
        ({"command": "insert", "path": path, "insert_line": 1.0, "new_str": "x"}, "insert_line"),
        ({"command": "insert", "path": path, "insert_line": "1", "new_str": "x"}, "insert_line"),
        ({"command": "insert", "path": path, "insert_line": True, "new_str": "x"}, "insert_line"),
        ({"command": "insert", "path": path, "insert_line": 1}, "new_str"),
        ({"command": "insert", "path": path, "new_str": "x"}, "insert_line"),
        ({"command": "str_replace", "path": path, "new_str": "x"}, "old_str"),
        ({"command": "str_replace", "path": path, "old_str": "x", "new_str": 5}, "new_str"),
    ]:
        with refused(PARAMERR, match=field):
            client.rpc("text_editor", params)
    assert not os.path.exists(path)


def test_keys_of_other_commands_are_ignored(client, tree):
    nulls = dict.fromkeys(("file_text", "insert_line", "insert_text", "new_str", "old_str", "view_range"))
    path = tree / "f"
    client.ed("create", path, **{**nulls, "file_text": "a\n"})
    client.ed(
        "str_replace", path, **{**nulls, "old_str": "a", "new_str": "b", "insert_line": "x", "unknown": [1]}
    )
    client.ed("insert", path, **{**nulls, "insert_line": 1, "insert_text": "c"})
    assert path.read_text() == "b\nc\n"
    client.ed("view", path, **nulls)
    client.ed("undo_edit", path, **nulls)
    assert path.read_text() == "b\n"


# ---- undo ----


def test_undo_is_ten_deep(client, file):  # C-050
    path = file("v0\n")
    for i in range(12):
        client.ed("str_replace", path, old_str=f"v{i}", new_str=f"v{i + 1}")
    for i in range(11, 1, -1):
        client.ed("undo_edit", path)
        assert path.read_text() == f"v{i}\n"
    for _ in range(3):
        with refused(match=r"\b10\b"):
            client.ed("undo_edit", path)
    assert path.read_text() == "v2\n"


def test_undo_of_create(client, tree):  # C-050
    path = tree / "f"
    client.ed("create", path, file_text="x")
    answer = client.ed("undo_edit", path)
    assert not path.exists() and "changed" not in answer
    client.ed("create", path, file_text="x")
    path.unlink()
    with refused(match="does not exist"):
        client.ed("undo_edit", path)
    client.ed("create", path, file_text="y")
    client.ed("str_replace", path, old_str="y", new_str="z")
    client.ed("undo_edit", path)
    client.ed("undo_edit", path)
    assert not path.exists()


def test_undo_after_outside_changes(client, file):  # C-050
    path = file("v0\n")
    answer = client.ed("str_replace", path, old_str="v0", new_str="v1")
    for other in ("something else\n", "v9\n", "v1\n\n", "w1\n"):
        path.write_text(other)
        answer = client.ed("undo_edit", path)
        assert path.read_text() == "v0\n" and "changed" in answer
        client.ed("str_replace", path, old_str="v0", new_str="v1")
    path.write_text("v1\n")  # as it was
    assert "changed" not in client.ed("undo_edit", path)
    client.ed("str_replace", path, old_str="v0", new_str="v1")
    path.unlink()
    path.write_text("a new file\n")  # as editors do that write beside and rename
    client.ed("undo_edit", path)
    assert path.read_text() == "v0\n"


def test_undo_without_edits(client, file):
    path = file("x")
    with refused(match=r"\b10\b"):
        client.ed("undo_edit", path)


def test_undo_of_a_moved_file(client, file, tree):
    path = file("v0\n")
    client.ed("str_replace", path, old_str="v0", new_str="v1")
    path.rename(tree / "moved")
    client.ed("undo_edit", tree / "moved")
    assert (tree / "moved").read_text() == "v0\n"


def test_old_file_that_is_still_written_to(client, file):
    """A program that had the file open before the edit goes on writing into the old one."""
    path = file("v0\n")
    with open(path, "ab", buffering=0) as log:
        client.ed("str_replace", path, old_str="v0", new_str="v1")
        log.write(b"behind\n")
        client.ed("undo_edit", path)  # the old content is still there
    assert path.read_text() == "v0\n"
    with open(path, "r+b", buffering=0) as other:
        client.ed("str_replace", path, old_str="v0", new_str="v1")
        other.write(b"V")
        with refused(match="another program"):
            client.ed("undo_edit", path)
    assert path.read_text() == "v1\n"


def test_edit_without_change_is_an_edit(client, file):
    path = file("a b\n")
    assert "is the same" not in client.ed("str_replace", path, old_str="a", new_str="A")
    assert "is the same" in client.ed("str_replace", path, old_str="b", new_str="b")
    client.ed("undo_edit", path)
    assert path.read_text() == "A b\n"
    client.ed("undo_edit", path)
    assert path.read_text() == "a b\n"


def test_undo_back_and_forth_restores_what_an_outsider_also_restored(client, file):
    path = file("v0\n")
    client.ed("str_replace", path, old_str="v0", new_str="v1")
    client.ed("str_replace", path, old_str="v1", new_str="v2")
    path.write_text("v1\n")
    client.ed("undo_edit", path)
    assert path.read_text() == "v1\n"


def test_the_store_is_private(client, file):
    client.ed("str_replace", file("v0\n"), old_str="v0", new_str="v1")
    assert store(client)
    for folder in (client.dir, client.dir / "undo"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def store(client):
    return sorted((client.dir / "undo").iterdir())


def damage_entry(entry, how):
    """What may have become of an entry of the undo history or the journal."""
    data = bytearray(entry.read_bytes())
    if how == "cut":
        entry.write_bytes(data[:-1])
    elif how == "flip":
        data[-2] ^= 1
        entry.write_bytes(data)
    elif how == "empty":
        entry.write_bytes(b"")
    else:
        entry.unlink()
        if how == "link":
            entry.symlink_to("/dev/null")
        elif how == "FIFO":
            os.mkfifo(entry)
        elif how == "directory":
            entry.mkdir()


DAMAGES = ["cut", "flip", "empty", "link", "FIFO", "directory"]


@pytest.mark.parametrize("moved", [False, True], ids=["here", "moved"])
@pytest.mark.parametrize("how", DAMAGES)
def test_damaged_entry(client, file, tree, how, moved):
    """The last edit is the one that can't be undone, however often that is asked for; the way out is told."""
    path = file("v0\n")
    client.ed("str_replace", path, old_str="v0", new_str="v1")
    before = store(client)
    client.ed("str_replace", path, old_str="v1", new_str="v2")
    (entry,) = set(store(client)) - set(before)
    damage_entry(entry, how)
    if moved:
        path = path.rename(tree / "moved")
    for _ in range(2):
        with refused(match="damaged") as told:
            client.ed("undo_edit", path)
        assert path.read_text() == "v2\n" and f"remove {entry} " in str(told.value)
    client.ed("str_replace", path, old_str="v2", new_str="v3")  # a later edit can be taken back, no further
    client.ed("undo_edit", path)
    assert path.read_text() == "v2\n"
    with refused(match="no edit" if moved else "damaged"):
        client.ed("undo_edit", path)
    entry.rmdir() if how == "directory" else entry.unlink()
    if not moved:
        client.ed("undo_edit", path)
        assert path.read_text() == "v0\n"


@pytest.mark.parametrize("made", [False, True], ids=["not made", "made"])
@pytest.mark.parametrize("state", [".new", ".undo"])
def test_damaged_entry_of_an_interrupted_edit(client, file, state, made):
    """What was interrupted, and is damaged as well: it stands for the edit only where that one is in the file."""
    path = file("v0\n")
    client.ed("str_replace", path, old_str="v0", new_str="v1")
    before = store(client)
    client.ed("str_replace", path, old_str="v1", new_str="v2")
    (entry,) = set(store(client)) - set(before)
    entry.write_bytes(b"")
    entry.rename(f"{entry}{state}")
    if not made:
        path.unlink()
        path.write_text("v1\n")
        client.ed("undo_edit", path)
        assert path.read_text() == "v0\n"
        return
    for _ in range(2):
        with refused(match="damaged"):
            client.ed("undo_edit", path)
        assert path.read_text() == "v2\n"


@needs_root
@pytest.mark.parametrize("mode", [0o600, 0o644])
def test_entry_of_somebody_else(client, as_user, mode):
    """One that can't be read any more refuses as well; who owns what was the old file is no matter."""
    user, ed = as_user
    path = Path(user.home) / "entry-of-root"
    try:
        path.write_text("v0\n")
        os.chown(path, user.uid, user.gid)
        ed("str_replace", path, old_str="v0", new_str="v1")
        ed("str_replace", path, old_str="v1", new_str="v2")
        stores = [Path(f"/tmp/.toolbox-{user.uid}/undo"), Path(f"/run/user/{user.uid}/toolbox/undo")]
        entry = max((e for top in stores if top.is_dir() for e in top.iterdir()),
                    key=lambda e: int(e.name.split("-")[2], 16))
        os.chown(entry, 0, 0)
        entry.chmod(mode)
        if mode == 0o644:
            ed("undo_edit", path)
            assert path.read_text() == "v1\n"
            return
        for _ in range(2):
            with refused(match="can't be, as .*denied"):
                ed("undo_edit", path)
            assert path.read_text() == "v2\n"
    finally:
        path.unlink(missing_ok=True)


def test_store_with_rubbish_in_it(client, file, tree):
    path = file("v0\n")
    client.ed("str_replace", path, old_str="v0", new_str="v1")
    top = client.dir / "undo"
    (top / "README").write_text("x")
    (top / ("0" * 16)).mkdir()
    os.mkfifo(top / "0123456789abcdef-0123456789abcdef-9-5")
    (top / "0123456789abcdef-0123456789abcdef-a-5").symlink_to(path)
    client.ed("str_replace", path, old_str="v1", new_str="v2")
    client.ed("undo_edit", path)
    client.ed("undo_edit", path)
    assert path.read_text() == "v0\n"


@pytest.mark.parametrize("hostile", ["symlink", "file", "mode"])
def test_hostile_store(client, file, tree, hostile):
    """A store that can't be trusted is not used; the edit is done and says that it can't be undone."""
    path = file("v0\n")
    elsewhere = tree / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    client.dir.mkdir(mode=0o700)
    top = client.dir / "undo"
    if hostile == "symlink":
        top.symlink_to(elsewhere)
    elif hostile == "file":
        top.touch()
    else:
        top.mkdir()
        top.chmod(0o777)
    answer = client.ed("str_replace", path, old_str="v0", new_str="v1")
    assert path.read_text() == "v1\n" and "can't be undone" in answer
    assert os.listdir(elsewhere) == []
    with refused():
        client.ed("undo_edit", path)
    assert "can't be undone" in client.ed("create", tree / "new", file_text="x")
    if hostile == "mode":
        assert stat.S_IMODE(top.stat().st_mode) == 0o777


def test_no_store_at_all(client, file, tree):
    client.env["TOOLBOX_DIR"] = "/proc/nowhere"
    path = file("v0\n")
    answer = client.ed("str_replace", path, old_str="v0", new_str="v1")
    assert path.read_text() == "v1\n" and "can't be undone" in answer
    with refused(match="no edit"):
        client.ed("undo_edit", path)
    os.link(path, tree / "link")
    answer = client.ed("str_replace", path, old_str="v1", new_str="v2")  # in place
    assert path.read_text() == "v2\n" and "can't be undone" in answer
    client.env["TOOLBOX_DIR"] = str(client.dir)


# ---- the size of the history ----


def test_history_is_limited(client, tree):
    """256 MB, the oldest dropped first, of whatever file. Slow: 600 MB are written."""
    size = 30 << 20
    old, paths = tree / "old", [tree / f"big{i}" for i in range(9)]
    old.write_text("v0\n")
    client.ed("str_replace", old, old_str="v0", new_str="v1")
    for path in paths:
        path.write_bytes(b"head\n" + bytes(size))
        client.ed("str_replace", path, old_str="head", new_str="HEAD")
    assert sum(path.stat().st_size for path in store(client)) <= 256 << 20
    with refused(match="no edit"):
        client.ed("undo_edit", old)
    with refused(match="no edit"):
        client.ed("undo_edit", paths[0])
    client.ed("undo_edit", paths[-1])
    assert paths[-1].read_bytes()[:5] == b"head\n"
    too_large = tree / "huge"
    with open(too_large, "wb") as huge:
        huge.write(b"head\n")
        huge.truncate(260 << 20)
    assert "can't be undone" in client.ed("str_replace", too_large, old_str="head", new_str="HEAD")


# ---- as another user ----


@pytest.fixture
def as_user(client, user, tree):
    """The user, and a way to edit as him; his own store is removed at the end."""
    yield user, lambda command, path, **params: client.ed(command, path, _run_as_user=user.name, **params)
    for place in (
        f"/tmp/.toolbox-{user.uid}",
        f"/var/tmp/.toolbox-{user.uid}",
        f"/dev/shm/.toolbox-{user.uid}",
        f"{user.home}/.cache/toolbox",
    ):
        shutil.rmtree(place, ignore_errors=True)


@needs_root
def test_as_another_user(client, as_user, tree):  # C-054
    user, ed = as_user
    path = Path(user.home) / "x"
    try:
        ed("create", path, file_text="mine\n")
        assert (path.stat().st_uid, path.stat().st_gid) == (user.uid, user.gid)
        assert "mine" in ed("view", path)
        client.ed("str_replace", path, old_str="mine", new_str="root's")
        ed("undo_edit", path)  # his own last edit: the creation
        assert not path.exists()
    finally:
        path.unlink(missing_ok=True)
    assert len(store(client)) == 1  # of root's own edit


@needs_root
def test_groups_of_the_other_user(client, as_user, tree):
    user, ed = as_user
    path = tree / "shared"
    path.write_text("a\n")
    os.chown(path, 0, user.groups[0])
    path.chmod(0o660)
    ed("str_replace", path, old_str="a", new_str="b")
    assert path.read_text() == "b\n" and path.stat().st_uid == 0


@needs_root
def test_the_other_user_may_no_more_than_he_may(client, as_user, tree):  # C-054
    user, ed = as_user
    secret = tree / "secret"
    secret.write_text("secret\n")
    secret.chmod(0o600)
    for command, params in [
        ("view", {}),
        ("str_replace", {"old_str": "secret", "new_str": "x"}),
        ("undo_edit", {}),
    ]:
        with refused(match="[Pp]ermission denied"):
            ed(command, secret, **params)
    secret.chmod(0o644)
    with refused(match="[Pp]ermission denied"):
        ed("str_replace", secret, old_str="secret", new_str="x")
    folder = tree / "d"
    folder.mkdir()
    with refused(match="[Pp]ermission denied"):
        ed("create", folder / "new", file_text="x")
    assert secret.read_text() == "secret\n" and os.listdir(folder) == []


@needs_root
def test_users_that_are_none(client, tree):  # C-054
    path = tree / "f"
    for name, code in [
        (5, PARAMERR),
        (True, PARAMERR),
        (["u"], PARAMERR),
        ("", TOOLERR),
        ("nobody-such", TOOLERR),
        ("root\0", PARAMERR),
    ]:
        with refused(code, match="user|_run_as"):
            client.ed("create", path, file_text="x", _run_as_user=name)
        if not isinstance(name, list):
            with refused(code, match="user|_run_as"):
                client.ed("create", path, file_text="x", _run_as=name)
    for numbers in (
        {"uid": 5},
        {"uid": -1, "gid": 5},
        {"uid": "5", "gid": 5},
        {"uid": 4294967295, "gid": 1},
        {"uid": 5, "gid": 5, "groups": ["x"]},
        {"uid": 5, "gid": 5, "groups": [], "shell": "/bin/sh"},
    ):
        with refused(PARAMERR):
            client.ed("create", path, file_text="x", _run_as=numbers)
    assert not path.exists()


@needs_root
def test_user_by_numbers(client, tree):
    path = tree / "f"
    try:
        client.ed(
            "create",
            path,
            file_text="x",
            _run_as={"uid": NOBODY_KNOWS, "gid": 777, "groups": [777, 888], "home": None},
        )
        assert (path.stat().st_uid, path.stat().st_gid) == (NOBODY_KNOWS, 777)
    finally:
        shutil.rmtree(f"/tmp/.toolbox-{NOBODY_KNOWS}", ignore_errors=True)


def test_own_name_needs_no_privilege(client, tree):
    client.ed("create", tree / "f", file_text="x", _run_as_user=str(os.geteuid()))
    client.ed("undo_edit", tree / "f")
    assert not (tree / "f").exists()


@needs_root
def test_without_privilege_nothing_is_done(new_client, tree):
    client = new_client(user=NOBODY_KNOWS)
    with refused():
        client.ed("create", tree / "f", file_text="x", _run_as_user="root")
    assert not (tree / "f").exists()
