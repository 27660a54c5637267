"""Start-up files that end the shell, or put something else in its place: it runs without them, and the answer says so."""
import pytest

from harness import needs
from harness.sessions import Shell

ENDS = {"exit": "exit 5", "set -e": "set -e; false", "true in its place": "exec true", "a signal": "kill -9 $$"}
WAITS = {"fish": "exec fish", "sh": "exec sh", "zsh": "exec zsh", "script": "exec script -q /dev/null", "cat": "echo some; exec cat",
         "tmux": '[ -z "$TMUX" ] && TERM=xterm exec tmux -f /dev/null -S {folder}/tmux', "a shell below it": "sh", "a question": "read -p 'name? ' x"}
HARMLESS = {"set -e alone": "set -e", "stty -echo": "stty -echo", "raw": "stty raw", "output": "echo some", "bash in its place": "exec bash --norc"}


@pytest.fixture
def started(new_client, workdir):
    """A session of a user whose ~/.bashrc is that; other files of the home by name."""
    def start(text, shell=None, **files):
        for name, content in {"bashrc": text, **files}.items():
            (workdir / f".{name}").write_text(content.replace("{folder}", str(workdir)) + "\n")
        return Shell(new_client(env={"HOME": str(workdir)}), **({"shell": shell} if shell else {}))

    return start


def check_bare(shell, word):
    result = shell.run("false; echo alive; (exit 3)", timeout=60)
    assert (result["state"], result["exit_code"], result["output"]) == ("completed", 3, "alive\n"), result
    assert word in result["notice"] and "without them" in result["notice"], result
    assert "notice" not in shell.run("true")
    shell.works()


@pytest.mark.parametrize("how", ENDS)
def test_a_start_up_file_that_ends_the_shell(started, how):
    with started(ENDS[how]) as shell:
        assert "ended the shell" in shell.first and "without them" in shell.first
        check_bare(shell, "ended the shell")
        shell.restart()
        assert "without them" in shell.at_once()  # it may have been mended meanwhile, so it is tried again
        check_bare(shell, "ended the shell")


@pytest.mark.parametrize("how", WAITS)
def test_a_start_up_file_that_puts_something_else_in_its_place(started, how):
    """Slow: only after a while it is known that the shell will not come."""
    if how in ("fish", "zsh", "script", "tmux"):
        needs.program(how)
    with started(WAITS[how]) as shell:
        check_bare(shell, "went no further")
        assert "without them" in shell.bs(wait=0)


@pytest.mark.parametrize("how", HARMLESS)
def test_a_start_up_file_that_does_not(started, how):
    with started(HARMLESS[how]) as shell:
        assert shell.run("false", timeout=60)["exit_code"] == 1
        assert "notice" not in shell.run("true")
        shell.works()


@pytest.mark.parametrize("program,file", [("zsh", "zshrc"), ("ksh", "kshrc"), ("mksh", "mkshrc")])
def test_those_of_other_shells(started, program, file):
    with started("", shell=needs.program(program), **{file: "exit 5"}) as shell:
        check_bare(shell, "ended the shell (exit status 5)")
