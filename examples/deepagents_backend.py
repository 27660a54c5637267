"""LangChain's deepagents: a container as the backend that an agent works in.

    with Sandbox.connect("docker:web") as sandbox:
        agent = create_deep_agent(model="…", backend=ToolboxBackend(sandbox))
        agent.invoke({"messages": [{"role": "user", "content": "Make the tests pass."}]})

Files are listed, written, changed and moved without a program there. Only reading in pages, searching and glob are those of
`BaseSandbox`, which need a Python in the container. Needs `deepagents` and `toolbox-sandbox`.
"""
import asyncio
import datetime

from deepagents.backends.protocol import DeleteResult, EditResult, ExecuteResponse, FileDownloadResponse, FileInfo, FileUploadResponse, LsResult, WriteResult
from deepagents.backends.sandbox import BaseSandbox
from toolbox_sandbox import CallError, FileError, RunTimeout, Sandbox

OUTPUT_MAX = 1_000_000  # bytes of a stream
KINDS = {"not_found": "file_not_found", "permission": "permission_denied", "is_directory": "is_directory"}


def _why(error: CallError) -> str:
    """As deepagents calls it."""
    return KINDS.get(error.kind, error.message) if isinstance(error, FileError) else error.message


class ToolboxBackend(BaseSandbox):
    def __init__(self, sandbox: Sandbox, cwd: str | None = None, timeout: int | None = 30 * 60) -> None:
        self._sandbox, self._cwd, self._timeout = sandbox, cwd, timeout

    @property
    def id(self) -> str:
        return self._sandbox.target

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        seconds = self._timeout if timeout is None else timeout or None
        try:
            # one pipe for both, so that they come in the order in which they were written
            done = self._sandbox.run(["sh", "-c", "exec 2>&1\n" + command], cwd=self._cwd, timeout=seconds, keep_last=OUTPUT_MAX)
        except RunTimeout as late:
            said = late.stdout.decode(errors="replace")
            return ExecuteResponse(output=f"{said}\n[ended after {seconds} s]", exit_code=124, truncated=len(late.stdout) == OUTPUT_MAX)
        return ExecuteResponse(output=done.stdout.decode(errors="replace"), exit_code=done.status, truncated=len(done.stdout) == OUTPUT_MAX)

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        def upload(path: str, content: bytes) -> FileUploadResponse:
            try:
                self._sandbox.files.write(path, content, parents=True)
                return FileUploadResponse(path=path)
            except CallError as error:
                return FileUploadResponse(path=path, error=_why(error))

        return [upload(*file) for file in files]

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        def download(path: str) -> FileDownloadResponse:
            try:
                return FileDownloadResponse(path=path, content=self._sandbox.files.read(path))
            except CallError as error:
                return FileDownloadResponse(path=path, error=_why(error))

        return [download(path) for path in paths]

    def ls(self, path: str) -> LsResult:
        def info(entry: dict) -> FileInfo:
            changed = datetime.datetime.fromtimestamp(entry["mtime"], datetime.timezone.utc).isoformat()
            return {"path": f"{path.rstrip('/')}/{entry['path']}", "is_dir": entry["type"] == "directory", "size": entry["size"], "modified_at": changed}

        try:
            return LsResult(entries=[info(entry) for entry in self._sandbox.files.list(path)])
        except CallError as error:
            return LsResult(error=f"'{path}': {_why(error)}")

    def write(self, file_path: str, content: str) -> WriteResult:
        (done,) = self.upload_files([(file_path, content.encode())])
        return WriteResult(error=f"Failed to write file '{file_path}': {done.error}") if done.error else WriteResult(path=file_path)

    def edit(self, file_path: str, old_string: str, new_string: str, replace_all: bool = False) -> EditResult:
        try:
            before = self._sandbox.files.read(file_path).replace(b"\r\n", b"\n").count(old_string.encode()) if replace_all and old_string else 1
            self._sandbox.edit.replace(file_path, old_string, new_string, everywhere=replace_all)
            return EditResult(path=file_path, occurrences=before)
        except CallError as error:
            return EditResult(error=_why(error))

    def delete(self, file_path: str) -> DeleteResult:
        try:
            self._sandbox.files.remove(file_path, recursive=True)
            return DeleteResult(path=file_path)
        except CallError as error:
            return DeleteResult(error=f"Error: '{file_path}': {_why(error)}")

    # The base class leads the asynchronous ones to `aexecute`; these lead them here.

    async def als(self, path: str) -> LsResult:
        return await self._threaded(self.ls, path)

    async def awrite(self, file_path: str, content: str) -> WriteResult:
        return await self._threaded(self.write, file_path, content)

    async def aedit(self, file_path: str, old_string: str, new_string: str, replace_all: bool = False) -> EditResult:
        return await self._threaded(self.edit, file_path, old_string, new_string, replace_all)

    @staticmethod
    async def _threaded(function, *arguments):
        return await asyncio.to_thread(function, *arguments)
