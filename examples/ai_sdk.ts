/**
 * Vercel's AI SDK: a container's shell, files and editor as tools.
 *
 *     await using sandbox = await Sandbox.connect("docker:web");
 *     await using tools = sandboxTools(sandbox);
 *     const { text } = await generateText({ model, tools: tools.all, stopWhen: isStepCount(50), prompt: "Make the tests pass." });
 *
 * What a tool says no to, the model gets as that tool's error. The call's `abortSignal` interrupts what runs. Needs `ai`, `zod` and
 * `toolbox-sandbox`.
 */

import { tool } from "ai";
import type { Sandbox, Shell } from "toolbox-sandbox";
import { z } from "zod";

const OUTPUT_MAX = 100_000; // bytes of which head and tail are kept

export interface SandboxToolsOptions {
    /** Of a command. */
    timeoutMs?: number;
    cwd?: string;
}

/** The tools, and a shell session for all of their commands, which `await using` closes. */
export function sandboxTools(sandbox: Sandbox, { timeoutMs = 120_000, cwd }: SandboxToolsOptions = {}) {
    let opened: Promise<Shell> | undefined;
    const shell = (): Promise<Shell> => {
        opened ??= sandbox.shell({ cwd });
        opened.catch(() => (opened = undefined));
        return opened;
    };
    const path = z.string().describe("An absolute path");
    const all = {
        bash: tool({
            description: "Runs a command in a shell that keeps its directory and variables. A state other than completed says why there is no exit code.",
            inputSchema: z.object({ command: z.string() }),
            execute: async ({ command }, { abortSignal }) => {
                const session = await shell();
                const done = await session.run(command, { timeoutMs, maxOutputBytes: OUTPUT_MAX, signal: abortSignal });
                if (done.state === "timeout" || done.state === "awaiting_input") {
                    await session.restart();
                }
                return { output: done.output, exitCode: done.exitCode, state: done.state, cwd: done.cwd };
            },
        }),
        readFile: tool({
            description: "A file with line numbers, or what is in a directory; of a file, some of its lines (from 1; -1: to the end).",
            inputSchema: z.object({ path, firstLine: z.number().int().default(1), lastLine: z.number().int().default(-1) }),
            execute: ({ path, firstLine, lastLine }, { abortSignal }) =>
                sandbox.edit.view(path, { signal: abortSignal, ...(firstLine === 1 && lastLine === -1 ? {} : { lines: [firstLine, lastLine] as const }) }),
        }),
        writeFile: tool({
            description: "Writes a file, also in the place of one that is there.",
            inputSchema: z.object({ path, content: z.string() }),
            execute: ({ path, content }, { abortSignal }) => sandbox.edit.create(path, content, { overwrite: true, parents: true, signal: abortSignal }),
        }),
        replaceInFile: tool({
            description: "Replaces a text that is in the file exactly once.",
            inputSchema: z.object({ path, old: z.string(), by: z.string() }),
            execute: ({ path, old, by }, { abortSignal }) => sandbox.edit.replace(path, old, by, { signal: abortSignal }),
        }),
        applyPatch: tool({
            description: "Applies a unified diff, whole or not at all. Its paths are below the directory.",
            inputSchema: z.object({ patch: z.string(), directory: path }),
            execute: ({ patch, directory }, { abortSignal }) => sandbox.patch(patch, { path: directory, signal: abortSignal }),
        }),
    };
    const close = async (): Promise<void> => {
        const session = await opened?.catch(() => undefined);
        opened = undefined;
        if (session && !sandbox.closed) {
            await session.close();
        }
    };
    return { all, close, [Symbol.asyncDispose]: close };
}
