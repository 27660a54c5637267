/** What changes in a tree, as it changes. */

import type { Connection } from "./connection.ts";
import { ToolboxError } from "./errors.ts";
import { Bell } from "./waiting.ts";
import type { Message } from "./wire.ts";

const KEPT_MAX = 10_000; // changes that nobody has taken: then no more are asked for

/** What has become of a path. `overflow`: more than could be told one by one, so all was compared; `dropped`: more than was kept until somebody asked. */
export interface Change {
    path: string;
    change: "created" | "changed" | "deleted" | "overflow" | "dropped";
    directory: boolean;
}

/**
 * A watch. Iterating over it gives what has become of each path, as it differs when a burst of changes is over (30 ms), until the directory is gone
 * or the watch is closed.
 */
export class Watch implements AsyncDisposable {
    #connection: Connection;
    #stop: AbortController;
    #last: Message;
    #changes: Change[] = [];
    #came = new Bell();
    #taken = new Bell();
    #over = false;
    #failed: unknown;
    #taking: Promise<void>;

    private constructor(connection: Connection, events: AsyncGenerator<Message, void>, first: Message, stop: AbortController) {
        this.#connection = connection;
        this.#stop = stop;
        this.#last = first;
        this.#taking = this.#take(events);
    }

    /** Begins one. The signal ends it. */
    static async begin(connection: Connection, params: Message, signal: AbortSignal | undefined): Promise<Watch> {
        const stop = new AbortController();
        const events = connection.subscribe("file_watch", params, signal ? AbortSignal.any([signal, stop.signal]) : stop.signal);
        const first = await events.next();
        return new Watch(connection, events, first.value as Message, stop);
    }

    /** It goes on while nobody iterates. */
    async #take(events: AsyncGenerator<Message, void>): Promise<void> {
        try {
            for await (const event of events) {
                this.#last = event;
                this.#changes.push(...event["changes"]);
                this.#came.ring();
                while (this.#changes.length > KEPT_MAX && !this.#stop.signal.aborted) {
                    await this.#taken.rung();
                }
            }
        } catch (error) {
            this.#failed = this.#stop.signal.aborted ? undefined : error;
        } finally {
            this.#over = true;
            this.#came.ring();
        }
    }

    async *[Symbol.asyncIterator](): AsyncGenerator<Change, void> {
        for (;;) {
            for (let next = this.#changes.shift(); next; next = this.#changes.shift()) {
                this.#taken.ring();
                yield next;
            }
            if (this.#failed !== undefined) {
                throw this.#failed;
            }
            if (this.#over) {
                return;
            }
            await this.#came.rung();
        }
    }

    /** Whether something below it can't be read or watched. */
    get incomplete(): boolean {
        return Boolean(this.#last["incomplete"]);
    }

    async close(): Promise<void> {
        this.#stop.abort();
        this.#taken.ring();
        await this.#taking;
        try {
            await this.#connection.call("file_watch", { cursor: this.#last["cursor"], stop: true });
        } catch (error) {
            if (!(error instanceof ToolboxError)) {
                throw error;
            } // otherwise it has ended, with what was watched or the connection
        }
    }

    async [Symbol.asyncDispose](): Promise<void> {
        await this.close();
    }
}
