"""What a client of each SDK does, and what it reports (client_v2.py)."""
import json
import os


def environment():
    """SDKs pass on very little of it."""
    return dict(os.environ)


class Report:
    def __init__(self, steps):
        self.steps, self.kept = json.loads(steps), {}
        self.slow = os.environ["SLOW"]  # a command that would never end
        self.report = {"results": [], "progress": [], "log": []}

    async def log(self, params):
        self.report["log"].append(params.data)

    def told(self, name, revision):
        self.report |= {"name": name, "revision": revision}

    async def progress(self, progress, total, message):
        self.report["progress"].append([progress, total, message])

    def _take(self, value):
        return self.kept[value[1:]] if isinstance(value, str) and value.startswith("$") else value

    async def run(self, tools, call):
        self.report["tools"] = [tool.name for tool in tools]
        for step in self.steps:
            arguments = {key: self._take(value) for key, value in step.get("arguments", {}).items()}
            result = await call(step["tool"], arguments, progress_callback=self.progress if step.get("progress") else None)
            result = result.model_dump(by_alias=True, exclude_none=True)
            for name, member in step.get("keep", {}).items():
                self.kept[name] = result["structuredContent"][member]
            self.report["results"].append({key: result.get(key) for key in ("content", "structuredContent", "isError")})

    def _is_slow(self):
        wanted = self.slow.replace(" ", "\0") + "\0"
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline") as file:
                    if file.read() == wanted:
                        return True
            except OSError:
                pass
        return False

    async def until_slow(self, sleep):
        while not self._is_slow():
            await sleep(0.02)

    async def until_not_slow(self, sleep):
        while self._is_slow():
            await sleep(0.02)
        self.report["cancelled"] = True

    def print(self):
        print(json.dumps(self.report))
