/**
 * All of the surface, in the target $TARGET (made ready with $CONNECT_OPTIONS), which needs no more than a shell and sed. Where it is
 * `local:`, its ports are ours; $WITH_BROWSER says that there is one.
 */

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import {
    CannotConnect, CannotRun, ConnectionLost, CopyFailed, FileError, InvalidParams, OutputLimit, RunFailed, RunTimeout, Sandbox, ToolError,
    ToolboxError, UnknownMethod, eject, findToolbox,
} from "../src/index.ts";

const options = JSON.parse(process.env["CONNECT_OPTIONS"] ?? "[]") as string[];
const target = process.env["TARGET"] ?? "local:";
const folder = `/tmp/toolbox-sandbox-${randomBytes(6).toString("hex")}`; // there
let sandbox: Sandbox;

const sleep = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

async function until(is: () => Promise<boolean>): Promise<void> {
    while (!(await is())) {
        await sleep(10); // the whole run has a limit
    }
}

const runs = async (pid: number | string): Promise<boolean> => (await sandbox.run(["test", "-d", `/proc/${pid}`])).status === 0;

const textOf = (path: string): Promise<string> => sandbox.files.readText(path);

const isThere = async (path: string): Promise<boolean> => (await sandbox.run(["test", "-e", path])).status === 0;

/** A command that runs for long, and whose pid is read by `began`. */
function slow(name: string): { command: string; began: () => Promise<string> } {
    const mark = join(folder, name);
    const began = async (): Promise<string> => (await until(() => isThere(mark)), (await textOf(mark)).trim());
    return { command: `echo $$ >${mark}.new; mv ${mark}.new ${mark}; sleep 1000`, began };
}

before(async () => {
    sandbox = await Sandbox.connect(target, { options });
    await sandbox.files.makeDir(folder);
});

after(async () => {
    await sandbox.files.remove(folder, { recursive: true });
    await sandbox.close();
    assert.ok(sandbox.closed);
});

test("more at once than is taken", async () => {
    const done = await Promise.all(Array.from({ length: 1100 }, () => sandbox.run(["true"])));
    assert.ok(done.every(({ status }) => status === 0));
    const job = await sandbox.start("sleep 0.3");
    const ended = await Promise.all(Array.from({ length: 1100 }, () => sandbox.call("exec_remote_wait", { pid: job.pid, ack_seq: 0 })));
    assert.ok(ended.every((one) => one.exit_code === 0));
    const stop = new AbortController();
    const running = Array.from({ length: 1030 }, () => sandbox.run(["sleep", "1000"], { signal: stop.signal }));
    const calls = Array.from({ length: 1030 }, () => sandbox.call("mcp_read_notifications", { session_id: 9999 }, { signal: stop.signal }));
    stop.abort(new Error("enough"));
    for (const outcome of await Promise.allSettled([...running, ...calls])) {
        assert.ok(outcome.status === "rejected" && outcome.reason.message === "enough");
    }
    assert.equal((await sandbox.run(["echo", "on"])).text, "on\n");
});

test("what can't be sent", async () => {
    await assert.rejects(sandbox.run(["echo", "x".repeat(3_000_000)]), (error: CannotRun) => error instanceof CannotRun && /too long/.test(error.message));
    let deep: object = {};
    for (let n = 0; n < 800; n++) {
        deep = { a: deep };
    }
    await assert.rejects(sandbox.call("version", { deep }), /nested too deeply/);
    await assert.rejects(sandbox.call("version", { a: 1n }), TypeError);
    const limits = sandbox.hello["limits"];
    const most = limits.line;
    limits.line = 1000;
    await assert.rejects(sandbox.files.read("x".repeat(1000)), (error: InvalidParams) => error instanceof InvalidParams && /at most 1000/.test(error.message));
    limits.line = most;
    assert.ok(await sandbox.call("version"));
});

test("a program that takes nothing, when the connection is lost", async () => {
    const over = await Sandbox.over([findToolbox(), "exec", "--stream"]);
    const process = over.process(["sleep", "1000"]);
    const written = process.write(Buffer.alloc(10_000_000));
    const waiting = [written, over.run(["sleep", "1000"]), over.call("exec_remote_wait", { pid: (await over.start("sleep 1000")).pid, ack_seq: 0 })];
    const lost = waiting.map((one) => assert.rejects(one, ConnectionLost));
    await over.close();
    await Promise.all(lost);
    const ended = sandbox.process(["true"]);
    for await (const _ of ended);
    await assert.rejects(ended.write("x"), /true has ended/);
});

test("what changes", async () => {
    const tree = join(folder, "watched");
    await sandbox.files.makeDir(tree);
    const watch = await sandbox.files.watch(tree, { exclude: ["*.o"] });
    await sandbox.files.write(join(tree, "a.o"), "");
    await sandbox.files.write(join(tree, "a"), "");
    for await (const change of watch) {
        assert.deepEqual(change, { path: "a", change: "created", directory: false });
        break;
    }
    assert.ok(!watch.incomplete);
    await sandbox.files.remove(tree, { recursive: true });
    const rest = [];
    for await (const { path, change } of watch) {
        rest.push([path, change]);
    }
    assert.ok(rest.some(([path, change]) => path === "a" && change === "deleted"), JSON.stringify(rest));
    await watch.close();
    await assert.rejects(sandbox.files.watch(tree), (error: ToolError) => error instanceof ToolError && /No such file/.test(error.message));
    const stop = new AbortController();
    const stopped = await sandbox.files.watch(folder, { signal: stop.signal });
    stop.abort(new Error("enough"));
    await assert.rejects((async () => { for await (const _ of stopped); })(), /enough/);
    await stopped.close();
    const closed = await sandbox.files.watch(folder);
    const none = (async () => { for await (const change of closed) { assert.fail(JSON.stringify(change)); } })();
    await closed.close();
    await none;
});

test("a program", async () => {
    const input = randomBytes(3_000_000);
    const done = await sandbox.run(["sh", "-c", "cat; echo $A >&2; pwd >&2; exit 3"], { input, env: { A: "é" }, cwd: "/usr" });
    assert.equal(done.status, 3);
    assert.ok(done.stdout.equals(input));
    assert.equal(done.stderr.toString(), "é\n/usr\n");
    assert.ok(done.ms > 0);
    assert.equal((await sandbox.run(["echo", "hi"])).text, "hi\n");
    assert.equal((await sandbox.run(["cat"], { input: "text" })).text, "text");
});

test("a program that takes no input", async () => {
    assert.equal((await sandbox.run(["true"], { input: Buffer.alloc(5_000_000) })).status, 0);
    assert.equal((await sandbox.run(["cat"])).text, ""); // without input there is none to wait for
});

test("what can go wrong with one", async () => {
    const missing = await sandbox.run([join(folder, "nowhere", "program")]).catch((error: unknown) => error);
    assert.ok(missing instanceof CannotRun && missing instanceof ToolboxError);
    assert.deepEqual([missing.status, missing.name], [127, "CannotRun"]);
    assert.match(missing.message, /not found/);
    await sandbox.files.write(join(folder, "file"), "");
    await assert.rejects(sandbox.run([join(folder, "file")]), { status: 126 });
    await assert.rejects(sandbox.run(["true"], { user: "nobody-of-that-name" }), CannotRun);
    const failed = sandbox.run(["sh", "-c", "echo why >&2; exit 4"], { check: true });
    await assert.rejects(failed, (error) => error instanceof RunFailed && error.message === "sh ended with status 4: why" && error.status === 4);
    const late = sandbox.run(["sh", "-c", "echo part; sleep 100"], { timeoutMs: 1000 });
    await assert.rejects(late, (error) => error instanceof RunTimeout && error.stdout.toString() === "part\n" && error.timeoutMs === 1000);
    assert.equal((await sandbox.run(["sh", "-c", "exit 124"], { timeoutMs: 100_000 })).status, 124);
    const much = sandbox.run(["yes"], { outputLimit: 1000 });
    await assert.rejects(much, (error) => error instanceof OutputLimit && error.stdout.toString() === "y\n".repeat(500) && error.limit === 1000);
    assert.equal((await sandbox.run(["sh", "-c", "yes | head -n 200000; echo end"], { keepLast: 8 })).text, "y\ny\nend\n");
});

test("a program whose input and output come by and by", async () => {
    await using process = sandbox.process(["sh", "-c", "exec 2>/dev/null; trap 'echo two; exit 5' TERM; read line; echo $line; while :; do sleep 0.05; done"]);
    await process.write("one\n");
    await process.closeStdin();
    let said = "";
    for await (const { stream, data } of process) {
        assert.equal(stream, "stdout");
        said += data.toString();
        if (said === "one\n") {
            await process.signal("SIGTERM");
        }
    }
    assert.deepEqual([said, process.status, process.timedOut], ["one\ntwo\n", 5, false]);
    const ended = sandbox.process(["sleep", "1000"]);
    await ended.resize(30, 90);
    await ended.signal(9);
    for await (const { data } of ended) {
        assert.fail(data.toString());
    }
    assert.equal(ended.status, 137);
});

test("who gives up leaves nothing running", async () => {
    let pid = 0;
    for await (const { data } of sandbox.process(["sh", "-c", "echo $$; sleep 1000 & wait"])) {
        pid = Number(data.toString());
        break;
    }
    const { command, began } = slow("given-up");
    const giveUp = new AbortController();
    const running = sandbox.run(["sh", "-c", command], { input: Buffer.alloc(3_000_000), signal: giveUp.signal });
    const other = await began();
    giveUp.abort(new Error("enough"));
    await assert.rejects(running, /enough/);
    await until(async () => !(await runs(pid)) && !(await runs(other)));
    await assert.rejects(sandbox.run(["true"], { signal: giveUp.signal }), /enough/);
    await assert.rejects(sandbox.call("version", {}, { signal: giveUp.signal }), /enough/);
});

test("many at once", async () => {
    const numbers = Array.from({ length: 100 }, (_, i) => i);
    const done = await Promise.all(numbers.map((i) => sandbox.run(["sh", "-c", `cat; exit ${i % 50}`], { input: String(i).repeat(5000) })));
    assert.deepEqual(done.map(({ status, text }) => [status, text]), numbers.map((i) => [i % 50, String(i).repeat(5000)]));
    const versions = new Set(await Promise.all(Array.from({ length: 500 }, () => sandbox.call("version"))));
    assert.deepEqual([...versions], [await sandbox.methods.version()]);
});

test("a shell", async () => {
    const shell = await sandbox.shell({ cwd: "/", env: { B: "8" } });
    assert.equal((await shell.run("cd /usr; A=7; echo $B")).output, "8\n");
    const done = await shell.run("echo $A; pwd; false");
    assert.deepEqual([done.output, done.exitCode, done.cwd, done.state, done.omittedBytes], ["7\n/usr\n", 1, "/usr", "completed", 0]);
    assert.equal((await shell.run("sleep 1000", { timeoutMs: 200 })).state, "timeout");
    await shell.interrupt();
    assert.equal((await shell.run()).exitCode, 130);
    assert.match(await shell.send("echo typed\n"), /typed/);
    await shell.resize(40, 100);
    assert.equal((await shell.run("stty size")).output, "40 100\n");
    for await (const shown of shell.watch()) {
        assert.match(JSON.stringify(shown), /typed/);
        break;
    }
    const again = await sandbox.shell(shell.name);
    assert.equal((await again.run("echo $A")).output, "7\n");
    await shell.restart();
    assert.equal((await shell.run("echo -$A")).output, "-\n");
    await again.close();
    await assert.rejects(again.run("true"), ToolError);
    const other = await sandbox.shell({ program: ["sh"] });
    assert.equal((await other.run("exit 3")).state, "exited");
    await other.close();
});

test("a shell's command that is given up is interrupted, unless it is to run on", async () => {
    await using shell = await sandbox.shell();
    for (const leaveRunning of [false, true]) {
        const { command, began } = slow(`shell-${leaveRunning}`);
        const giveUp = new AbortController();
        const running = shell.run(`sh -c '${command}'`, { signal: giveUp.signal, leaveRunning });
        const pid = await began();
        giveUp.abort();
        await assert.rejects(running, { name: "AbortError" });
        if (leaveRunning) {
            assert.equal((await shell.run(undefined, { timeoutMs: 100 })).state, "timeout");
            assert.ok(await runs(pid));
            await shell.signal("KILL");
        }
        await until(async () => !(await runs(pid)));
    }
});

test("jobs", async () => {
    let job = await sandbox.start("for i in 1 2 3; do echo $i; done; echo no >&2; exit 3");
    let [stdout, stderr] = ["", ""];
    for await (const said of job) {
        stdout += said.stdout;
        stderr += said.stderr;
    }
    assert.deepEqual([stdout, stderr, job.exitCode], ["1\n2\n3\n", "no\n", 3]);
    job = await sandbox.start(["cat"], { stdin: true });
    stdout = (await job.write("abc\n")).stdout + (await job.closeStdin()).stdout;
    const end = await job.wait();
    assert.deepEqual([stdout + end.stdout, end.exitCode], ["abc\n", 0]);
    job = await sandbox.start(["sh", "-c", "exec 2>/dev/null; trap 'echo $A; exit 6' USR1; echo ready; while :; do sleep 0.05; done"], { env: { A: "x" }, cwd: "/", timeoutMs: 600_000 });
    for await (const said of job) {
        stdout = said.stdout;
        break;
    }
    assert.equal(stdout, "ready\n");
    await job.signal("USR1");
    assert.deepEqual(await job.wait(), { stdout: "x\n", stderr: "", state: "completed", exitCode: 6 });
    job = await sandbox.start(["sleep", "1000"]);
    assert.equal((await job.wait({ timeoutMs: 0 })).state, "running");
    await assert.rejects(job.wait({ signal: AbortSignal.timeout(50) }), { name: "TimeoutError" });
    const following = job.follow({ signal: AbortSignal.timeout(50) });
    await assert.rejects(async () => {
        for await (const said of following) {
            assert.equal(said.state, "running");
        }
    }, { name: "TimeoutError" });
    assert.ok(await runs(job.pid));
    await job.kill();
    assert.notEqual((await sandbox.job(job.pid).wait()).state, "running");
});

test("files", async () => {
    const path = join(folder, "a", "b");
    const data = randomBytes(2_500_000);
    await assert.rejects(sandbox.files.write(path, data), (error) => error instanceof FileError && error.kind === "not_found");
    await sandbox.files.write(path, data, { parents: true, mode: 0o600 });
    assert.ok((await sandbox.files.read(path)).equals(data));
    assert.ok((await sandbox.files.read(path, { limit: 1_100_000 })).equals(data.subarray(0, 1_100_000)));
    const stat = await sandbox.files.stat(path);
    assert.deepEqual([stat.type, stat.size], ["file", data.length]);
    await sandbox.files.write(path, "é");
    assert.equal(await sandbox.files.readText(path), "é");
    await sandbox.files.write(path, "first\ntext é\n");
    const found = await sandbox.files.search(join(folder, "a"), "^TEXT é", { ignoreCase: true });
    assert.deepEqual(found.matches.map(({ line, text }) => [line, text]), [[2, "text é"]]);
    assert.equal((await sandbox.files.find(join(folder, "a"), { pattern: "b*" })).paths.length, 1);
    await sandbox.files.write(path, Uint8Array.of(0xff));
    await assert.rejects(sandbox.files.readText(path), TypeError);
    await sandbox.files.write(path, "");
    assert.equal((await sandbox.files.read(path)).length, 0);
    await sandbox.files.makeDir(join(folder, "a", "c"));
    await sandbox.files.copy(path, join(folder, "a", "c", "d"));
    await sandbox.files.move(path, join(folder, "a", "e"));
    const names = [];
    for await (const entry of sandbox.files.list(join(folder, "a"), { depth: 2 })) {
        names.push(entry.path);
    }
    assert.deepEqual(names.map((name) => name.split("/").slice(-1)[0]), ["c", "d", "e"]);
    await sandbox.files.remove(join(folder, "a"), { recursive: true });
    assert.ok(!(await isThere(join(folder, "a"))));
});

test("copies of trees", async () => {
    const ours = mkdtempSync(join(tmpdir(), "toolbox-sandbox-"));
    try {
        const tree = join(ours, "tree");
        mkdirSync(join(tree, "sub"), { recursive: true });
        writeFileSync(join(tree, "sub", "a:b"), "x".repeat(100_000));
        writeFileSync(join(tree, "left.out"), "");
        const copied = await sandbox.files.copyIn(tree, join(folder, "in"), { exclude: ["*.out"], checksum: true });
        assert.deepEqual([copied.ok, copied.files], [true, 1]);
        await sandbox.files.copyIn(`${tree}/.`, folder, { archive: true });
        assert.equal(await textOf(join(folder, "sub", "a:b")), "x".repeat(100_000));
        await sandbox.files.copyOut(join(folder, "in", "sub", "a:b"), join(ours, "c:d"));
        assert.equal(readFileSync(join(ours, "c:d"), "utf8"), "x".repeat(100_000));
        const missing = sandbox.files.copyOut(join(folder, "nowhere"), ours);
        await assert.rejects(missing, (error) => error instanceof CopyFailed && /nowhere/.test(error.message) && error.copied.failed === 1);
    } finally {
        rmSync(ours, { recursive: true });
    }
});

test("the editor and errors", async () => {
    const path = join(folder, "a.txt");
    await sandbox.edit.create(path, "one\n");
    await sandbox.edit.replace(path, "one", "two");
    assert.match(await sandbox.edit.view(path, { lines: [1, 1] }), /two/);
    await sandbox.edit.undo(path);
    assert.equal(await textOf(path), "one\n");
    await sandbox.edit.insert(path, 1, "one");
    await sandbox.edit.replace(path, "one", "1", { all: true });
    await sandbox.edit.many([{ path, old_str: "1\n1", new_str: "3" }]);
    await sandbox.patch("*** Begin Patch\n*** Update File: a.txt\n@@\n-3\n+4\n*** End Patch\n", { path: folder });
    assert.equal((await textOf(path)).trim(), "4");
    await assert.rejects(sandbox.edit.view(join(folder, "nowhere")), (error) => error instanceof ToolError && /does not exist/.test(error.message));
    await assert.rejects(sandbox.call("no_such_method"), UnknownMethod);
    await assert.rejects(sandbox.call("exec_remote_poll", { pid: "x" }), (error) => error instanceof InvalidParams && error.code === -32602);
    const made = await sandbox.methods.bash_session_new_session({ rows: 30, cwd: undefined });
    assert.equal(await sandbox.methods.bash_session_close({ session_name: made.session_name }), null);
});

const SERVER = 's/.*"id":\\([0-9]*\\).*"method":"\\([a-z]*\\)".*/{"jsonrpc":"2.0","id":\\1,"result":"\\2"}/p';

test("an MCP server", async () => {
    await using server = await sandbox.mcp.launch("sed", ["-u", "-n", SERVER], { cwd: "/" });
    await server.notify("notifications/initialized");
    const answer = await server.request("echo", { a: 1 });
    assert.equal(answer["result"], "echo");
    await server.kill();
    await assert.rejects(server.request("echo"), ToolError);
});

test("a browser", { skip: process.env["WITH_BROWSER"] === undefined }, async () => {
    await using browser = sandbox.browser;
    const page = await browser.go("data:text/html,<title>x</title><button>Press me</button><input>");
    assert.match(page.web_at, /Press me/);
    const idOf = (role: string): number => Number(new RegExp(`\\[(\\d+)\\] ${role}`).exec(page.web_at)?.[1]);
    await browser.click(idOf("button"));
    assert.match((await browser.type(idOf("textbox"), "typed")).web_at, /typed/);
    assert.equal((await browser.screenshot({ fullPage: true })).toString("latin1", 1, 4), "PNG");
});

test("a port", { skip: target !== "local:" }, async () => {
    const server = createServer({ allowHalfOpen: true }, (client) => client.on("error", () => {}).pipe(client));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const there = (server.address() as AddressInfo).port;
    await using forward = await sandbox.forward(there);
    const client = connect(forward.port, "127.0.0.1");
    const data = randomBytes(3_000_000);
    client.end(data);
    const came: Buffer[] = await client.toArray();
    assert.ok(Buffer.concat(came).equals(data));
    const held = connect(forward.port, "127.0.0.1").on("error", () => {});
    held.write("x");
    assert.equal((await once(held, "data")).toString(), "x");
    held.destroy();
    await new Promise((done) => server.close(done));
    const refused = connect(forward.port, "127.0.0.1"); // nobody listens there now
    await new Promise<void>((done) => refused.on("error", () => {}).on("close", () => done()).resume());
});

test("every method is there, and says what it needs", async () => {
    const others = ["constructor", "sandbox_tools_shutdown", "web_new_session", "bash_session_new_session", "computer_new_session", "server_watch"];
    const names = Object.getOwnPropertyNames(Object.getPrototypeOf(sandbox.methods)).filter((name) => !others.includes(name));
    const methods = sandbox.methods as unknown as Record<string, (params: object) => Promise<unknown>>;
    const answers = await Promise.allSettled(names.map((name) => methods[name]?.({})));
    const wrong = answers.flatMap((one) => (one.status === "rejected" && !(one.reason instanceof InvalidParams) ? [String(one.reason)] : []));
    assert.ok(names.length > 60);
    assert.deepEqual(wrong, []);
});

test("doctor", async () => {
    assert.ok((await sandbox.doctor()).checks.length > 5);
});

test("a stream that ends tells everybody", async () => {
    const mine = await Sandbox.over([findToolbox(), "exec", "--stream"]);
    const shell = await mine.shell();
    const waiting = [shell.run("sleep 1000"), mine.run(["sleep", "1000"]), mine.run(["cat"], { input: Buffer.alloc(3_000_000) }).then(() => mine.run(["sleep", "1000"]))];
    const lost = Promise.all(waiting.map((one) => assert.rejects(one, ConnectionLost)));
    await mine.call("version");
    process.kill(mine.hello["pid"], "SIGKILL");
    await lost;
    await assert.rejects(mine.call("version"), ConnectionLost);
    await assert.rejects(mine.run(["true"]), ConnectionLost);
    assert.ok(mine.closed);
    await mine.close();
    await using after = await Sandbox.over([findToolbox(), "exec", "--stream"]);
    await assert.rejects(after.files.copyIn("/etc/passwd", folder), ToolboxError);
    await after.methods.sandbox_tools_shutdown();
});

test("there is no way", async () => {
    await assert.rejects(Sandbox.connect("docker:"), (error) => error instanceof CannotConnect && error.message.includes("docker:"));
    await assert.rejects(Sandbox.over([join(folder, "program")]), CannotConnect);
    await assert.rejects(Sandbox.over(["/dev/null/program"]), CannotConnect);
    await assert.rejects(Sandbox.over([]), CannotConnect);
    await assert.rejects(Sandbox.over(["true"]), ConnectionLost);
    await assert.rejects(Sandbox.over(["echo", "no JSON"]), ConnectionLost);
    await assert.rejects(Sandbox.over(["sleep", "1000"], { signal: AbortSignal.timeout(50) }), { name: "TimeoutError" });
    await assert.rejects(Sandbox.connect(target, { signal: AbortSignal.abort() }), { name: "AbortError" });
    await assert.rejects(eject("docker:"), CannotConnect);
    const { TOOLBOX_BINARY, PATH } = process.env;
    delete process.env["TOOLBOX_BINARY"];
    process.env["PATH"] = folder;
    try {
        assert.throws(findToolbox, /TOOLBOX_BINARY/);
        for (const program of ["/dev/null/program", join(folder, "program"), "/dev/null"]) {
            process.env["TOOLBOX_BINARY"] = program;
            await assert.rejects(Sandbox.connect(target), (error) => error instanceof CannotConnect && error.message.includes(program));
        }
    } finally {
        Object.assign(process.env, { TOOLBOX_BINARY, PATH });
    }
});
