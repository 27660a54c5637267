#!/usr/bin/python3
"""Prints what a browser session costs, beside the tool that came before (inspect-tool-support), with the same browser in
one run.

usage: peers_web.py [--quick] [--write FILE] TOOLBOX

Each call is a whole one, the program `exec` that a host runs, unless the row says that of the other tool only its
server's part is taken. Both by turns; medians. It ends with a table in Markdown, which --write puts into a file, between
its marks.
"""
import argparse
import contextlib
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "integration")]

from harness import web  # noqa: E402
from harness.original_web import Original, family  # noqa: E402

PAGES = HERE.parent / "integration/pages"
BIG = "<!doctype html><title>Big</title><main><h1>Big</h1>" + "".join(
    f'<p>Item {i} <a href="/x{i}">link {i}</a></p>' for i in range(5000)) + "</main>"
STILL = "<!doctype html><title>Still</title><button onclick=\"this.textContent = 'pressed'\">press</button>"
BEGIN, END = "<!-- written by make bench-peers: browser -->\n", "<!-- end of browser -->\n"


class Ours:
    """toolbox, with a server in a folder of its own."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.env = {**os.environ, "TOOLBOX_DIR": str(folder), "TMPDIR": str(folder.parent)}

    def call(self, method, **params):
        request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        done = subprocess.run([self.program, "exec"], input=request.encode(), stdout=subprocess.PIPE, env=self.env, check=True)
        answer = json.loads(done.stdout)
        while "__inspect_json_rpc_response_chunk__" in answer:
            raise SystemExit("an answer was cut")
        return answer["result"]

    def pids(self):
        """Server and keepers, and all below them."""
        status = subprocess.run([self.program, "status", "--json"], stdout=subprocess.PIPE, env=self.env, check=True)
        return family(json.loads(status.stdout)["server"]["pid"])

    def close(self):
        subprocess.run([self.program, "stop-server"], env=self.env, check=True)


def pss_kb(pids):
    """Memory of those that are no part of a browser, shared pages split."""
    total = 0
    for pid, name in pids.items():
        with contextlib.suppress(OSError):
            if not name.startswith(("chrom", "headless")):
                total += int(re.search(r"^Pss: *(\d+)", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.M)[1])
    return total


def timed(call):
    begin = time.monotonic()
    result = call()
    return time.monotonic() - begin, result


def by_turns(n, ours, theirs):
    """Medians of n calls each, in seconds."""
    took = ([], [])
    for _ in range(n):
        for times, call in zip(took, (ours, theirs)):
            times.append(timed(call)[0])
    return [statistics.median(times) for times in took]


def element(page):
    return int(re.search(r"\[(\d+)\] button", page["web_at"])[1])


def sessions(ours, theirs, site, n):
    """n sessions opened, used and closed; what is left of them: processes and files."""
    profiles = len(list(ours.folder.parent.iterdir()))
    before = len(ours.pids())
    for _ in range(n):
        name = ours.call("web_new_session", headful=False)["session_name"]
        ours.call("web_go", session_name=name, url=site.url("/still"))
        ours.call("web_close_session", session_name=name)
    left = len(ours.pids()) - before + len(list(ours.folder.parent.iterdir())) - profiles
    before = len(family(theirs.server.pid))
    for _ in range(n):
        name = theirs.call("web_new_session", headful=False)["session_name"]
        theirs.call("web_go", session_name=name, url=site.url("/still"))
    return left, len(family(theirs.server.pid)) - before


def measure(toolbox, quick):
    """Yields (what, unit, toolbox, the other)."""
    n = 3 if quick else 7
    pages = {f"/{path.name}": path.read_text() for path in PAGES.glob("*.html")}
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / "o").mkdir()
        (folder / "t/server").mkdir(parents=True, mode=0o700)
        site = web.Site({**pages, "/big": BIG, "/still": STILL})
        stack.callback(site.close)
        theirs = Original(folder / "o", web.browser())
        stack.callback(theirs.close)
        ours = Ours(toolbox, folder / "t/server")
        stack.callback(ours.close)
        first = [timed(lambda c=c: c("web_new_session", headful=False)) for c in (ours.call, theirs.exec)]
        yield "`web_new_session`, the first: server and browser start", "s", first[0][0], first[1][0]
        names = [result["session_name"] for _, result in first]

        def go(path, call=theirs.exec):
            return by_turns(n, lambda: ours.call("web_go", session_name=names[0], url=site.url(path)),
                            lambda: call("web_go", session_name=names[1], url=site.url(path)))

        go("/article.html")
        yield "`web_go` to a local page, session open", "s", *go("/article.html")
        yield "the same, of the original its server's part alone", "s", *go("/article.html", theirs.call)
        ids = [element(s.call("web_go", session_name=name, url=site.url("/still"))) for s, name in zip((ours, theirs), names)]
        yield "`web_click` that causes no navigation", "s", *by_turns(
            n, lambda: ours.call("web_click", session_name=names[0], element_id=ids[0]),
            lambda: theirs.exec("web_click", session_name=names[1], element_id=ids[1]))
        time.sleep(3)
        yield "memory beside the browser's, idle", "KiB", pss_kb(ours.pids()), pss_kb(family(theirs.server.pid))
        n = 1 if quick else 3
        yield "`web_go` to a page with 10,000 elements", "s", *go("/big")
        yield "the same, of the original its server's part alone", "s", *go("/big", theirs.call)
        left = sessions(ours, theirs, site, 5 if quick else 20)
        yield "processes and files left of 20 sessions, opened, used and closed (the other can't close one)", "", *left


def shown(number, unit):
    return f"{number * 1e3:,.0f} ms" if unit == "s" and number < 1 else f"{number:,.2f} s" if unit == "s" else f"{number:,} {unit}".strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--write", type=Path, help="put the table into this file")
    parser.add_argument("toolbox")
    options = parser.parse_args()
    version = subprocess.run([web.browser(), "--version"], capture_output=True, text=True).stdout.strip()
    text = (f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f} at the start; inspect-tool-support 1.2.0 with playwright "
            f"1.65.2; {re.search(r'[A-Z][a-z]+ [0-9.]+', version)[0]}.\n\n| what | toolbox | the original | ratio |\n"
            "| --- | ---: | ---: | ---: |\n")
    for what, unit, one, other in measure(options.toolbox, options.quick):
        ratio = f"**{other / one:,.1f}**" if one else ""
        text += f"| {what} | {shown(one, unit)} | {shown(other, unit)} | {ratio} |\n"
        print(text.rsplit("\n", 2)[1], flush=True)
    if options.write:
        head, rest = options.write.read_text().split(BEGIN, 1)
        options.write.write_text(f"{head}{BEGIN}{text}{END}{rest.split(END, 1)[1]}")


main()
