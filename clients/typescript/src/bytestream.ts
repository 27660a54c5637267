/** Bytes both ways with an end each, and a window so that who doesn't read holds up no other. */

import { ConnectionLost } from "./errors.ts";
import { Bell, unlessAborted } from "./waiting.ts";
import { FRAME_DATA_MAX, WINDOW_FIRST, WINDOW_MAX } from "./wire.ts";

type Send = (kind: string, data?: Uint8Array) => void;

export class ByteStream {
    #send: Send;
    #forget: () => void;
    #opened = false;
    #room = 0; // bytes that may be sent
    #came: Buffer[] = [];
    #read = 0; // bytes that were read since the last grant
    #bell = new Bell();
    #ended = false;
    #sentEnd = false;
    #lost: ConnectionLost | undefined;
    /** Called when it was reset, by either side, or the connection has ended. */
    whenLost: () => void = () => {};
    /** Whether it is the connection that has ended, not this stream alone. */
    connectionLost = false;

    constructor(send: Send, forget: () => void) {
        this.#send = send;
        this.#forget = forget;
    }

    /** For Connection: it is its turn. */
    open(leadsTo: Buffer): void {
        this.#opened = true;
        this.#room = WINDOW_FIRST;
        this.#send("o", leadsTo);
        this.#grant(WINDOW_MAX - WINDOW_FIRST);
        if (this.#sentEnd) {
            this.#send("e");
        }
        this.#bell.ring();
    }

    #grant(n: number): void {
        const data = Buffer.alloc(4);
        data.writeUInt32BE(n);
        this.#send("w", data);
    }

    /** For Connection: a frame that has come. */
    take(kind: string, data: Buffer): void {
        if (kind === "d") {
            this.#came.push(data);
        } else if (kind === "w") {
            this.#room += data.readUInt32BE();
        } else if (kind === "e") {
            this.#ended = true;
        } else if (kind === "r") {
            this.#lost ??= new ConnectionLost(data.toString());
            this.whenLost();
        }
        this.#stir();
    }

    /** For Connection: it has ended. */
    lose(why: ConnectionLost): void {
        this.connectionLost = true;
        this.#lost ??= why;
        this.whenLost();
        this.#stir();
    }

    /** Whether it was reset, by either side. */
    get lost(): boolean {
        return this.#lost !== undefined;
    }

    get #over(): boolean {
        return this.lost || (this.#ended && this.#sentEnd);
    }

    #stir(): void {
        if (this.#over) {
            this.#forget();
        }
        this.#bell.ring();
    }

    /** Some bytes; undefined at the end. Throws ConnectionLost where the other side has reset it. */
    async read(signal?: AbortSignal): Promise<Buffer | undefined> {
        while (this.#came.length === 0) {
            if (this.#lost) {
                throw this.#lost;
            }
            if (this.#ended) {
                return undefined;
            }
            await unlessAborted(this.#bell.rung(), signal);
        }
        const data = this.#came.shift() as Buffer;
        this.#read += data.length;
        if (this.#read >= WINDOW_MAX / 4 && !this.#ended) {
            this.#grant(this.#read);
            this.#read = 0;
        }
        return data;
    }

    /** Done when all of it is on its way. */
    async write(data: Uint8Array): Promise<void> {
        for (let rest = data; rest.length > 0; ) {
            if (this.#lost) {
                throw this.#lost;
            }
            const n = Math.min(rest.length, this.#room, FRAME_DATA_MAX);
            if (n === 0) {
                await this.#bell.rung();
                continue;
            }
            this.#room -= n;
            this.#send("d", rest.subarray(0, n));
            rest = rest.subarray(n);
        }
    }

    /** No more will be written. */
    end(): void {
        if (!this.#sentEnd && !this.#lost) {
            this.#sentEnd = true;
            if (this.#opened) {
                this.#send("e");
            }
            this.#stir();
        }
    }

    /** Ends it in both directions, at once. */
    reset(): void {
        if (!this.#over) {
            if (this.#opened) {
                this.#send("r", Buffer.from("the client has gone"));
            }
            this.take("r", Buffer.from("it was reset here"));
        }
    }
}
