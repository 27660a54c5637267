// The official TypeScript SDKs as clients of a server on stdio, or at a URL: as client_v2.py.
// usage: node client.mjs FOLDER 1|2 STEPS COMMAND...|URL    FOLDER: where the packages are
import { readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [folder, version, stepsText, ...command] = process.argv.slice(2);
const require = createRequire(`${folder}/`);
const load = (name) => import(pathToFileURL(require.resolve(name)));

const { Client } = await load(version === "1" ? "@modelcontextprotocol/sdk/client/index.js" : "@modelcontextprotocol/client");
const { StdioClientTransport } = await load(version === "1" ? "@modelcontextprotocol/sdk/client/stdio.js" : "@modelcontextprotocol/client/stdio");
const { StreamableHTTPClientTransport } = await load(version === "1" ? "@modelcontextprotocol/sdk/client/streamableHttp.js" : "@modelcontextprotocol/client");

const report = { results: [], progress: [], log: [] };
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const slow = process.env.SLOW;
const isSlow = () =>
    readdirSync("/proc").some((pid) => {
        try {
            return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, "utf8") === slow.replaceAll(" ", "\0") + "\0";
        } catch {
            return false;
        }
    });

const client = new Client({ name: "test", version: "1" }, version === "1" ? {} : { versionNegotiation: { mode: "auto" } });
await client.connect(
    command[0].startsWith("http")
        ? new StreamableHTTPClientTransport(new URL(command[0]))
        : new StdioClientTransport({ command: command[0], args: command.slice(1), env: process.env }),
);
report.name = client.getServerVersion().name;
report.revision = client.getNegotiatedProtocolVersion?.() ?? "";
const callTool = (params, options) => (version === "1" ? client.callTool(params, undefined, options) : client.callTool(params, options));

report.tools = (await client.listTools()).tools.map((tool) => tool.name);
const kept = {};
for (const step of JSON.parse(stepsText)) {
    const given = Object.entries(step.arguments ?? {});
    const args = Object.fromEntries(given.map(([key, value]) => [key, String(value).startsWith("$") ? kept[value.slice(1)] : value]));
    const onprogress = step.progress && ((p) => report.progress.push([p.progress, p.total, p.message]));
    const result = await callTool({ name: step.tool, arguments: args }, onprogress ? { onprogress } : {});
    for (const [name, member] of Object.entries(step.keep ?? {})) kept[name] = result.structuredContent[member];
    report.results.push({ content: result.content, structuredContent: result.structuredContent, isError: result.isError });
}

const abort = new AbortController();
const call = callTool({ name: "shell_run", arguments: { command: slow } }, { signal: abort.signal });
while (!isSlow()) await sleep(20);
abort.abort("test");
await call.then(() => process.exit(1), () => {});
while (isSlow()) await sleep(20);
report.cancelled = true;
await client.close();
console.log(JSON.stringify(report));
