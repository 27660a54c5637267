"""What is typed into a session, and what comes out of it: the cases of interact."""
import os
import re
import signal
import time
from concurrent.futures import ThreadPoolExecutor, wait

import pytest

from harness import needs, processes
from harness.client import TOOLERR, RpcError
from harness.machine import HANG
from harness.processes import wait_until
from harness.server import status
from harness.sessions import LONG, SANITIZED, Shell, exists, memory, read_until, split_omitted


@pytest.fixture
def other(server):
    with Shell(server) as shell:
        yield shell


# ---- characters ----


def test_c001_a_read_ends_inside_a_character(shell):
    sent = "printf '\\303'; sleep 0.2; printf '\\251\\n'; sleep 0.2; printf '\\360'; sleep 0.2; printf '\\237\\230\\200\\n'\n"
    assert read_until(shell, shell.prompt, shell.bs(sent)) == "é\n😀\n" + shell.prompt
    assert shell.bs("echo still-here\n") == "still-here\n" + shell.prompt


def test_c001_every_call_gives_what_there_is_of_it(shell):
    """With an answer in between, no half of the character is lost and none is shown."""
    seen = shell.bs("printf 'a\\360\\237'; sleep 0.5; printf '\\230\\200b\\n'\n", wait=1, idle=0.05)
    assert seen == "a"
    assert read_until(shell, shell.prompt) == "😀b\n" + shell.prompt


def test_bad_bytes_are_shown_and_end_nothing(shell):
    assert shell.bs("printf 'a\\377b\\303(\\355\\240\\200c\\300\\257\\n'\n") == "a�b�(���c��\n" + shell.prompt
    assert shell.bs("printf '\\342\\202'\n") == "�" + shell.prompt
    assert shell.bs("printf 'x\\000y\\177z\\001\\n'\n") == "xyz\n" + shell.prompt


@pytest.mark.parametrize("locale", ["C", "C.UTF-8", "POSIX"])
def test_typed_text_arrives_whatever_the_locale(new_client, locale):
    """Without a locale, as in most containers, a line editor may take the bytes of a character for keys."""
    shell = Shell(new_client(env={"LANG": locale}))
    assert shell.bs("echo 'é 😀 ｶ'; printf 'ß' | wc -c\n") == "é 😀 ｶ\n2\n" + shell.prompt


def test_tabs_and_exclamation_marks_are_text(shell, workdir):
    (workdir / "only-one").touch()
    shell.bs(f"cd {workdir}\n")
    assert shell.bs("printf '%s' 'a\tb' | wc -c\n").startswith("3\n")
    assert shell.bs("ls on\tx\n").count("only-one") == 0
    assert shell.bs("echo \"hi! !! !x ^a^b\"\n").startswith("hi! !! !x ^a^b\n")


# ---- output ----


def test_c003_output_without_end(shell):
    began = time.monotonic()
    texts = [shell.bs("yes flood\n", max_output_bytes=65536, wait=3)]
    texts += [shell.bs(max_output_bytes=65536, wait=3) for _ in range(5)]
    assert time.monotonic() - began < 6 * (3 + 2)
    for text in texts:
        assert 0 < len(text.encode()) <= 65536
        assert set(split_omitted(text)[0].split("\n")[1:-1]) == {"flood"}, text[:200]
    assert any("omitted" in text for text in texts[1:])
    held = memory(shell.keeper())
    shell.bs("\x03", max_output_bytes=65536)
    text = shell.bs("echo done\n", max_output_bytes=65536)
    assert "done\n" in read_until(shell, shell.prompt, text)
    assert held < 80_000 or SANITIZED, f"the keeper holds {held} kB"


def in_background(shell, command, workdir):
    """Lets a job print what nobody reads."""
    shell.at_once(f"(sleep 0.2; {command}; touch {workdir}/printed) &\n")
    exists(workdir / "printed")


def test_c003_the_newest_is_kept_and_what_is_missing_is_told(shell, workdir):
    """15 MB that nobody reads, and a cap: what came and what is said to be missing is what was printed, to the byte."""
    in_background(shell, "seq 10000001 11700000", workdir)
    text = shell.at_once(max_output_bytes=65536)
    kept, omitted = split_omitted(text)
    assert len(text.encode()) <= 65536 < len(kept) + 200
    assert kept.endswith("\n11699999\n11700000\n") and len(kept) + omitted == 1_700_000 * 9
    assert text.startswith(f"[{omitted} bytes omitted]\n")
    shell.works()


NINE = "".join(f"{i:050d}€" for i in range(1, 10))


@pytest.mark.parametrize("cap", [1, 3, 10, 50, 100, 300])
def test_a_small_cap_holds(shell, workdir, cap):
    """It may leave out a character, but never cuts one in two. What an answer has no room to tell, the next one tells."""
    in_background(shell, "for i in 1 2 3 4 5 6 7 8 9; do printf '%050d€' $i; done", workdir)
    text = shell.at_once(max_output_bytes=cap)
    assert len(text.encode()) <= cap
    kept, omitted = split_omitted(text)
    assert NINE.endswith(kept)
    _, told = split_omitted(shell.bs("echo\n"))
    assert len(kept.encode()) + omitted + told == len(NINE.encode())
    assert omitted > 0 or cap < 100


def test_an_exact_cap_leaves_nothing_out(shell, workdir):
    in_background(shell, f"printf {NINE}", workdir)
    assert shell.at_once(max_output_bytes=len(NINE.encode())) == NINE


@pytest.mark.parametrize("cap", [None, 0, -1, 10 << 20])
def test_no_cap_is_ten_mebibytes(shell, workdir, cap):
    more = {} if cap is None else {"max_output_bytes": cap}
    size = 12_000_000
    in_background(shell, f"head -c {size} /dev/zero | tr '\\0' x", workdir)
    kept, omitted = split_omitted(shell.at_once(**more))
    assert kept == "x" * len(kept)
    assert (10 << 20) - 200 < len(kept) <= 10 << 20 and len(kept) + omitted == size


def test_c005_a_last_line_without_newline(shell, workdir):
    (workdir / "name").write_text("some-host\n")
    assert shell.bs("printf 'no newline'\n") == "no newline" + shell.prompt
    assert shell.bs("printf ''\n") == shell.prompt
    assert shell.bs(f"cat {workdir}/name | tr -d '\\n'\n") == "some-host" + shell.prompt


SEQUENCES = {
    "private mode": "\x1b[?25l",
    "bracketed paste": "\x1b[?2004h",
    "title, BEL": "\x1b]0;t\x07",
    "title, ST": "\x1b]0;t\x1b\\",
    "colours with colons": "\x1b[38:2:1:2:3m",
    "character set": "\x1b(B",
    "keypad": "\x1b=",
    "save cursor": "\x1b7",
    "DCS": "\x1bPq#0\x1b\\",
    "soft reset": "\x1b[!p",
    "APC": "\x1b_a;b\x1b\\",
    "PM": "\x1b^p\x1b\\",
    "SOS": "\x1bXs\x1b\\",
    "secondary attributes": "\x1b[>c",
    "cursor style": "\x1b[2 q",
    "mouse": "\x1b[?1000;1006h",
    "scroll region": "\x1b[1;24r",
    "backspace, bell": "\b\a",
    "shift out, in": "\x0e\x0f",
    "nothing": "",
}


def test_c014_escape_sequences(shell, workdir):
    text = "".join(f"{sequence}X {name}\n" for name, sequence in SEQUENCES.items())
    text += "\x1b]8;;http://h/\x1b\\link\x1b]8;;\x1b\\\n" + "\x1b]0;t\x07a;b;c \x1b]2;u\x1b\\d;e\n" + "é\x1b[1mé\n"
    (workdir / "text").write_text(text)
    expected = "".join(f"X {name}\n" for name in SEQUENCES) + "link\na;b;c d;e\néé\n"
    assert shell.bs(f"cat {workdir}/text\n") == expected + shell.prompt
    assert shell.bs("printf '\\033['; sleep 0.2; printf '31mred\\n'\n") == "red\n" + shell.prompt
    assert shell.bs("printf '\\033]0;ti'; sleep 0.2; printf 'tle\\033'; sleep 0.2; printf '\\\\X;Y\\n'\n") == "X;Y\n" + shell.prompt


@pytest.mark.parametrize("end", ["\\033", "\\033[", "\\033[3", "\\033]0;title", "\\033P", "\\033]8;;http://h/"])
def test_c014_an_unfinished_sequence_hides_nothing(shell, end):
    assert shell.prompt in shell.bs(f"printf 'X{end}'\n")
    assert shell.bs("echo more text\n") == "more text\n" + shell.prompt


def test_c014_every_cut(shell, workdir):
    """A sequence cut at each of its bytes leaves nothing."""
    shell.bs("slow() { local i; for ((i = 0; i < ${#1}; i++)); do printf %s \"${1:i:1}\"; sleep 0.02; done; }\n")
    for text in ("\\033[1;31m", "\\033]0;t;u\\033\\\\", "\\033(B"):
        assert shell.bs(f"slow $'{text}'X; echo\n") == "X\n" + shell.prompt


def test_c017_a_usable_size(shell):
    answer = shell.bs("stty size; echo $COLUMNS $LINES; python3 -c 'import os; print(os.get_terminal_size(0))'; echo $TERM\n")
    assert answer == "24 200\n200 24\nos.terminal_size(columns=200, lines=24)\ndumb\n" + shell.prompt


@needs.programs("git")
def test_c017_pagers_do_not_page(shell, workdir):
    shell.out(f"cd {workdir}; git init -q . && git config user.name n && git config user.email e")
    shell.out("for i in {1..40}; do git commit -q --allow-empty -m subject-$i; done")
    assert shell.out("git log --format=%s") == "".join(f"subject-{i}\n" for i in range(40, 0, -1))
    assert shell.at_once("git log --format=%s -n 1; echo rc=$?\n").startswith("subject-40\nrc=0\n")


def test_the_terminal_is_as_promised(shell):
    """Echo off, output newlines not translated, canonical mode and signal keys for programs."""
    answer = shell.bs("stty -a\n")
    for word in ("-echo", "icanon", "isig"):
        assert re.search(rf"(^| ){word}\b", answer, re.M), answer
    assert re.search(r"-opost|-onlcr", answer), answer
    assert shell.bs("printf 'a\\nb\\r\\nc\\td\\n'\n") == "a\nb\r\nc\td\n" + shell.prompt


# ---- keys ----


def has_interrupt_pending(pid):
    return int(status(pid)["ShdPnd"], 16) >> (signal.SIGINT - 1) & 1


def test_a_key_that_the_shell_has_yet_to_take(shell):
    """A processor that has just been woken may not have begun to run it: it still looks asleep at its terminal, as one
    that is stopped does."""
    pid = shell.pid()
    assert shell.at_once("f() {\n") == "> "
    os.kill(pid, signal.SIGSTOP)
    try:
        wait_until(lambda: processes.is_stopped(pid), "the shell to stop")
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(shell.at_once, "\x03")
            try:
                wait_until(lambda: has_interrupt_pending(pid), "the key to become a signal")
                assert not wait([answer], timeout=0.2).done
            finally:
                os.kill(pid, signal.SIGCONT)
            assert answer.result(HANG).endswith(shell.prompt)
    finally:
        os.kill(pid, signal.SIGCONT)
    shell.works()


@pytest.mark.parametrize("typed, shown", [
    ('echo "open `tick\n', "> "),
    ("echo 'open\n", "> "),
    ("cat <<'E'\nsome text\n", "> > "),
    ("for i in 1 2\n", "> "),
    ("echo a \\\n", "> "),
    ("f() {\n", "> "),
])
def test_c006_an_unfinished_command(shell, typed, shown):
    assert shell.at_once(typed) == shown
    assert shell.at_once("\x03").endswith(shell.prompt)
    assert shell.at_once("echo recovered\n") == "recovered\n" + shell.prompt


def test_c006_it_can_be_finished(shell):
    assert shell.at_once("cat <<'E'\n") == "> "
    assert shell.at_once("one `two\n") == "> "
    assert shell.at_once("E\n") == "one `two\n" + shell.prompt
    assert shell.at_once("echo 'a\nb'\n") == "> a\nb\n" + shell.prompt


def test_c010_signal_keys_and_job_control(shell):
    assert "job control" not in shell.first and "ioctl" not in shell.first
    assert shell.bs("sleep 60\n", wait=1) == ""
    assert shell.at_once("\x03").endswith(shell.prompt)
    assert shell.bs("echo rc=$?\n") == "rc=130\n" + shell.prompt
    shell.busy("echo begin; sleep 60", "begin")
    wait_until(lambda: shell.listed()["foreground"] == "sleep", "sleep to run")  # the shell itself ignores it
    assert "Stopped" in shell.at_once("\x1a")
    assert "Stopped" in shell.bs("jobs; kill %1\n")
    shell.bs("wait\n")
    answer = shell.bs("tty; ps -o tty=,stat= -p $$\n")
    tty = re.match(r"/dev/(pts/\d+)\n", answer)[1]
    assert re.search(rf"^{tty} +\S*s", answer, re.M), answer


def test_c010_a_job_that_ignores_the_key(shell):
    shell.busy("(trap '' INT; echo begin; sleep 1.2; echo end); echo after", "begin")
    assert "end\nafter\n" in read_until(shell, shell.prompt, shell.bs("\x03", wait=1))
    shell.works()


def test_c010_quit_and_the_other_signals(shell):
    shell.busy("echo begin; sleep 60", "begin")
    wait_until(lambda: shell.listed()["foreground"] == "sleep", "sleep to run")  # the shell itself ignores it
    assert shell.at_once("\x1c").endswith(shell.prompt)
    assert shell.bs("echo rc=$?\n") == "rc=131\n" + shell.prompt
    assert shell.bs("sleep 60 & kill $!; wait $!; echo rc=$?\n").count("rc=143") == 1


def test_c010_the_key_ends_a_loop_and_a_pipeline(shell):
    shell.busy("while :; do echo loop; sleep 0.05; done", "loop")
    shell.bs("\x03")
    shell.busy("echo begin; sleep 60 | sleep 60 | cat", "begin")
    assert shell.at_once("\x03").endswith(shell.prompt)
    shell.works()


def test_c010_what_was_typed_before_the_key_is_thrown_away(shell):
    shell.busy("echo begin; sleep 60", "begin")
    shell.bs("echo never\n", wait=0, idle=0)
    answer = shell.at_once("\x03echo now\n")
    assert "never" not in answer and answer.endswith("now\n" + shell.prompt)


def test_c011_end_of_file_ends_cat(shell, workdir):
    shell.bs(f"cat > {workdir}/o\n", wait=1)
    shell.bs("line\n", wait=1)
    assert shell.at_once("\x04") == shell.prompt
    assert shell.bs(f"cat -A {workdir}/o; echo rc=$?\n") == "line$\nrc=0\n" + shell.prompt


def test_c011_text_and_end_of_file_in_one(shell, workdir):
    assert shell.at_once(f"cat > {workdir}/o\nline\n\x04echo rc=$?\n").endswith("rc=0\n" + shell.prompt)
    assert (workdir / "o").read_text() == "line\n"


def test_c011_end_of_file_ends_python(shell):
    assert shell.at_once("python3 -q\n").endswith(">>> ")
    assert shell.at_once("6 * 7\n").endswith("42\n>>> ")
    assert shell.at_once("\x04").endswith(shell.prompt)
    shell.works()


def test_c007_c011_end_of_file_ends_the_shell(shell):
    assert shell.at_once("\x04").startswith("exit\n")
    with pytest.raises(RpcError, match="restart") as caught:
        shell.at_once("echo x\n")
    assert caught.value.code == TOOLERR
    shell.restart()
    shell.works()


# ---- the shell ends ----


@pytest.mark.parametrize("end, told",
                         [("exit\n", "exit status 0"), ("exit 7\n", "exit status 7"),
                          ("exec sh -c 'exit 3'\n", "exit status 3"),
                                       ("kill -9 $$\n", "signal 9"), ("kill -SEGV $$\n", "signal 11")])
def test_c007_a_shell_that_has_ended(shell, end, told):
    answer = shell.at_once(f"echo last words; {end}")
    assert answer.startswith("last words\n") and told in answer
    for text in ("echo x\n", "echo x\n", None):
        with pytest.raises(RpcError) as caught:
            shell.at_once(text)
        assert caught.value.code == TOOLERR and told in caught.value.message and "restart" in caught.value.message
    assert shell.listed()["state"] == "ended"
    assert shell.restart() == "shell restarted successfully"
    assert shell.bs("echo back\n").endswith("back\n" + shell.prompt)


def test_c007_a_shell_that_ends_between_calls(shell):
    answer = shell.bs("(sleep 0.3; kill -9 $$) & echo soon\n", wait=0, idle=0)
    wait_until(lambda: shell.listed()["state"] == "ended", "the shell's end")
    answer += shell.at_once()
    assert "soon" in answer and "signal 9" in answer


def test_c007_a_shell_that_ends_during_a_call(shell):
    answer = shell.at_once("(sleep 0.4; kill -9 $$) & sleep 50\n")
    assert "signal 9" in answer


# ---- long input ----


def test_c012_lines_longer_than_the_terminal_holds(shell, workdir):
    assert shell.bs(f"echo {'x' * 6000} | wc -c\n", wait=30).endswith("6001\n" + shell.prompt)
    shell.bs(f"cat > {workdir}/l <<'E'\n{'y' * 100_000}\nE\n", wait=30)
    assert (workdir / "l").read_text() == "y" * 100_000 + "\n"
    lines = "".join(f"{i:079d}\n" for i in range(3750))
    text = shell.bs(f"cat > {workdir}/m <<'E'\n{lines}E\necho all\n", wait=0, idle=0)
    read_until(shell, "all\n" + shell.prompt, text)
    assert (workdir / "m").read_text() == lines
    shell.works()


@pytest.mark.parametrize("program",
                         ["cat", "python3 -c 'import sys; sys.stdout.write(sys.stdin.read())'",
                          "sh -c 'stty -icanon; head -c 20001'"])
def test_c012_long_lines_for_programs(shell, workdir, program):
    """Programs that read lines, and such as read bytes, get every byte, and the end of file after it."""
    text = "".join(f"{i:05d}" for i in range(4000)) + "\n"
    shell.at_once(f"{program} > {workdir}/o\n")
    shell.bs(text, wait=30)
    if "icanon" not in program:
        shell.bs("\x04")
    wait_until(lambda: shell.listed()["state"] == "prompt", "the program's end")
    assert (workdir / "o").read_text() == text


def test_c012_typed_ahead_of_a_program_that_reads_late(shell, workdir):
    text = "".join(f"{i:079d}\n" for i in range(1000)) + "z" * 9000 + "\n"
    shell.busy(f"echo begin; sleep 0.5; cat > {workdir}/o", "begin")
    shell.bs(text, wait=0, idle=0)
    wait_until(lambda: shell.listed()["state"] == "awaiting_input" and (workdir / "o").stat().st_size == len(text),
               "all of it")
    shell.at_once("\x04")
    assert (workdir / "o").read_text() == text


def test_c013_a_program_that_does_not_read(server, shell, other):
    shell.busy("echo begin; sleep 40", "begin")
    with server.popen("exec") as big:
        began = time.monotonic()
        params = f'{{"session_name":"{shell.name}","input":"{"z" * 2_000_000}","wait_for_output":2,"idle_timeout":0.5}}'
        big.stdin.write(f'{{"jsonrpc":"2.0","id":1,"method":"bash_session","params":{params}}}'.encode())
        big.stdin.close()
        server.rpc("remote_version")
        assert other.at_once("echo ok\n") == "ok\n" + other.prompt
        assert time.monotonic() - began < LONG
        big.stdout.read()
        assert big.wait(HANG) == 0 and time.monotonic() - began < 2 + LONG
    answer = shell.at_once("\x03")
    assert answer.endswith(shell.prompt) and "zzz" not in answer
    shell.works()


def test_c013_too_much_is_refused_whole(shell):
    """More than a session will ever hold for a program that does not read: an error, and nothing of it arrives."""
    shell.busy("echo begin; sleep 40", "begin")
    piece = "z" * 20_000_000
    with pytest.raises(RpcError) as caught:
        for _ in range(10):
            shell.bs(piece, wait=0, idle=0)
    assert caught.value.code == TOOLERR and "MiB" in caught.value.message
    shell.at_once("\x03")
    shell.works()
