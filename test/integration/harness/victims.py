"""Programs that don't want to end: one small C program, compiled when it is first asked for."""
import os
import secrets
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

NAME = f"victim-{secrets.token_hex(4)}"  # this suite's alone: others may run beside it

SOURCE = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static void deaf(void)
{
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGINT, SIG_IGN);
}

static void *wait_for_ever(void *arg)
{
    for (;;)
        pause();
    return arg;
}

/* The first thread ends, the process goes on. */
static void leaderless(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, wait_for_ever, NULL);
    pthread_exit(NULL);
}

/* Each the child of the one before; the last one tells. */
static void chain(int length, const char *told)
{
    while (--length > 0) {
        pid_t pid = fork();
        if (pid < 0)
            exit(1);
        if (pid > 0)
            wait_for_ever(NULL);
        if (length % 7 == 0)
            setsid();
    }
    fclose(fopen(told, "w"));
    wait_for_ever(NULL);
}

static void bomb(rlim_t most, const char *told)
{
    struct rlimit limit = {most, most};
    setrlimit(RLIMIT_NPROC, &limit);
    for (int told_once = 0;;) {
        pid_t pid = fork();
        if (pid == 0) {
            setsid();
            alarm(120);
        }
        if (pid < 0 && !told_once++)
            fclose(fopen(told, "w"));
    }
}

int main(int argc, char **argv)
{
    if (argc > 3)
        alarm(120); /* nothing outlives a test that fails */
    deaf();
    if (strcmp(argv[1], "leaderless") == 0) {
        fclose(fopen(argv[2], "w"));
        leaderless();
    } else if (strcmp(argv[1], "stopper") == 0) { /* stops all else that is its user's, again and again */
        fclose(fopen(argv[2], "w"));
        while (getuid() != 0)
            kill(-1, SIGSTOP);
    } else if (strcmp(argv[1], "root") == 0) { /* with a set-user-id bit: not its starter's to signal */
        if (setresuid(0, 0, 0) == 0)
            fclose(fopen(argv[2], "w"));
        wait_for_ever(NULL);
    } else if (strcmp(argv[1], "chain") == 0) {
        chain(atoi(argv[3]), argv[2]);
    } else {
        bomb((rlim_t)atoi(argv[3]), argv[2]);
    }
}
"""


def build(folder):
    """The path of the program; skips where there is no compiler."""
    if not shutil.which("gcc"):
        pytest.skip("no gcc: the programs that are to be ended are compiled here")
    path = Path(folder) / NAME
    with tempfile.NamedTemporaryFile("w", suffix=".c") as source:
        source.write(SOURCE)
        source.flush()
        subprocess.run(["gcc", "-O1", "-static", "-pthread", "-o", path, source.name], check=True)
    path.chmod(0o755)
    return path


def living():
    """The pids of all that run: a process whose first thread has ended lives as long as another one does."""
    found = []
    for entry in os.listdir("/proc"):
        try:
            if entry.isdigit() and Path(f"/proc/{entry}/comm").read_text().rstrip() == NAME and _has_thread(entry):
                found.append(int(entry))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def _has_thread(pid):
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            state = Path(f"/proc/{pid}/task/{task}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if state not in "ZX":
            return True
    return False
