"""Commands that are interrupted: in none of these forms may anything run that stands behind what was interrupted."""
import itertools
import shutil
import time

from harness.sessions import kill, started

# LATER stands where nothing may come any more, NOW is what is interrupted.
FORMS = {
    "lines": "NOW\nLATER",
    "three lines": "true\nNOW\nLATER",
    "a list": "NOW; LATER",
    "and": "true && NOW && LATER\nLATER",
    "or": "NOW || LATER\nLATER",
    "a group": "{ NOW\nLATER\n}\nLATER",
    "a function": "f() {\nNOW\nLATER\n}\nf\nLATER",
    "a subshell": "(NOW\nLATER)\nLATER",
    "a substitution": "x=$(NOW; LATER)\nLATER",
    "a for loop": "for i in 1 2 3; do\nNOW\nLATER\ndone\nLATER",
    "a while loop": "while read -r x; do\nNOW\nLATER\ndone </etc/passwd\nLATER",
    "a loop behind a pipe": "printf '1\\n2\\n' | while read -r x; do\nNOW\nLATER\ndone\nLATER",
    "a loop that waits": "NOW | while read -r x; do\nLATER\ndone\nLATER",
    "a pipe": "NOW | cat\nLATER",
    "a here-document": "cat <<E >/dev/null\nsome\nE\nNOW <<E\nmore\nE\nLATER",
    "if": "if NOW\nthen LATER\nelse LATER\nfi\nLATER",
    "case": "case x in\nx) NOW\nLATER;;\nesac\nLATER",
    "eval": "eval 'NOW\nLATER'\nLATER",
    "sourced": ". SOURCED\nLATER",
    "a script": "sh SOURCED\nLATER",
    "set -e": "(set -e\nNOW\nLATER)\nLATER",
    "one that exits itself": "sh -c 'trap \"exit 3\" INT; while :; do sleep 0.02; done'\nLATER",
}
FISH = {
    "lines": "NOW\nLATER",
    "three lines": "true\nNOW\nLATER",
    "a list": "NOW; LATER",
    "and": "true; and NOW; and LATER\nLATER",
    "or": "NOW || LATER\nLATER",
    "a block": "begin\nNOW\nLATER\nend\nLATER",
    "a function": "function f\nNOW\nLATER\nend\nf\nLATER",
    "a substitution": "set x (NOW; LATER)\nLATER",
    "a for loop": "for i in 1 2 3\nNOW\nLATER\nend\nLATER",
    "a while loop": "while true\nNOW\nLATER\nend\nLATER",
    "a pipe": "NOW | cat\nLATER",
    "if": "if NOW\nLATER\nelse\nLATER\nend\nLATER",
    "switch": "switch x\ncase x\nNOW\nLATER\nend\nLATER",
    "eval": "eval 'NOW\nLATER'\nLATER",
    "sourced": ". SOURCED\nLATER",
    "a script": "sh SOURCED\nLATER",
}
TCSH = {
    "lines": "NOW\nLATER",
    "three lines": "true\nNOW\nLATER",
    "a list": "NOW; LATER",
    "and": "true && NOW && LATER\nLATER",
    "or": "NOW || LATER\nLATER",
    "a subshell": "(NOW; LATER)\nLATER",
    "a substitution": "set x=`NOW; LATER`\nLATER",
    "a for loop": "foreach i (1 2 3)\nNOW\nLATER\nend\nLATER",
    "a while loop": "while (1)\nNOW\nLATER\nend\nLATER",
    "a pipe": "NOW | cat\nLATER",
    "a here-document": "cat <<E >/dev/null\nsome\nE\nNOW <<E\nmore\nE\nLATER",
    "if": "if (1) then\nNOW\nLATER\nelse\nLATER\nendif\nLATER",
    "switch": "switch (x)\ncase x:\nNOW\nLATER\nendsw\nLATER",
    "eval": "eval 'NOW; LATER'\nLATER",
    "an alias": "alias f 'NOW; LATER'\nf\nLATER",
    "a script": "sh SOURCED\nLATER",
}  # an interrupted `source` ends that file alone: it goes on behind it, whoever types
# What other shells than bash go on behind: they know no more than how the program ended.
BASH_ALONE = ("one that exits itself",)
SHELLS = ("bash", "dash", "busybox", "zsh", "ksh93", "mksh", "fish", "tcsh")


def texts(shell):
    return {"fish": FISH, "tcsh": TCSH}.get(shell, FORMS)


def forms(shell):
    return [form for form in texts(shell) if shell == "bash" or form not in BASH_ALONE]


def path_of(shell, folder):
    """Where that shell is, or None. (busybox is a shell under the name of one.)"""
    path = shutil.which(shell)
    if shell != "busybox" or not path:
        return path
    link = folder / "ash"
    if not link.exists():
        link.symlink_to(path)
    return str(link)


class Interrupted:
    """One session, in which commands are interrupted."""

    def __init__(self, shell, folder, kind="bash"):
        self.shell, self.folder, self.texts, self.numbers = shell, folder, texts(kind), itertools.count()

    def command(self, form, now):
        self.later = self.folder / f"later-{next(self.numbers)}"
        self.later.unlink(missing_ok=True)  # of another session's
        sourced = self.folder / "sourced"
        sourced.write_text(f"{now}\ntouch {self.later}\n")
        text = self.texts.get(form, form).replace("SOURCED", str(sourced)).replace("NOW", now)
        return text.replace("LATER", f"touch {self.later}")

    def by_signal(self):
        self.shell.signal("INT")

    def by_key(self):
        self.shell.bs("\x03", wait=0, idle=0)

    def check(self, form, after, how, now="sleep 60"):
        """Interrupts it so many seconds after its begin, and says what is wrong then (None: nothing)."""
        command = self.command(form, now)
        result = self.shell.run(command, timeout=after)
        if result["state"] == "timeout":
            how(self)
            result = self.shell.client.rpc("bash_session_run", {"session_name": self.shell.name, "timeout": 20})
        return self.wrong_with(result, (3, 130) if form == "one that exits itself" else (130,))

    def check_abandoned(self, form, after, now="sleep 60"):
        command = self.command(form, now)
        call = started(self.shell, "bash_session_run", command=command, interrupt_abandoned=True)
        time.sleep(after)
        kill(call)
        return self.wrong_with(None, ())

    def wrong_with(self, result, codes):
        if result and (result["state"] != "completed" or result["exit_code"] not in codes):
            return f"answered {result}, and {self.later} was {'made' if self.later.exists() else 'not made'}"
        alive = self.shell.run("echo alive")
        if (alive["state"], alive["exit_code"], alive["output"]) != ("completed", 0, "alive\n"):
            return f"answers {alive} then"
        return f"{self.later} was made" if self.later.exists() else None
