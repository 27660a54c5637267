"""bash_session_run: one command, exactly its output, its true status."""
import hashlib
import shlex
import time

import pytest

from harness.client import PARAMERR, TOOLERR, RpcError
from harness.processes import wait_until
from harness.server import status
from harness.sessions import AT_ONCE, read_until, split_omitted

MEMBERS = {"state", "exit_code", "output", "cwd", "duration_ms", "omitted_bytes"}


def busy(shell, match="busy"):
    """The next run is refused, with words that say what to do."""
    with pytest.raises(RpcError, match=match) as caught:
        shell.run("echo never")
    assert caught.value.code == TOOLERR and "restart" in caught.value.message
    return caught.value.message


# ---- what comes back ----


def test_the_result(shell, workdir):
    result = shell.run(f"cd {workdir}; echo out; echo err >&2; sleep 0.3; (exit 3)")
    assert set(result) == MEMBERS
    assert 250 < result.pop("duration_ms") < 10_000
    assert result == {"state": "completed", "exit_code": 3, "output": "out\nerr\n", "cwd": str(workdir),
                      "omitted_bytes": 0}


@pytest.mark.parametrize("command, output", [
    ("true", ""), ("echo hi", "hi\n"), ("printf x", "x"), ("printf '\\n\\n'", "\n\n"), ("printf 'a\\nb'", "a\nb"),
    ("", ""), ("   ", ""),
    ("# nothing", ""), ("echo '> '", "> \n"), ("printf '%s' \"$PS1\" | wc -l", "0\n"), ("echo é 😀", "é 😀\n"),
    ("printf '\\303'", "�"),
    ("printf '\\033[31mred\\033[0m'", "red"), ("printf '\\033]0;open'", ""), ("printf '\\001\\002x\\n'", "x\n"),
    ("echo \"$(seq 3)\"", "1\n2\n3\n"), ("echo hi;", "hi\n"), ("echo hi\n\n\n", "hi\n"), ("\n\necho hi", "hi\n"),
    ("echo one; echo two\n", "one\ntwo\n"), ("echo \\\\x", "\\x\n"), ("echo 'a'\"b\"$'c'", "abc\n"),
    ("echo hi # there", "hi\n"),
    ("echo \"!!\" '!x' !y ^a^b", "!! !x !y ^a^b\n"), ("echo {a,b}{1..2} ~root", "a1 a2 b1 b2 /root\n"),
    ("echo hi \\\nthere", "hi there\n"),
], ids=repr)
def test_exactly_its_output(shell, command, output):
    assert shell.out(command) == output
    shell.works()


def test_text_that_looks_like_a_prompt_or_a_marker(shell):
    assert shell.out("printf '%s' \"${PS1@P}\"; sleep 0.2; echo; echo more; echo '[12 bytes omitted]'").endswith("\nmore\n[12 bytes omitted]\n")
    assert shell.out("for i in 1 2 3; do printf 'root@vm:/# '; sleep 0.1; done") == "root@vm:/# " * 3


@pytest.mark.parametrize("status", [0, 1, 2, 42, 126, 127, 128, 255])
def test_the_true_status(shell, status):
    shell.out(f"(exit {status})", status)
    assert shell.out("echo $?") == f"{status}\n"


@pytest.mark.parametrize("command, status", [
    ("no-such-program-at-all", 127), ("/etc/passwd", 126), ("sh -c 'kill -9 $$'", 137), ("sh -c 'kill -TERM $$'", 143),
    ("false | true", 0),
    ("true | false", 1), ("! true", 1), ("[ 1 = 2 ]", 1), ("((0))", 1), ("x=$(exit 9)", 9), ("false; true", 0),
    ("f() { return 77; }; f", 77),
    ("set -o pipefail; (exit 4) | true; x=$?; set +o pipefail; (exit $x)", 4), ("cd /nowhere", 1), ("echo )", 2),
    ("fi", 2),
    ("${x:?gone}", 1), ("echo ${", None), ("return 3", 1), ("break", 0), ("let 1/0", 1), ("exec /nowhere", 127),
])
def test_the_status_of_all_kinds(shell, command, status):
    result = shell.run(command)
    if status is None or result["state"] == "awaiting_input":
        assert result["state"] == "awaiting_input" and status is None
        shell.at_once("\x03")
    elif command != "return 3":
        assert (result["state"], result["exit_code"]) == ("completed", status), result
    shell.works()


def test_runs_in_a_row(shell):
    for i in range(150):
        assert shell.out(f"echo {i}; (exit {i % 7})", i % 7) == f"{i}\n"


def test_the_directory_after_it(shell, workdir):
    for name in ("with blank", "ü", "new\nline", "$(x)", "'quote\""):
        folder = workdir / name
        folder.mkdir()
        assert shell.run(f"cd {shlex.quote(str(folder))}")["cwd"] == str(folder)
    assert shell.run("cd /; cd /tmp; cd -")["cwd"] == "/"
    (workdir / "link").symlink_to("/usr")
    assert shell.run(f"cd {workdir}/link")["cwd"] == f"{workdir}/link"
    gone = workdir / "gone"
    gone.mkdir()
    shell.run(f"cd {gone}")
    assert shell.run(f"rmdir {gone}; echo hi")["output"] == "hi\n"
    assert shell.run("cd /")["cwd"] == "/"


# ---- the text of the command ----


def test_many_lines(shell):
    assert shell.out("echo a\nfalse\necho c") == "a\nc\n"
    assert shell.out("if true\nthen\n\techo yes\nfi\n") == "yes\n"
    assert shell.out("for i in 1 2 3; do\n  echo $i\ndone") == "1\n2\n3\n"
    assert shell.out("f() {\n\tlocal x=1\n\techo \"x=$x\"\n\treturn 5\n}\nf", 5) == "x=1\n"
    assert shell.out("echo 'one\n\ttwo\n  three'") == "one\n\ttwo\n  three\n"
    assert shell.out("x=1\n\n# comment\n\necho $x\n(exit 4)", 4) == "1\n"
    assert shell.out("\n".join(f"echo {i}" for i in range(300))) == "".join(f"{i}\n" for i in range(300))
    assert shell.out("case x in\nx) echo is;;\nesac\nwhile false; do :; done") == "is\n"


def test_here_documents(shell):
    assert shell.out("cat <<E\nhome is $((6 * 7))\n\tkept\nE") == "home is 42\n\tkept\n"
    assert shell.out("cat <<'E'\n$x `y` \\z\nE\necho after") == "$x `y` \\z\nafter\n"
    assert shell.out("cat <<-E\n\t\tleft\n\tE") == "left\n"
    assert shell.out("cat <<A <<B; echo end\na\nA\nb\nB") == "b\nend\n"
    assert shell.out("python3 - <<'E'\nfor i in range(2):\n    print(i)\nE\necho rc=$?") == "0\n1\nrc=0\n"
    assert shell.out("cat <<< word") == "word\n"


def test_control_characters_in_the_command(shell):
    text = "a\x01\x02\x03\x04\x05\x07\x08\x0b\x0c\x0d\x0e\x0f\x10\x11\x12\x13\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f\x7fb"
    expected = "".join(f" {byte:02x}" for byte in text.encode())
    assert shell.out(f"printf %s '{text}' | od -An -v -tx1 -w99").rstrip("\n") == expected
    assert shell.out("printf %s 'a\tb\t\tc' | od -An -tx1") == " 61 09 62 09 09 63\n"
    assert shell.out("printf %s 'x\x1b[201~y\x1b[200~z' | wc -c") == "15\n"
    assert shell.out("cat <<'E' | od -An -tx1\n\ta\rb\x1b\nE") == " 09 61 0d 62 1b 0a\n"
    shell.works()


def test_carriage_returns_of_another_world(shell):
    """Lines that end with CRLF are no worse than in a script file: nothing hangs."""
    assert shell.run("echo a\r\necho b\r\n")["state"] == "completed"
    shell.works()


def test_a_nul_in_the_command_is_refused(shell):
    with pytest.raises(RpcError) as caught:
        shell.run("echo a\0b")
    assert caught.value.code in (PARAMERR, TOOLERR)
    shell.works()


@pytest.mark.parametrize("size", [3000, 4095, 4096, 5000, 100_000])
def test_long_commands(shell, size):
    assert shell.out(f"echo {'x' * size} | wc -c", timeout=50) == f"{size + 1}\n"
    text = "".join(f"{i:079d}\n" for i in range(size // 80))
    assert shell.out(f"cat <<'E' | sha1sum | wc -l; cat <<'E' | wc -c\n{text}E\n{text}E",
                     timeout=50) == f"1\n{len(text)}\n"


def test_a_megabyte_of_command(shell):
    text = "".join(f"{i:079d}\n" for i in range(12_500))
    assert shell.out(f"cat <<'E' | sha1sum\n{text}E", timeout=50).split()[0] == hashlib.sha1(text.encode()).hexdigest()


def test_a_long_command_is_not_garbled(shell, workdir):
    text = "".join(f"{i:06d} é😀\t'\"$`\\\n" for i in range(3_000))
    assert shell.out(f"cat > {workdir}/o <<'E'\n{text}E", timeout=50) == ""
    assert (workdir / "o").read_text() == text


@pytest.mark.parametrize("command",
                         ["echo )", "fi", "for", "if true; fi", "echo a; ; echo b", "case x in", "&&", "x=(",
                          pytest.param("[[ a", marks=pytest.mark.xfail(
                              reason="bash prompts without its prompt commands: no status (5.2.15 does, 5.2.37 doesn't)"))])
def test_syntax_errors(shell, command):
    """Slow: the one that is known to fail is waited for."""
    result = shell.run(command)
    if result["state"] == "awaiting_input":
        shell.at_once("\x03")
    else:
        assert (result["state"], result["exit_code"]) == ("completed", 2) and "syntax error" in result["output"], result
    shell.works()


def test_a_syntax_error_behind_other_lines(shell):
    result = shell.run("echo before\necho )\n")
    assert result["state"] == "completed" and result["output"].startswith("before\n") and "syntax error" in result["output"]
    shell.works()


@pytest.mark.parametrize("command",
                         ["echo \"open", "echo 'open", "cat <<E\ntext", "echo `open", "if true; then", "echo a \\",
                          "(", "f() {"])
def test_an_unfinished_command(shell, command):
    """It waits for the rest, at once, as it does for a person."""
    began = time.monotonic()
    result = shell.run(command, timeout=30)
    assert result["state"] == "awaiting_input" and result["exit_code"] is None and time.monotonic() - began < AT_ONCE
    busy(shell)
    shell.at_once("\x03")
    shell.works()


def test_an_unfinished_command_can_be_finished(shell):
    assert shell.run("cat <<E\none")["state"] == "awaiting_input"
    assert shell.at_once("two\nE\n").endswith("one\ntwo\n" + shell.prompt)
    shell.works()


# ---- time ----


def test_timeout_then_busy_then_the_rest(shell):
    result = shell.run("echo first; sleep 1; echo second; (exit 9)", timeout=0.5)
    assert (result["state"], result["exit_code"], result["output"]) == ("timeout", None, "first\n")
    assert 400 < result["duration_ms"] < 10_000
    assert "sleep" in busy(shell)
    assert read_until(shell, shell.prompt) == "second\n" + shell.prompt
    assert shell.out("echo $?") == "9\n"
    shell.works()


def test_after_a_timeout_nobody_has_to_read(shell):
    """The rest of the output is the next read's; the next run has its own alone."""
    assert shell.run("sleep 0.6; echo late", timeout=0.1)["state"] == "timeout"
    wait_until(lambda: shell.listed()["state"] == "prompt", "the command's end")
    assert shell.out("echo own") == "own\n"
    assert shell.bs().startswith("late\n")


def test_after_a_timeout_it_can_be_interrupted(shell):
    assert shell.run("sleep 60", timeout=0.1)["state"] == "timeout"
    assert shell.at_once("\x03").endswith(shell.prompt)
    shell.works()


def test_after_a_timeout_it_can_be_restarted(shell):
    assert shell.run("sleep 60", timeout=0.1)["state"] == "timeout"
    shell.restart()
    shell.works()


def test_a_timeout_of_zero_returns_at_once(shell):
    began = time.monotonic()
    assert shell.run("sleep 60", timeout=0)["state"] == "timeout" and time.monotonic() - began < AT_ONCE
    wait_until(lambda: shell.listed()["foreground"] == "sleep", "sleep to run")
    shell.at_once("\x03")
    shell.works()


def test_a_timeout_longer_than_the_command(shell):
    assert shell.out("echo hi", timeout=60) == "hi\n"


def wait_on(shell, **more):
    """bash_session_run without a command: waits on for the last one."""
    return shell.client.rpc("bash_session_run", {"session_name": shell.name, **more})


def test_waiting_on_for_a_command(shell):
    assert shell.run("echo one; sleep 0.5; echo two; sleep 0.5; echo three; (exit 9)",
                     timeout=0.25)["state"] == "timeout"
    result = wait_on(shell, timeout=0.5)
    assert (result["state"], result["exit_code"], result["output"]) == ("timeout", None, "two\n")
    result = wait_on(shell)
    assert (result["state"], result["exit_code"], result["output"]) == ("completed", 9, "three\n")
    with pytest.raises(RpcError, match="no command") as caught:
        wait_on(shell)
    assert caught.value.code == TOOLERR
    shell.works()


def test_waiting_on_for_a_command_that_has_ended(shell):
    assert shell.run("sleep 0.3; echo late; (exit 9)", timeout=0.1)["state"] == "timeout"
    wait_until(lambda: shell.listed()["state"] == "prompt", "the command's end")
    result = wait_on(shell)
    assert (result["state"], result["exit_code"], result["output"]) == ("completed", 9, "late\n")
    assert shell.bs(wait=0) in ("", shell.prompt)
    shell.works()


def test_waiting_on_after_an_answer_to_a_question(shell):
    assert shell.run("read x; sleep 0.3; echo got $x; (exit 6)")["state"] == "awaiting_input"
    assert wait_on(shell)["state"] == "awaiting_input"
    shell.bs("text\n", wait=0, idle=0)
    result = wait_on(shell, timeout=20)
    assert (result["state"], result["exit_code"], result["output"]) == ("completed", 6, "got text\n")


def test_waiting_on_where_nothing_ran(shell):
    for call in (lambda: wait_on(shell), lambda: shell.out("echo hi") and wait_on(shell)):
        with pytest.raises(RpcError, match="no command") as caught:
            call()
        assert caught.value.code == TOOLERR
    shell.works()


@pytest.mark.parametrize("command",
                         ["sleep 0.4; echo END", "sleep 0.4 & wait; echo END", "x=$(sleep 0.4; echo END); echo $x",
                                     "python3 -c 'import time; time.sleep(0.4)'; echo END",
                                     "read -t 0.4 x < <(sleep 1); echo END",
                                     "sleep 0.4 | cat; echo END", "sleep 0.2\nsleep 0.2\necho END",
                                     "cat <(sleep 0.4; echo END)"])
def test_never_early(shell, command):
    assert shell.out(command).endswith("END\n")
    shell.works()


# ---- programs that read the terminal ----


@pytest.mark.parametrize("command, shown, typed, rest", [
    ("cat", "", "line\n\x04", "line\n"),
    ("read x; echo got $x", "", "text\n", "got text\n"),
    ("read -p 'name? ' x\necho got $x", "name? ", "text\n", "got text\n"),
    ("python3 -c 'print(input(\"name? \"))'", "name? ", "text\n", "text\n"),
    ("python3 -c 'import getpass; print(getpass.getpass())'", "Password: ", "text\n", "\ntext\n"),
    ("sh -c 'read x </dev/tty; echo got $x'; echo after", "", "text\n", "got text\nafter\n"),
    ("bash --norc -c 'read -n 1 x; echo got $x'", "", "y", "got y\n"),
    ("echo a; cat >/dev/null; echo b", "a\n", "\x04", "b\n"),
])
def test_a_program_that_asks(shell, command, shown, typed, rest):
    began = time.monotonic()
    result = shell.run(command, timeout=30)
    assert time.monotonic() - began < AT_ONCE
    assert (result["state"], result["exit_code"], result["output"]) == ("awaiting_input", None, shown)
    busy(shell)
    assert shell.at_once(typed) == rest + shell.prompt
    shell.works()


def test_a_program_that_asks_can_be_left_alone(shell):
    assert shell.run("cat")["state"] == "awaiting_input"
    assert "cat" in busy(shell)
    shell.at_once("\x03")
    shell.works()


def test_a_shell_in_the_shell(shell):
    """It is a program that waits for input, and is given commands; when it is left, all is as before."""
    assert shell.run("bash --norc")["state"] == "awaiting_input"
    assert shell.run("echo $SHLVL; (exit 3)")["exit_code"] == 3
    assert "inner\n" in shell.at_once("echo inner\n")
    assert shell.at_once("exit\n").endswith(shell.prompt)
    shell.works()


# ---- the output, when it is much ----


def test_head_and_tail_are_kept(shell):
    result = shell.run("seq 10000001 11000000", max_output_bytes=10_000)
    assert result["state"] == "completed" and len(result["output"].encode()) <= 10_000 + 64
    kept, omitted = split_omitted(result["output"])
    assert kept.startswith("10000001\n10000002\n") and kept.endswith("10999999\n11000000\n")
    assert result["omitted_bytes"] == omitted and len(kept) + omitted == 1_000_000 * 9


@pytest.mark.parametrize("cap", [1, 2, 7, 64, 1000])
def test_caps_are_exact_and_cut_no_character(shell, cap):
    result = shell.run("printf '%.0s€' {1..5000}", max_output_bytes=cap)
    kept, _ = split_omitted(result["output"])
    assert kept == "€" * len(kept) and len(kept.encode()) <= cap
    assert len(kept.encode()) + result["omitted_bytes"] == 15_000
    assert shell.run("printf '%.0s€' {1..300}", max_output_bytes=900)["omitted_bytes"] == 0


def test_no_cap_is_ten_mebibytes(shell):
    result = shell.run("head -c 12000000 /dev/zero | tr '\\0' x")
    kept, omitted = split_omitted(result["output"])
    assert len(kept) + omitted == 12_000_000 and omitted == result["omitted_bytes"] and len(kept) > (10 << 20) - 200


def test_a_flood_until_the_timeout(shell):
    result = shell.run("yes", timeout=0.5, max_output_bytes=1000)
    assert result["state"] == "timeout" and result["omitted_bytes"] > 0 and len(result["output"]) < 1100
    read_until(shell, shell.prompt, shell.bs("\x03", max_output_bytes=100))
    shell.works()


def test_a_shell_that_has_stopped_itself(shell):
    """Nobody is there to continue it: what refuses a run says how."""
    assert shell.run("suspend", timeout=0.2)["state"] == "timeout"
    wait_until(lambda: status(shell.pid())["State"].startswith("T"), "the shell to stop")
    with pytest.raises(RpcError, match="has been stopped; send it CONT with bash_session_signal"):
        shell.run("echo no")
    shell.signal("CONT")
    shell.works()


@pytest.mark.parametrize("keys", ["\x18", "\x1b", "\x16"])
def test_keys_that_make_others_of_the_next_ones(shell, keys):
    """What has been typed for an editor that isn't there is in the way, and the refusal says so."""
    shell.bs(keys, wait=0, idle=0)
    with pytest.raises(RpcError, match="was not finished; finish it with bash_session, interrupt it"):
        shell.run("echo no")
    shell.bs("\x03", wait=0, idle=0)
    shell.works()
