/** Waiting that can be given up. */

/** Whatever is done can be given up with `signal`: nothing that it began goes on then, and `signal.reason` is thrown. */
export interface Abortable {
    signal?: AbortSignal | undefined;
}

/** A promise that rejects when the signal is given. `whenAborted` is called then, and only while the promise is open. */
export async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined, whenAborted: () => void = () => {}): Promise<T> {
    if (!signal) {
        return promise;
    }
    let stop = (): void => {};
    const aborted = new Promise<never>((_, reject) => {
        stop = () => {
            whenAborted();
            reject(signal.reason as Error);
        };
    });
    promise.catch(() => {}); // nobody need wait for it any more
    try {
        if (signal.aborted) {
            stop();
        }
        signal.addEventListener("abort", stop, { once: true });
        return await Promise.race([aborted, promise]);
    } finally {
        signal.removeEventListener("abort", stop);
    }
}

/** Something has happened: wakes all who wait for it. */
export class Bell {
    #waiting: (() => void)[] = [];

    ring(): void {
        this.#waiting.splice(0).forEach((wake) => wake());
    }

    rung(): Promise<void> {
        return new Promise((wake) => this.#waiting.push(wake));
    }
}

/** So many may do something at a time; who comes later waits, in turn. */
export class Turns {
    #free: number;
    #waiting: (() => void)[] = [];

    constructor(free: number) {
        this.#free = free;
    }

    /** Whether there is one at once. */
    taken(): boolean {
        return this.#free > 0 && this.#free-- > 0;
    }

    async take(signal: AbortSignal | undefined): Promise<void> {
        let given = false;
        let begin = (): void => {};
        const turn = new Promise<void>((done) => {
            begin = () => ((given = true), done());
        });
        this.#waiting.push(begin);
        try {
            await unlessAborted(turn, signal);
        } catch (error) {
            if (given) {
                this.give();
            } else {
                this.#waiting.splice(this.#waiting.indexOf(begin), 1);
            }
            throw error;
        }
    }

    give(): void {
        const next = this.#waiting.shift();
        if (next) {
            next();
        } else {
            this.#free++;
        }
    }
}

/** The members that were given. */
export function given(members: Record<string, unknown>): Record<string, unknown> {
    return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined && value !== null));
}

/** Milliseconds as the methods take them. */
export function seconds(ms: number | undefined): number | undefined {
    return ms === undefined ? undefined : ms / 1000;
}
