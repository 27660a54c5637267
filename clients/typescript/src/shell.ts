/** A shell session, or one of any interpreter: it keeps its directory, its variables and its jobs. */

import type { Connection } from "./connection.ts";
import { type Abortable, given, seconds } from "./waiting.ts";
import type { Json, Message } from "./wire.ts";

/**
 * What became of a command: `completed`, `timeout` (it runs on, and `run()` without a command waits for it), `awaiting_input`
 * (it waits for something to be sent), or that the shell has `exited`.
 */
export interface ShellResult {
    state: "completed" | "timeout" | "awaiting_input" | "exited";
    exitCode: number | null;
    output: string;
    cwd: string | null;
    durationMs: number | null;
    omittedBytes: number;
    error: { type: string; message: string } | null;
    notice: string | null;
}

export interface ShellOptions extends Abortable {
    /** In the place of a shell: an interpreter and its arguments. */
    program?: readonly string[] | undefined;
    shell?: string | undefined;
    env?: Readonly<Record<string, string>> | undefined;
    cwd?: string | undefined;
    user?: string | undefined;
    rows?: number | undefined;
    cols?: number | undefined;
}

export interface ShellRunOptions extends Abortable {
    timeoutMs?: number | undefined;
    maxOutputBytes?: number | undefined;
    /** Who gives up, or is lost, leaves the command running. Otherwise it is interrupted. */
    leaveRunning?: boolean | undefined;
}

/** A session. It lives on in the target until it is closed; `await using` closes it. */
export class Shell implements AsyncDisposable {
    readonly name: string;
    #connection: Connection;

    constructor(connection: Connection, name: string) {
        this.#connection = connection;
        this.name = name;
    }

    static async start(connection: Connection, options: ShellOptions): Promise<Shell> {
        const { signal, ...params } = options;
        return new Shell(connection, (await connection.call("bash_session_new_session", given(params), signal)).session_name);
    }

    async #call(method: string, params: Message, options: Abortable): Promise<Json> {
        return this.#connection.call(method, { session_name: this.name, ...given(params) }, options.signal);
    }

    /** Runs a command and waits for its end; without one it waits on for what runs. */
    async run(command?: string, options: ShellRunOptions = {}): Promise<ShellResult> {
        const { timeoutMs, maxOutputBytes, leaveRunning } = options;
        const params = { command, timeout: seconds(timeoutMs), max_output_bytes: maxOutputBytes, interrupt_abandoned: !leaveRunning };
        const got = await this.#call("bash_session_run", params, options);
        return {
            state: got.state,
            exitCode: got.exit_code ?? null,
            output: got.output,
            cwd: got.cwd ?? null,
            durationMs: got.duration_ms ?? null,
            omittedBytes: got.omitted_bytes ?? 0,
            error: got.error ?? null,
            notice: got.notice ?? null,
        };
    }

    /** Types text as a person would, and gives what came of it: waits so long for the first of it, and then until nothing more comes for so long. */
    async send(text: string, options: Abortable & { waitForOutputMs?: number; idleTimeoutMs?: number } = {}): Promise<string> {
        const { waitForOutputMs = 5000, idleTimeoutMs = 500 } = options;
        return this.#call("bash_session", { input: text, wait_for_output: Math.ceil(waitForOutputMs / 1000), idle_timeout: idleTimeoutMs / 1000 }, options);
    }

    /** As Ctrl-C does, for what runs in the foreground. */
    async interrupt(options: Abortable = {}): Promise<void> {
        await this.signal("INT", options);
    }

    async signal(name: string, options: Abortable = {}): Promise<void> {
        await this.#call("bash_session_signal", { signal: name }, options);
    }

    async resize(rows: number, cols: number, options: Abortable = {}): Promise<void> {
        await this.#call("bash_session_resize", { rows, cols }, options);
    }

    /** A new shell in the place of this one, under the same name. */
    async restart(options: Abortable = {}): Promise<string> {
        return this.#call("bash_session", { restart: true }, options);
    }

    /** What is shown and typed there from now on, without taking output from anybody. */
    watch(options: Abortable = {}): AsyncGenerator<Message, void> {
        return this.#connection.subscribe("bash_session_watch", { session_name: this.name }, options.signal);
    }

    async close(options: Abortable = {}): Promise<void> {
        await this.#call("bash_session_close", {}, options);
    }

    async [Symbol.asyncDispose](): Promise<void> {
        if (!this.#connection.closed) {
            await this.close();
        }
    }
}
