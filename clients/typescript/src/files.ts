/** Files of a target as bytes and text, without a shell or a tool of its own (docs/files.md). */

import { resolve } from "node:path";
import type { Connection } from "./connection.ts";
import { ToolboxError } from "./errors.ts";
import type { Copied, Place } from "./host.ts";
import { type Abortable, given } from "./waiting.ts";
import { Watch } from "./watch.ts";
import type { Json, Message } from "./wire.ts";

const AT_ONCE = 1 << 20; // bytes that one call brings or takes

export interface FileOptions extends Abortable {
    /** As whom it is done, by name. */
    user?: string | undefined;
}

export interface CopyOptions extends Abortable {
    /** Owners, and all attributes, too. */
    archive?: boolean;
    /** Only what differs, and proven. */
    checksum?: boolean;
    /** Patterns of what is left out. */
    exclude?: readonly string[];
}

/** What is known of a file. */
export interface Stat {
    type: string;
    size: number;
    mode: number;
    mtime: number;
    uid: number;
    gid: number;
    user: string | null;
    group: string | null;
    target?: string;
    [more: string]: Json;
}

export interface FindOptions extends FileOptions {
    pattern?: string;
    type?: string;
    hidden?: boolean;
    limit?: number;
}

export interface Found {
    paths: string[];
    truncated: boolean;
    [more: string]: Json;
}

export interface SearchOptions extends FileOptions {
    /** The pattern is the text itself. */
    literal?: boolean;
    ignoreCase?: boolean;
    glob?: string;
    /** Lines before and behind each match. */
    context?: number;
    limit?: number;
}

export interface SearchResult {
    matches: { path: string; line: number; text: string; before?: string[]; after?: string[] }[];
    truncated: boolean;
    [more: string]: Json;
}

/** What can't be done is a FileError, which has a kind. */
export class Files {
    #connection: Connection;
    #place: Place | undefined;

    constructor(connection: Connection, place: Place | undefined) {
        this.#connection = connection;
        this.#place = place;
    }

    async #call(method: string, path: string, options: FileOptions, params: Message = {}): Promise<Json> {
        return this.#connection.call(`file_${method}`, { path, ...given({ user: options.user, ...params }) }, options.signal);
    }

    /** All of it; at most `limit` bytes where that is given. */
    async read(path: string, options: FileOptions & { limit?: number | undefined } = {}): Promise<Buffer> {
        const parts: Buffer[] = [];
        let rest = options.limit ?? Infinity;
        for (let offset = 0; rest > 0; ) {
            const length = Math.min(AT_ONCE, rest);
            const part = Buffer.from((await this.#call("read", path, options, { offset, length, encoding: "base64" })).data, "base64");
            parts.push(part);
            if (part.length < length) {
                break;
            }
            offset += part.length;
            rest -= part.length;
        }
        return Buffer.concat(parts);
    }

    /** The same as text; TypeError where it isn't UTF-8. */
    async readText(path: string, options: FileOptions = {}): Promise<string> {
        return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(await this.read(path, options));
    }

    /** All of it. Up to a megabyte at once: others see the old file or the new one; what is larger is written in parts. */
    async write(path: string, data: string | Uint8Array, options: FileOptions & { mode?: number; parents?: boolean } = {}): Promise<void> {
        const bytes = typeof data === "string" ? Buffer.from(data) : Buffer.from(data.buffer, data.byteOffset, data.length);
        for (let start = 0; start === 0 || start < bytes.length; start += AT_ONCE) {
            const part = bytes.toString("base64", start, Math.min(start + AT_ONCE, bytes.length));
            const more = start > 0 ? { append: true } : { mode: options.mode, parents: options.parents };
            await this.#call("write", path, options, { data: part, encoding: "base64", ...more });
        }
    }

    async stat(path: string, options: FileOptions & { follow?: boolean } = {}): Promise<Stat> {
        return this.#call("stat", path, options, { follow: options.follow ?? true });
    }

    /** What is below it, in the order of bytes. */
    async *list(path: string, options: FileOptions & { depth?: number; glob?: string } = {}): AsyncGenerator<Stat & { path: string }, void> {
        const { depth, glob } = options;
        let after: string | undefined;
        do {
            const got = await this.#call("list", path, options, { depth, glob, after });
            yield* got.entries;
            after = got.next;
        } while (after !== undefined);
    }

    /** What changes in a directory or a file from now on. For `await using`. */
    async watch(path: string, options: FileOptions & { exclude?: readonly string[]; recursive?: boolean } = {}): Promise<Watch> {
        const { exclude, recursive, user, signal } = options;
        return Watch.begin(this.#connection, { path, ...given({ exclude, recursive, user }) }, signal);
    }

    /** Names below a directory that match a pattern (`*.py`, `src/**\/*.c`), but for what `.gitignore` leaves out. */
    async find(path: string, options: FindOptions = {}): Promise<Found> {
        const { pattern, type, hidden, limit } = options;
        return this.#call("find", path, options, { pattern, type, hidden, limit });
    }

    /** Lines that match a regular expression, in the files that `find` finds. */
    async search(path: string, pattern: string, options: SearchOptions = {}): Promise<SearchResult> {
        const { literal, ignoreCase, glob, context, limit } = options;
        return this.#call("search", path, options, { pattern, literal, ignore_case: ignoreCase, glob, context, limit });
    }

    async makeDir(path: string, options: FileOptions & { parents?: boolean } = {}): Promise<void> {
        await this.#call("make_dir", path, options, { parents: options.parents });
    }

    async remove(path: string, options: FileOptions & { recursive?: boolean } = {}): Promise<void> {
        await this.#call("remove", path, options, { recursive: options.recursive });
    }

    async move(path: string, to: string, options: FileOptions & { overwrite?: boolean } = {}): Promise<void> {
        await this.#call("move", path, options, { to, overwrite: options.overwrite });
    }

    async copy(path: string, to: string, options: FileOptions & { overwrite?: boolean; recursive?: boolean } = {}): Promise<void> {
        await this.#call("copy", path, options, { to, overwrite: options.overwrite, recursive: options.recursive });
    }

    /**
     * A file or a tree of this machine into the target, as `toolbox cp -r`: into `to` where that is a directory; of `DIR/.` what is in it.
     * CopyFailed where something is not there then.
     */
    async copyIn(source: string, to: string, options: CopyOptions = {}): Promise<Copied> {
        return this.#copy(here(source), to, true, options);
    }

    /** The same out of the target. */
    async copyOut(source: string, to: string, options: CopyOptions = {}): Promise<Copied> {
        return this.#copy(source, here(to), false, options);
    }

    async #copy(source: string, to: string, inwards: boolean, { archive, checksum, exclude = [], signal }: CopyOptions): Promise<Copied> {
        if (!this.#place) {
            throw new ToolboxError("trees are copied by the program `toolbox` of this host, to a target that it knows: here that is not so");
        }
        const more = [archive ? "--archive" : "--recursive", ...(checksum ? ["--checksum"] : []), ...exclude.map((pattern) => `--exclude=${pattern}`)];
        return this.#place.copy(source, to, inwards, more, signal);
    }
}

/** A path that is taken for none of a target: absolute, and what its end says kept. */
function here(path: string): string {
    const kept = ["/.", "/"].find((end) => path.endsWith(end)) ?? "";
    return resolve(path) + (resolve(path) === "/" ? "" : kept);
}
