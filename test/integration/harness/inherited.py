"""What a process inherits of the one that started it. Whatever started the suite (nohup, cron, a CI's runner, an init, a make),
it and all that it starts begin as from a login shell."""
import os
import re
import resource
import signal

# Variables that say where things are, or that the suite itself listens to. All others are for somebody else.
_KEPT = re.compile(r"PATH|HOME|USER|LOGNAME|TERM|COLUMNS|CI|DEB_MIRROR|DEPS_DIR|DOCKER_\w+|(https?|ftp|no)_proxy|PYTEST_\w+|"
                   r"(A|UB|L)SAN_OPTIONS|TOOLBOX_(BIN|BIN_FOREIGN|CACHE|SANITIZED|(TEST|STRESS)_\w+)", re.IGNORECASE)

_OWN = {"LANG": "C.UTF-8", "HOME": "/"}  # where there is none
_LOOPBACK = ("127.0.0.1", "localhost", "::1")  # no proxy leads to what a test serves there

_OPEN_FILES = 20000  # a wish: the suite's own and those of the servers under it


def reset():
    """To be called once, before anything is started."""
    _reset_signals()
    os.umask(0o022)
    _reset_limits()
    _reset_environment()


def _reset_signals():
    """What is ignored or blocked stays so in whatever is started: a nohup's HUP, a background job's INT."""
    for number in signal.valid_signals():
        if signal.getsignal(number) is signal.SIG_IGN:
            try:
                signal.signal(number, signal.SIG_DFL)
            except OSError:
                pass  # the C library's own
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # as Python has them; it takes them back for what it starts
        signal.signal(number, signal.SIG_IGN)


def _reset_limits():
    """As far as one may: what is lower for good stays so."""
    for name, wanted in (("CORE", 0), ("NOFILE", _OPEN_FILES), ("FSIZE", None), ("CPU", None), ("DATA", None), ("AS", None)):
        number = getattr(resource, f"RLIMIT_{name}")
        hard = resource.getrlimit(number)[1]
        if wanted is None or (hard != resource.RLIM_INFINITY and wanted > hard):
            wanted = hard
        resource.setrlimit(number, (wanted, hard))


def _reset_environment():
    kept = {name: text for name, text in os.environ.items() if _KEPT.fullmatch(name)}
    os.environ.clear()
    os.environ.update({**_OWN, **kept})
    for name in ("no_proxy", "NO_PROXY"):
        os.environ[name] = ",".join(filter(None, (os.environ.get(name), *_LOOPBACK)))
