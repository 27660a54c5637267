"""usage: swerex_runtime_test.py FOLDER: what SWE-agent does with a deployment."""
import asyncio
import sys
from pathlib import Path

import pytest
from swerex import exceptions
from swerex.runtime.abstract import BashAction, BashInterruptAction, CloseBashSessionRequest, Command, CreateBashSessionRequest, ReadFileRequest, UploadRequest, WriteFileRequest

from swerex_runtime import ToolboxDeployment

folder = Path(sys.argv[1])


async def sessions(runtime):
    (folder / "rc").write_text("B=8\n")
    await runtime.create_session(CreateBashSessionRequest(startup_source=[str(folder / "rc")]))
    with pytest.raises(exceptions.SessionExistsError):
        await runtime.create_session(CreateBashSessionRequest())
    assert (await runtime.run_in_session(BashAction(command=f"cd {folder}; A=7"))).exit_code == 0
    done = await runtime.run_in_session(BashAction(command="echo $A$B; pwd; false", check="silent"))
    assert (done.output, done.exit_code) == (f"78\n{folder}\n", 1)
    assert (await runtime.run_in_session(BashAction(command="false", check="ignore"))).exit_code is None
    with pytest.raises(exceptions.NonZeroExitCodeError, match="why"):
        await runtime.run_in_session(BashAction(command="false", error_msg="why"))
    with pytest.raises(exceptions.CommandTimeoutError):
        await runtime.run_in_session(BashAction(command="sleep 1000", timeout=0.3))
    await runtime.run_in_session(BashInterruptAction())
    assert (await runtime.run_in_session(BashAction(command="echo $A"))).output == "7\n"
    assert "4" in (await runtime.run_in_session(BashAction(command="cat", is_interactive_command=True))).output + (
        await runtime.run_in_session(BashAction(command="4", is_interactive_command=True))).output
    await runtime.run_in_session(BashInterruptAction())
    with pytest.raises(exceptions.SessionDoesNotExistError):
        await runtime.run_in_session(BashAction(command="true", session="other"))
    await runtime.close_session(CloseBashSessionRequest())
    await runtime.create_session(CreateBashSessionRequest())


async def programs_and_files(runtime):
    assert (await runtime.execute(Command(command=["echo", "a b"]))).stdout == "a b\n"
    done = await runtime.execute(Command(command="echo out; echo err >&2; exit 3", shell=True, env={"A": "1"}, cwd="/"))
    assert (done.stdout, done.stderr, done.exit_code) == ("out\n", "err\n", 3)
    assert (await runtime.execute(Command(command="echo out; echo err >&2", shell=True, merge_output_streams=True))).stdout == "out\nerr\n"
    with pytest.raises(exceptions.NonZeroExitCodeError):
        await runtime.execute(Command(command=["false"], check=True))
    with pytest.raises(exceptions.CommandTimeoutError):
        await runtime.execute(Command(command=["sleep", "1000"], timeout=0.3))
    with pytest.raises(FileNotFoundError):
        await runtime.execute(Command(command="no-such-program"))
    await runtime.write_file(WriteFileRequest(path=str(folder / "a/b"), content="é"))
    assert (await runtime.read_file(ReadFileRequest(path=str(folder / "a/b")))).content == "é"
    await runtime.upload(UploadRequest(source_path=str(folder / "a"), target_path=str(folder / "c")))
    await runtime.upload(UploadRequest(source_path=str(folder / "a/b"), target_path=str(folder / "d")))
    assert (folder / "c/b").read_text() == (folder / "d").read_text() == "é"


async def main():
    deployment = ToolboxDeployment("local:", options=["--dir", f"{folder}/there"])
    with pytest.raises(exceptions.DeploymentNotStartedError):
        deployment.runtime
    await deployment.start()
    assert await deployment.is_alive(timeout=60)
    await sessions(deployment.runtime)
    await programs_and_files(deployment.runtime)
    runtime = deployment.runtime
    await deployment.stop()
    assert not await runtime.is_alive(timeout=60)


asyncio.run(main())
