/** One connection, any number of calls, subscriptions and byte streams at once (docs/connection.md). */

import { type ChildProcess, type ChildProcessByStdio, spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { createConnection, type Socket } from "node:net";
import { basename, dirname } from "node:path";
import type { Readable, Writable } from "node:stream";
import { ByteStream } from "./bytestream.ts";
import { CannotConnect, CannotRun, ConnectionLost, InvalidParams, ofAnswer } from "./errors.ts";
import { Bell, Turns, unlessAborted } from "./waiting.ts";
import { FRAME_OPEN_MAX, Frame, type Json, line, type Message, STREAMS_MAX, Wire, frame } from "./wire.ts";

const ACK_AFTER_MS = 50; // how long an answer may wait for a request that takes its acknowledgement along
const LEAVES_AFTER_MS = 5000; // the command of a stream that has ended: then it is told to end, and after as long again it is killed
const CLOSED = "the connection was closed";

/** Who waits for an answer, and for the events before it. */
interface Waiting {
    settle(error: Error | undefined, result: Json): void;
    event?(event: Message): void;
    /** Bytes of the request. */
    size?: number;
}

function started(program: string, args: readonly string[]): ChildProcessByStdio<Writable, Readable, null> {
    try {
        return spawn(program, args, { stdio: ["pipe", "pipe", "inherit"] });
    } catch (error) {
        throw new CannotConnect((error as Error).message); // some of what can go wrong is thrown, the rest is an event
    }
}

/** Ends a command that has nothing to do any more, where it doesn't end by itself. */
function dismiss(child: ChildProcess, gone: Promise<void>): void {
    const timers = [setTimeout(() => child.kill(), LEAVES_AFTER_MS), setTimeout(() => child.kill("SIGKILL"), 2 * LEAVES_AFTER_MS)];
    void gone.then(() => timers.forEach(clearTimeout));
}

const SOCKET_PATH_MAX = 107; // bytes that the kernel takes

/** A connection to a socket whatever the length of its path. */
function reach(path: string): Socket {
    if (Buffer.byteLength(path) <= SOCKET_PATH_MAX) {
        return createConnection(path);
    }
    const folder = openSync(dirname(path), "r");
    const socket = createConnection(`/proc/self/fd/${folder}/${basename(path)}`);
    let open = true;
    const close = (): void => {
        if (open) {
            open = false;
            closeSync(folder);
        }
    };
    return socket.once("connect", close).once("close", close);
}

/** A client of a kept connection's socket, or of any `toolbox exec --stream`. Made by `open` or `over`. */
export class Connection {
    #reader: Readable;
    #writer: Writable;
    #gone: Promise<void>;
    #wire = new Wire();
    #last = 0;
    #waiting = new Map<number, Waiting>();
    #streams = new Map<number, ByteStream>();
    #turns = new Map<number, () => void>(); // of streams that are to be opened when there are fewer
    #calls = new Turns(1);
    #arrived: number[] = []; // ids of answers that are to be acknowledged
    #ack: NodeJS.Timeout | undefined;
    #why = CLOSED;
    #greeted: Waiting | undefined;
    closed = false;
    hello: Message = {};

    private constructor(reader: Readable, writer: Writable, gone: Promise<void>) {
        this.#reader = reader;
        this.#writer = writer;
        this.#gone = gone;
        reader.on("data", (data: Buffer) => this.#take(data));
        reader.on("end", () => this.#end("the connection has ended"));
        for (const end of new Set([reader, writer])) {
            end.on("error", (error) => this.#end(`the connection has ended: ${error.message}`));
        }
    }

    /** A connection to a socket that `toolbox connect` keeps. */
    static async open(path: string, signal?: AbortSignal): Promise<Connection> {
        const socket = reach(path);
        const gone = new Promise<void>((done) => socket.once("close", () => done()));
        try {
            return await new Connection(socket, socket, gone).#meet(signal);
        } catch (error) {
            throw error instanceof ConnectionLost ? new CannotConnect(`${error.message}, while it was being used for the first time: try again`) : error;
        }
    }

    /** A connection over a command that ends in `toolbox exec --stream`, wherever that runs. */
    static async over(command: readonly string[], signal?: AbortSignal): Promise<Connection> {
        const [program, ...args] = command;
        if (program === undefined) {
            throw new CannotConnect("the command is empty");
        }
        const child = started(program, args);
        let failed: Error | undefined;
        const gone = new Promise<void>((done) => {
            child.once("exit", () => done());
            child.once("error", (error) => done(void (failed = error)));
        });
        const connection = new Connection(child.stdout, child.stdin, gone);
        child.stdout.once("close", () => dismiss(child, gone));
        try {
            return await connection.#meet(signal);
        } catch (error) {
            child.kill();
            await gone;
            throw failed ? new CannotConnect(failed.message) : error;
        }
    }

    async #meet(signal: AbortSignal | undefined): Promise<this> {
        const hello = new Promise<Message>((done, fail) => {
            this.#greeted = { settle: (error, said) => (error ? fail(error) : done(said)) };
        });
        try {
            this.hello = await unlessAborted(hello, signal);
            this.#calls = new Turns(this.hello["limits"].open);
        } catch (error) {
            this.#end(CLOSED);
            throw error;
        }
        return this;
    }

    // ---- calls ----

    /** The result of a call. One that is aborted is cancelled there too: what it waited for goes on, and its answer can be had again. */
    async call(method: string, params?: Message, signal?: AbortSignal): Promise<Json> {
        signal?.throwIfAborted();
        if (!this.#calls.taken()) {
            await this.#calls.take(signal);
        }
        try {
            const id = ++this.#last;
            const answered = new Promise<Json>((done, fail) => {
                this.#request(id, method, params, { settle: (error, result) => (error ? fail(error) : done(result)) });
            });
            return await unlessAborted(answered, signal, () => this.#cancel(id));
        } finally {
            this.#calls.give();
        }
    }

    /** What a `_follow` or `_watch` method tells. An event is acknowledged when the next one is asked for. */
    async *subscribe(method: string, params: Message, signal?: AbortSignal): AsyncGenerator<Message, void> {
        signal?.throwIfAborted();
        const id = ++this.#last;
        const came: Message[] = [];
        const bell = new Bell();
        let ended: { error: Error | undefined; result: Message } | undefined;
        const event = (event: Message): void => (came.push(event), bell.ring());
        const settle = (error: Error | undefined, result: Message): void => ((ended = { error, result }), bell.ring());
        this.#request(id, method, params, { event, settle });
        try {
            for (;;) {
                for (let next = came.shift(); next; next = came.shift()) {
                    yield next.event;
                    this.#notify("rpc.ack", { subscription: id, seq: next.seq });
                }
                if (ended) {
                    if (ended.error) {
                        throw ended.error;
                    }
                    yield ended.result;
                    return;
                }
                await unlessAborted(bell.rung(), signal);
            }
        } finally {
            this.#cancel(id);
        }
    }

    #request(id: number, method: string, params: Message | undefined, waiting: Waiting): void {
        if (this.closed) {
            throw new ConnectionLost(this.#why);
        }
        const data = line({ jsonrpc: "2.0", id, method, ...(params && { params }) });
        const most: number = this.hello["limits"].line;
        if (data.length > most) {
            throw new InvalidParams(-32602, `the params are too long: ${data.length} bytes with the rest of the call, of at most ${most}`);
        }
        this.#waiting.set(id, { ...waiting, size: data.length });
        this.#writer.write(Buffer.concat([this.#acks(), data]));
    }

    /** Nobody waits for it any more. */
    #cancel(id: number): void {
        if (this.#waiting.delete(id)) {
            this.#notify("rpc.cancel", { id });
        }
    }

    #notify(method: string, params: Message): void {
        this.#put(line({ jsonrpc: "2.0", method, params }));
    }

    #put(bytes: Buffer): void {
        if (!this.closed && this.#writer.writable && bytes.length > 0) {
            this.#writer.write(bytes);
        }
    }

    /** The acknowledgement of what has arrived, as a line in front of another one. */
    #acks(): Buffer {
        clearTimeout(this.#ack);
        this.#ack = undefined;
        const ids = this.#arrived.splice(0);
        return ids.length > 0 ? line({ jsonrpc: "2.0", method: "rpc.ack", params: { ids } }) : Buffer.alloc(0);
    }

    // ---- byte streams ----

    /** A byte stream to a program, a port or a listener there. */
    stream(leadsTo: Message): ByteStream {
        if (this.closed) {
            throw new ConnectionLost(this.#why);
        }
        const where = line(leadsTo).subarray(0, -1);
        if (where.length > FRAME_OPEN_MAX) {
            throw new CannotRun(125, `argv and env are too long: ${where.length} bytes, of at most ${FRAME_OPEN_MAX}`);
        }
        const number = ++this.#last;
        const stream = new ByteStream((kind, data) => this.#put(frame(kind, number, data)), () => this.#forget(number));
        this.#streams.set(number, stream);
        if (this.#streams.size - this.#turns.size > STREAMS_MAX) {
            this.#turns.set(number, () => stream.open(where));
        } else {
            stream.open(where);
        }
        return stream;
    }

    #forget(number: number): void {
        const waited = this.#turns.delete(number);
        if (!this.#streams.delete(number) || waited || this.closed) {
            return;
        }
        for (const [next, open] of this.#turns) {
            this.#turns.delete(next);
            return open();
        }
    }

    // ---- what comes ----

    #take(data: Buffer): void {
        try {
            for (const arrived of this.#wire.feed(data)) {
                if (arrived instanceof Frame) {
                    this.#streams.get(arrived.number)?.take(arrived.kind, arrived.data);
                } else {
                    this.#takeMessage(arrived);
                }
            }
        } catch (error) {
            this.#end(`the connection has ended: ${(error as Error).message}`);
        }
    }

    #takeMessage(message: Message): void {
        if (message.method === "rpc.hello") {
            this.#greeted?.settle(undefined, message.params);
        } else if (message.method === "rpc.event") {
            this.#waiting.get(message.params.subscription)?.event?.(message.params);
        } else if (message.method === "rpc.ended") {
            this.#why = `the connection has ended: ${message.params.reason ?? ""}`;
        } else if (message.method === undefined && typeof message.id === "number") {
            this.#takeAnswer(message.id, message);
        } else if (message.method === undefined && this.#waiting.size > 0) {
            // a line that could not be read, so nobody knows whose: too long, as the longest would be
            const sizes = [...this.#waiting].map(([id, { size }]): [number, number] => [size ?? 0, id]);
            this.#takeAnswer(sizes.reduce((one, other) => (other[0] > one[0] ? other : one))[1], message);
        }
    }

    #takeAnswer(id: number, message: Message): void {
        const waiting = this.#waiting.get(id);
        if (!waiting) {
            return; // it was cancelled, and crossed that on its way: it has not arrived
        }
        this.#waiting.delete(id);
        this.#arrived.push(id);
        this.#ack ??= setTimeout(() => this.#put(this.#acks()), ACK_AFTER_MS);
        waiting.settle(message.error && ofAnswer(message.error), message.result);
    }

    #end(why: string): void {
        if (this.closed) {
            return;
        }
        clearTimeout(this.#ack);
        if (this.#why === CLOSED) {
            this.#why = why;
        }
        this.closed = true;
        const lost = new ConnectionLost(this.#why);
        for (const waiting of [this.#greeted, ...this.#waiting.values()]) {
            waiting?.settle(lost, undefined);
        }
        this.#waiting.clear();
        this.#turns.clear();
        [...this.#streams.values()].forEach((stream) => stream.lose(lost));
        this.#writer.destroy();
        this.#reader.destroy();
    }

    /** Ends it. What runs there goes on; what wasn't acknowledged is there for the next one. */
    async close(): Promise<void> {
        if (!this.closed && this.#writer.writable) {
            const acks = this.#acks();
            await new Promise<void>((done) => {
                this.#writer.once("close", () => done());
                this.#writer.end(acks, () => done());
            });
        }
        this.#end(CLOSED);
        await this.#gone;
    }
}
