/**
 * The bytes of a connection: lines of JSON, and between them frames of byte streams (docs/connection.md, "Streams").
 *
 * Nothing here reads or writes, so that it can be tried byte by byte.
 */

export const FRAME_DATA_MAX = 65_536;
export const FRAME_OPEN_MAX = 1 << 21;
export const STREAMS_MAX = 1024;
export const RUN_DATA_MAX = 65_000;
export const WINDOW_FIRST = 65_536;
export const WINDOW_MAX = 1 << 20;
const FRAME = 2;
const FRAME_HEAD = 10;
const RUN_HEAD = 4;
const NEWLINE = 10;
const REST_MIN = 1 << 16; // bytes of room for what has come
const REST_KEPT = 1 << 20; // more is given back when it isn't needed any more

// eslint-disable-next-line @typescript-eslint/no-explicit-any
export type Json = any;
export type Message = Record<string, Json>;

/** A part of a byte stream: kind `d` (bytes), `w` (a window), `e` (an end) or `r` (a reset). */
export class Frame {
    readonly kind: string;
    readonly number: number;
    readonly data: Buffer;

    constructor(kind: string, number: number, data: Buffer) {
        this.kind = kind;
        this.number = number;
        this.data = data;
    }
}

/** The messages as they are sent, a line each. */
export function line(...messages: Message[]): Buffer {
    return Buffer.from(messages.map((message) => JSON.stringify(message) + "\n").join(""));
}

export function frame(kind: string, number: number, data: Uint8Array = new Uint8Array()): Buffer {
    const made = Buffer.alloc(FRAME_HEAD + data.length);
    made.writeUInt8(FRAME, 0);
    made.write(kind, 1, "latin1");
    made.writeUInt32BE(number, 2);
    made.writeUInt32BE(data.length, 6);
    made.set(data, FRAME_HEAD);
    return made;
}

/** A frame within the stream of a program. */
export function runFrame(kind: string, data: Uint8Array = new Uint8Array()): Buffer {
    const made = Buffer.alloc(RUN_HEAD + data.length);
    made.write(kind, 0, "latin1");
    made.writeUIntBE(data.length, 1, 3);
    made.set(data, RUN_HEAD);
    return made;
}

/** What has come and isn't used yet. */
class Rest {
    #buffer = Buffer.alloc(REST_MIN);
    #start = 0;
    #end = 0;

    /** To be looked at until the next `push` or `take`. */
    get bytes(): Buffer {
        return this.#buffer.subarray(this.#start, this.#end);
    }

    push(data: Uint8Array): void {
        const length = this.#end - this.#start;
        if (this.#end + data.length > this.#buffer.length) {
            const small = length + data.length <= this.#buffer.length / 2;
            const larger = small ? this.#buffer : Buffer.alloc(2 * (length + data.length));
            larger.set(this.bytes);
            this.#buffer = larger;
            [this.#start, this.#end] = [0, length];
        }
        this.#buffer.set(data, this.#end);
        this.#end += data.length;
    }

    /** The first bytes, as a copy. */
    take(length: number): Buffer {
        const taken = Buffer.from(this.bytes.subarray(0, length));
        this.#start += length;
        if (this.#start === this.#end) {
            [this.#start, this.#end] = [0, 0];
            this.#buffer = this.#buffer.length > REST_KEPT ? Buffer.alloc(REST_MIN) : this.#buffer;
        }
        return taken;
    }
}

/** Cuts what comes into messages and frames. Signs of life and empty lines are left out. */
export class Wire {
    #rest = new Rest();
    #looked = 0; // bytes of a line that is not whole in which there is no end

    *feed(data: Uint8Array): Generator<Message | Frame> {
        this.#rest.push(data);
        for (let more = true; more; ) {
            const arrived = this.#rest.bytes[0] === FRAME ? this.#frame() : this.#line();
            more = arrived !== undefined;
            if (arrived) {
                yield arrived;
            }
        }
    }

    /** What the bytes begin with; undefined where it isn't whole yet. */
    #frame(): Frame | undefined {
        const bytes = this.#rest.bytes;
        if (bytes.length < FRAME_HEAD || bytes.length < FRAME_HEAD + bytes.readUInt32BE(6)) {
            return undefined;
        }
        const kind = bytes.toString("latin1", 1, 2);
        const number = bytes.readUInt32BE(2);
        const whole = this.#rest.take(FRAME_HEAD + bytes.readUInt32BE(6));
        return new Frame(kind, number, whole.subarray(FRAME_HEAD));
    }

    /** The same of a line; null where it says nothing. */
    #line(): Message | null | undefined {
        const end = this.#rest.bytes.indexOf(NEWLINE, this.#looked);
        if (end < 0) {
            this.#looked = this.#rest.bytes.length;
            return undefined;
        }
        this.#looked = 0;
        const text = this.#rest.take(end + 1).toString().trim();
        const message = text ? (JSON.parse(text) as Message) : null;
        return message?.method === "rpc.alive" ? null : message;
    }
}

/** Cuts the bytes of a program's stream into its frames. */
export class RunWire {
    #rest = new Rest();

    *feed(data: Uint8Array): Generator<[kind: string, data: Buffer]> {
        this.#rest.push(data);
        for (;;) {
            const bytes = this.#rest.bytes;
            if (bytes.length < RUN_HEAD || bytes.length < RUN_HEAD + bytes.readUIntBE(1, 3)) {
                return;
            }
            const whole = this.#rest.take(RUN_HEAD + bytes.readUIntBE(1, 3));
            yield [whole.toString("latin1", 0, 1), whole.subarray(RUN_HEAD)];
        }
    }
}
