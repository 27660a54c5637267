"""`toolbox mcp serve` as real clients and models use it."""
import os
import resource

from harness.mcp_client import LEGACY


# ---- what runs begins where its own connection stands ----


SHOW = "pwd; umask; ulimit -n; ulimit -f; echo MARK=$MARK ONLY=$ONLY"


def stand(folder, name, **env):
    """How a connection is started in a directory of its own, with variables, a umask and limits."""
    (folder / name / "sub").mkdir(parents=True)

    def limit():
        os.umask(0o27)
        resource.setrlimit(resource.RLIMIT_NOFILE, (333, 444))
        resource.setrlimit(resource.RLIMIT_FSIZE, (512000, 512000))

    return {"cwd": folder / name, "env": {"MARK": name, **env}, "preexec_fn": limit if name == "second" else None}


def test_what_is_started_has_the_surroundings_of_its_own_connection(serve, workdir):
    first = serve(LEGACY[-1], **stand(workdir, "first", ONLY="yes"))
    assert first.call("shell_run", command=SHOW)["output"].splitlines()[0] == f"{workdir}/first"
    second = serve(LEGACY[-1], **stand(workdir, "second"))
    folder = workdir / "second"
    expected = [str(folder), "0027", "333", "500", "MARK=second ONLY="]
    assert second.call("shell_run", command=SHOW)["output"].splitlines() == expected
    second.call("shell_restart")
    assert second.call("shell_run", command=SHOW)["output"].splitlines() == expected
    shell = second.call("shell_new", cwd="sub")["session"]
    assert second.call("shell_run", session=shell, command="pwd; umask")["output"] == f"{folder}/sub\n0027\n"
    job = second.call("job_start", command=SHOW.replace("; ulimit -f", ""))["job"]
    assert second.call("job_wait", job=job)["stdout"].splitlines() == [line for line in expected if line != "500"]
    job = second.call("job_start", argv=["pwd"], cwd="sub")["job"]
    assert second.call("job_wait", job=job)["stdout"] == f"{folder}/sub\n"
    assert first.call("shell_run", command=SHOW)["output"].splitlines()[-1] == "MARK=first ONLY=yes"


def test_a_directory_that_is_gone_is_said(serve, workdir):
    (workdir / "gone").mkdir()
    mcp = serve(LEGACY[-1], cwd=workdir / "gone")
    (workdir / "gone").rmdir()
    assert mcp.call("shell_run", command="echo here")["output"] == "here\n"
