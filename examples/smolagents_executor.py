"""smolagents: the Python that an agent writes runs in any container that has a Python.

    with Sandbox.connect("docker:web") as sandbox, ToolboxExecutor(sandbox) as executor:
        agent = CodeAgent(tools=[], model=…, executor=executor)
        print(agent.run("How many lines have the sources below /srv?"))

Needs `smolagents` and `toolbox-sandbox` here, and nothing but `python3` there.
"""
from typing import Any

from smolagents import AgentError, LogLevel
from smolagents.local_python_executor import CodeOutput
from smolagents.monitoring import AgentLogger
from smolagents.remote_executors import RemotePythonExecutor, get_tools_definition_code
from toolbox_sandbox import Sandbox, Shell

OUTPUT_MAX = 1_000_000  # bytes of which head and tail are kept


class ToolboxExecutor(RemotePythonExecutor):
    """One interpreter for the whole run, which keeps its variables. `with` ends it."""

    def __init__(self, sandbox: Sandbox, python: str = "python3", timeout: float = 120, logger: AgentLogger | None = None, **session: Any) -> None:
        super().__init__([], logger or AgentLogger(level=LogLevel.ERROR))
        self._sandbox, self._python, self._timeout, self._session = sandbox, python, timeout, session
        self._shell: Shell | None = None
        self._definitions = ""  # of the tools, for an interpreter in the place of one that has ended

    def __enter__(self) -> "ToolboxExecutor":
        return self

    def __exit__(self, *_: object) -> None:
        self.cleanup()

    def cleanup(self) -> None:
        """smolagents calls it, too, at the agent's end."""
        if self._shell:
            self._shell.close()
            self._shell = None

    def install_packages(self, additional_imports: list[str]) -> list[str]:
        if additional_imports:
            self._sandbox.run([self._python, "-m", "pip", "install", "--quiet", *additional_imports], check=True)
        return additional_imports

    def send_tools(self, tools: dict[str, Any]) -> None:
        super().send_tools(tools)
        self._definitions = get_tools_definition_code(tools)

    def run_code_raise_errors(self, code: str) -> CodeOutput:
        if self._shell is None:
            self._shell = self._sandbox.shell(program=[self._python, "-q"], **self._session)
            if self._definitions:
                self._shell.run(self._definitions)
        done = self._shell.run(code, timeout=self._timeout, max_output_bytes=OUTPUT_MAX)
        if done.error and done.error["type"].rpartition(".")[2] == self.FINAL_ANSWER_EXCEPTION:
            return CodeOutput(output=self._final_answer(), logs=self._before_traceback(done.output), is_final_answer=True)
        if done.state in ("timeout", "awaiting_input"):
            self._interrupt()
            why = f"it still ran after {self._timeout:g} s" if done.state == "timeout" else "it waited for input, and there is none"
            raise AgentError(f"{done.output}\nIt was interrupted: {why}", self.logger)
        if done.state == "exited":
            self.cleanup()
            raise AgentError(f"{done.output}\nThe interpreter has ended, and all variables are gone", self.logger)
        if done.exit_code:
            raise AgentError(f"{done.output}\nExecuting code yielded an error", self.logger)
        return CodeOutput(output=None, logs=done.output, is_final_answer=False)

    def _interrupt(self) -> None:
        """As Ctrl-C does. What doesn't hear it ends with its interpreter."""
        assert self._shell
        self._shell.interrupt()
        if self._shell.run(timeout=10).state != "completed":
            self.cleanup()

    def _final_answer(self) -> Any:
        """The value that the exception of the answer carries, whatever its length."""
        assert self._shell
        said = self._shell.run("import sys; print(sys.last_value.value)", max_output_bytes=1 << 27)
        return self._deserialize_final_answer(said.output.strip())

    @staticmethod
    def _before_traceback(output: str) -> str:
        return output.partition("Traceback (most recent call last):")[0]
