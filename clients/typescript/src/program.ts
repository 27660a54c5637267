/** A program in the target, as if it ran here. */

import { constants } from "node:os";
import type { ByteStream } from "./bytestream.ts";
import type { Connection } from "./connection.ts";
import { CannotRun, ConnectionLost, OutputLimit, RunFailed, RunTimeout } from "./errors.ts";
import { type Abortable, Bell, given, seconds } from "./waiting.ts";
import { RUN_DATA_MAX, RunWire, runFrame } from "./wire.ts";

const STDIN_MAX = 1 << 19; // bytes of stdin that may be on their way
const TIMED_OUT = 124;

/** As whom, where, with what, for how long. */
export interface ProgramOptions extends Abortable {
    env?: Readonly<Record<string, string>> | undefined;
    cwd?: string | undefined;
    user?: string | undefined;
    /** It is ended then, with all that it has started. */
    timeoutMs?: number | undefined;
}

export interface RunOptions extends ProgramOptions {
    input?: string | Uint8Array | undefined;
    /** RunFailed for a status that isn't 0. */
    check?: boolean | undefined;
    /** OutputLimit for more bytes of a stream. */
    outputLimit?: number | undefined;
    /** The last so many bytes of each stream are kept, no others. */
    keepLast?: number | undefined;
}

/** A piece of what a program says. */
export interface Output {
    stream: "stdout" | "stderr";
    data: Buffer;
}

/** How a program ended: its status (128 + N: signal N) and what it said. */
export class Completed {
    readonly argv: readonly string[];
    readonly status: number;
    readonly stdout: Buffer;
    readonly stderr: Buffer;
    readonly ms: number;

    constructor(argv: readonly string[], status: number, stdout: Buffer, stderr: Buffer, ms: number) {
        this.argv = argv;
        this.status = status;
        this.stdout = stdout;
        this.stderr = stderr;
        this.ms = ms;
    }

    /** What it said on stdout, as text. */
    get text(): string {
        return this.stdout.toString();
    }
}

/**
 * A program that runs. Iterating over it gives what it says; afterwards `status` is there.
 *
 * It ends, with all that it has started, when the iteration is left early, the signal is given, or at `kill` and the end of `await using`.
 */
export class Process implements AsyncDisposable {
    readonly argv: readonly string[];
    status: number | undefined;
    #stream: ByteStream;
    #options: ProgramOptions;
    #began = performance.now();
    #held = 0; // bytes of stdin that it hasn't taken, as far as was told
    #taken = new Bell();

    constructor(connection: Connection, argv: readonly string[], options: ProgramOptions, stdin: boolean) {
        options.signal?.throwIfAborted();
        this.argv = argv;
        this.#options = options;
        const { env, cwd, user, timeoutMs, signal } = options;
        this.#stream = connection.stream({ run: { argv, stdin_open: stdin, ...given({ env, cwd, user, timeout: seconds(timeoutMs) }) } });
        this.#stream.whenLost = () => this.#taken.ring();
        signal?.addEventListener("abort", this.kill);
    }

    async *[Symbol.asyncIterator](): AsyncGenerator<Output, void> {
        const wire = new RunWire();
        try {
            while (this.status === undefined) {
                for (const [kind, data] of wire.feed(await this.#read())) {
                    if (kind === "o" || kind === "e") {
                        yield { stream: kind === "o" ? "stdout" : "stderr", data };
                    } else {
                        this.#take(kind, data);
                    }
                }
            }
        } finally {
            this.kill();
        }
    }

    async #read(): Promise<Buffer> {
        let data: Buffer | undefined;
        try {
            data = await this.#stream.read(this.#options.signal);
        } catch (error) {
            this.#options.signal?.throwIfAborted();
            if (error instanceof ConnectionLost && !this.#stream.connectionLost) {
                throw new CannotRun(125, error.message); // it was refused: there is no such user
            }
            throw error;
        }
        if (!data) {
            throw new ConnectionLost("the program's end was not told");
        }
        return data;
    }

    #take(kind: string, data: Buffer): void {
        if (kind === "t") {
            this.#held -= data.readUInt32BE();
        } else if (kind === "x") {
            this.status = data.readUInt8();
        } else if (kind === "f") {
            throw new CannotRun(data.readUInt8(), data.toString("utf8", 1));
        }
        this.#taken.ring();
    }

    /** Whether it was ended because its time was over. */
    get timedOut(): boolean {
        const limit = this.#options.timeoutMs;
        return this.status === TIMED_OUT && limit !== undefined && this.ms >= limit;
    }

    get ms(): number {
        return performance.now() - this.#began;
    }

    /** Bytes for its stdin; waits while too many are on their way. Somebody has to iterate meanwhile. */
    async write(data: string | Uint8Array): Promise<void> {
        const bytes = typeof data === "string" ? Buffer.from(data) : data;
        for (let start = 0; start < bytes.length; start += RUN_DATA_MAX) {
            const part = bytes.subarray(start, start + RUN_DATA_MAX);
            while (this.#held + part.length > STDIN_MAX && this.status === undefined && !this.#stream.lost) {
                await this.#taken.rung();
            }
            this.#held += part.length;
            await this.#send("i", part);
        }
    }

    async #send(kind: string, data?: Uint8Array): Promise<void> {
        if (this.status !== undefined) {
            throw new ConnectionLost(`${this.argv[0]} has ended`);
        }
        await this.#stream.write(runFrame(kind, data));
    }

    async closeStdin(): Promise<void> {
        await this.#send("i");
    }

    /** For its process group. */
    async signal(signal: NodeJS.Signals | number = "SIGTERM"): Promise<void> {
        await this.#send("s", Buffer.of(typeof signal === "number" ? signal : constants.signals[signal]));
    }

    /** Of a program on a terminal. */
    async resize(rows: number, cols: number): Promise<void> {
        await this.#send("z", Buffer.of(rows >> 8, rows & 255, cols >> 8, cols & 255));
    }

    /** Ends it, with all that it has started, where it still runs. */
    kill = (): void => {
        this.#options.signal?.removeEventListener("abort", this.kill);
        this.#stream.reset();
    };

    async [Symbol.asyncDispose](): Promise<void> {
        this.kill();
    }
}

/** What a program has said on a stream, within the limits. */
class Said {
    #parts: Buffer[] = [];
    #last: number | undefined;
    length = 0;

    constructor(last: number | undefined) {
        this.#last = last;
    }

    add(data: Buffer): void {
        this.#parts.push(data);
        this.length += data.length;
        if (this.#last !== undefined && this.length > 2 * this.#last + (1 << 16)) {
            this.#parts = [this.all()];
            this.length = this.#last;
        }
    }

    all(): Buffer {
        const all = Buffer.concat(this.#parts);
        return this.#last === undefined ? all : all.subarray(Math.max(all.length - this.#last, 0));
    }
}

/** Stdin from the beginning to its end. */
async function feed(process: Process, input: string | Uint8Array): Promise<void> {
    try {
        await process.write(input);
        await process.closeStdin();
    } catch (error) {
        if (!(error instanceof ConnectionLost)) {
            throw error;
        } // otherwise it has closed its stdin, or ended
    }
}

/** Runs it to its end. */
export async function run(connection: Connection, argv: readonly string[], options: RunOptions): Promise<Completed> {
    const { input, check, outputLimit, keepLast } = options;
    const said = { stdout: new Said(keepLast), stderr: new Said(keepLast) };
    const process = new Process(connection, argv, options, input !== undefined);
    const fed = input === undefined ? undefined : feed(process, input);
    for await (const { stream, data } of process) {
        said[stream].add(data);
        if (outputLimit !== undefined && said[stream].length > outputLimit) {
            const [stdout, stderr] = [said.stdout.all().subarray(0, outputLimit), said.stderr.all().subarray(0, outputLimit)];
            throw new OutputLimit(argv, outputLimit, stdout, stderr);
        }
    }
    await fed;
    const [stdout, stderr, status] = [said.stdout.all(), said.stderr.all(), process.status ?? 0];
    if (process.timedOut) {
        throw new RunTimeout(argv, options.timeoutMs ?? 0, stdout, stderr);
    }
    if (check && status !== 0) {
        throw new RunFailed(argv, status, stdout, stderr);
    }
    return new Completed(argv, status, stdout, stderr, process.ms);
}
