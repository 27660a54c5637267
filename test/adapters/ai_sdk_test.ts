/** usage: node ai_sdk_test.js FOLDER: `generateText` with a model that has its lines written for it. */

import assert from "node:assert/strict";
import { generateText, isStepCount } from "ai";
import { MockLanguageModelV4 } from "ai/test";
import { Sandbox } from "toolbox-sandbox";
import { sandboxTools } from "./ai_sdk.ts";

const folder = process.argv[2] ?? "";
const path = `${folder}/a/b.txt`;
const calls: [name: string, input: object][] = [
    ["writeFile", { path, content: "one\n" }],
    ["replaceInFile", { path, old: "nowhere", by: "x" }],
    ["replaceInFile", { path, old: "one", by: "two" }],
    ["applyPatch", { patch: "--- a/a/b.txt\n+++ b/a/b.txt\n@@ -1 +1,2 @@\n two\n+three\n", directory: folder }],
    ["readFile", { path, firstLine: 2, lastLine: 2 }],
    ["bash", { command: `cd ${folder}/a; A=7` }],
    ["bash", { command: "cat b.txt; echo $A; false" }],
    ["bash", { command: "read x" }],
    ["bash", { command: "echo -$A" }],
];

let turn = 0;
const model = new MockLanguageModelV4({
    doGenerate: async () => {
        const [toolName, input] = calls[turn] ?? [];
        const content = toolName
            ? [{ type: "tool-call" as const, toolCallId: String(turn++), toolName, input: JSON.stringify(input) }]
            : [{ type: "text" as const, text: "done" }];
        const none = { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined };
        const usage = { inputTokens: none, outputTokens: { total: 1, text: 1, reasoning: undefined } };
        return { content, finishReason: { unified: toolName ? "tool-calls" : "stop", raw: undefined }, usage, warnings: [] };
    },
});

await using sandbox = await Sandbox.connect("local:", { options: ["--dir", `${folder}/there`] });
{
    await using tools = sandboxTools(sandbox, { cwd: "/" });
    const { text, steps } = await generateText({ model, tools: tools.all, stopWhen: isStepCount(20), prompt: "Do it." });
    assert.equal(text, "done");
    const parts = steps.flatMap((step) => step.content).filter((part) => part.type === "tool-result" || part.type === "tool-error");
    const said = parts.map((part) => (part.type === "tool-error" ? part.error : part.output)) as any[];
    assert.deepEqual(parts.flatMap((part, number) => (part.type === "tool-error" ? [number] : [])), [1]);
    assert.match(String(said[1]), /does not occur/);
    assert.match(said[4], /three/);
    assert.deepEqual(said[6], { output: "two\nthree\n7\n", exitCode: 1, state: "completed", cwd: `${folder}/a` });
    assert.deepEqual([said[7].state, said[8].output], ["awaiting_input", "-\n"]);
}
assert.deepEqual(await sandbox.methods.bash_session_list(), []);
