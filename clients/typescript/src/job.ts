/** A program in the background: it outlives calls and connections, and its output waits for whoever asks. */

import type { Connection } from "./connection.ts";
import { type Abortable, given, seconds } from "./waiting.ts";
import type { Json, Message } from "./wire.ts";

/** What a job has said since the last one, and how it stands. */
export interface JobOutput {
    stdout: string;
    stderr: string;
    state: "running" | "completed" | "killed";
    exitCode: number | null;
}

export interface JobOptions extends Abortable {
    input?: string | undefined;
    /** Its stdin stays open, for `write`. */
    stdin?: boolean | undefined;
    env?: Readonly<Record<string, string>> | undefined;
    cwd?: string | undefined;
    user?: string | undefined;
    timeoutMs?: number | undefined;
}

/** A job. Iterating over it gives its output as it comes, each byte once; afterwards `exitCode` is there. */
export class Job {
    readonly pid: number;
    exitCode: number | null = null;
    #connection: Connection;
    #seq = 0;

    constructor(connection: Connection, pid: number) {
        this.#connection = connection;
        this.pid = pid;
    }

    static async start(connection: Connection, argv: string | readonly string[], options: JobOptions): Promise<Job> {
        const { input, stdin, env, cwd, user, timeoutMs, signal } = options;
        const what = typeof argv === "string" ? { command: argv } : { argv };
        const params = { ...what, ...given({ input, env, cwd, user, timeout: seconds(timeoutMs), stdin_open: stdin }) };
        return new Job(connection, (await connection.call("exec_remote_start", params, signal)).pid);
    }

    async #call(method: string, params: Message, options: Abortable): Promise<Json> {
        return this.#connection.call(`exec_remote_${method}`, { pid: this.pid, ...params }, options.signal);
    }

    #take(got: Message): JobOutput {
        this.#seq = got.seq ?? this.#seq;
        this.exitCode = got.exit_code ?? null;
        return { stdout: got.stdout ?? "", stderr: got.stderr ?? "", state: got.state ?? "running", exitCode: this.exitCode };
    }

    [Symbol.asyncIterator](): AsyncGenerator<JobOutput, void> {
        return this.follow();
    }

    /** The same as iterating over it, until the signal is given: the job goes on. */
    async *follow(options: Abortable = {}): AsyncGenerator<JobOutput, void> {
        for await (const event of this.#connection.subscribe("exec_remote_follow", { pid: this.pid }, options.signal)) {
            yield this.#take(event);
        }
    }

    /** All that nobody has had yet, at its end or when the time is over. The signal ends the waiting, not the job. */
    async wait(options: Abortable & { timeoutMs?: number | undefined } = {}): Promise<JobOutput> {
        let [stdout, stderr] = ["", ""];
        for (;;) {
            const params = { ack_seq: this.#seq, ...given({ timeout: seconds(options.timeoutMs) }) };
            const got = this.#take(await this.#call("wait", params, options));
            stdout += got.stdout;
            stderr += got.stderr;
            if (got.state !== "running" || options.timeoutMs !== undefined) {
                return { ...got, stdout, stderr };
            }
        }
    }

    /** Text for its stdin (`stdin: true`), and what it has said. */
    async write(text: string, options: Abortable = {}): Promise<JobOutput> {
        return this.#take(await this.#call("write_stdin", { ack_seq: this.#seq, data: text }, options));
    }

    async closeStdin(options: Abortable = {}): Promise<JobOutput> {
        return this.#take(await this.#call("close_stdin", { ack_seq: this.#seq }, options));
    }

    /** For its process group: `INT`, `SIGTERM`. */
    async signal(name: string, options: Abortable = {}): Promise<void> {
        await this.#call("signal", { signal: name }, options);
    }

    /** Ends it with all that it has started, and gives what it had said. */
    async kill(options: Abortable = {}): Promise<JobOutput> {
        return this.#take(await this.#call("kill", { ack_seq: this.#seq }, options));
    }
}
