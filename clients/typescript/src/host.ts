/** The program `toolbox` of this host. */

import { execFile } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, join } from "node:path";
import { CannotConnect, CopyFailed } from "./errors.ts";

const COPY_FAILED = 1; // its exit status where something was not copied

function isProgram(path: string): boolean {
    try {
        accessSync(path, constants.X_OK);
        return true;
    } catch {
        return false;
    }
}

/** The one that a package for this platform brings. */
function packaged(): string | undefined {
    try {
        return createRequire(import.meta.url).resolve(`toolbox-sandbox-${process.platform}-${process.arch}/bin/toolbox`);
    } catch {
        return undefined;
    }
}

/** The program of this host: $TOOLBOX_BINARY, the one of a package for this platform, or the PATH's. */
export function findToolbox(): string {
    const onPath = (process.env["PATH"] ?? "").split(delimiter).map((folder) => join(folder || ".", "toolbox"));
    const found = process.env["TOOLBOX_BINARY"] || packaged() || onPath.find(isProgram);
    if (!found) {
        throw new CannotConnect("there is no program `toolbox`: put it on the PATH, or say where it is in TOOLBOX_BINARY");
    }
    return found;
}

interface Ended {
    /** Its exit status; undefined where it ended otherwise. */
    status: number | undefined;
    out: string;
    said: string;
}

async function run(args: readonly string[], signal: AbortSignal | undefined): Promise<Ended> {
    signal?.throwIfAborted();
    const program = findToolbox();
    return new Promise<Ended>((done, fail) => {
        const child = execFile(program, args, { signal, killSignal: "SIGTERM", maxBuffer: Infinity }, (error, out, stderr) => {
            if (error && signal?.aborted) {
                fail(signal.reason as Error);
            } else {
                const status = error ? (typeof error.code === "number" ? error.code : undefined) : 0;
                done({ status, out, said: stderr.trim() || (error?.message ?? "") });
            }
        });
        child.stdin?.end();
    }).catch((error: unknown) => {
        throw signal?.aborted ? error : new CannotConnect(`${program}: ${(error as Error).message}`); // it can't be started
    });
}

/** What it prints; CannotConnect with its words where it fails. */
export async function saidBy(args: readonly string[], signal: AbortSignal | undefined): Promise<string> {
    const { status, out, said } = await run(args, signal);
    if (status !== 0) {
        throw new CannotConnect(said, status);
    }
    return out;
}

/** What was copied. */
export interface Copied {
    ok: boolean;
    files: number;
    directories: number;
    links: number;
    others: number;
    bytes: number;
    deleted: number;
    skipped: number;
    failed: number;
    seconds: number;
}

/** A target, as this host's program is told of it. */
export class Place {
    #target: string;
    #options: readonly string[];

    constructor(target: string, options: readonly string[]) {
        this.#target = target;
        this.#options = options;
    }

    /** `toolbox cp`, in one of its directions. */
    async copy(source: string, to: string, inwards: boolean, more: readonly string[], signal: AbortSignal | undefined): Promise<Copied> {
        const there = this.#target.endsWith(":") ? this.#target : `${this.#target}:`; // as `local:` does
        const paths = inwards ? [source, there + to] : [there + source, to];
        const { status, out, said } = await run(["cp", "--json", ...this.#options, ...more, "--", ...paths], signal);
        if (status !== 0 && status !== COPY_FAILED) {
            throw new CannotConnect(said, status);
        }
        const copied = JSON.parse(out || "{}") as Copied;
        if (status !== 0) {
            throw new CopyFailed(said, copied);
        }
        return copied;
    }
}
