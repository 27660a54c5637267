/** The other tools of a target: editor, MCP servers, browser. */

import type { Connection } from "./connection.ts";
import { type Abortable, given } from "./waiting.ts";
import type { Json, Message } from "./wire.ts";

/** Files viewed and edited exactly: bytes outside of an edit stay. The answers are text for a model. */
export class Editor {
    #connection: Connection;

    constructor(connection: Connection) {
        this.#connection = connection;
    }

    async #edit(command: string, params: Message, options: Abortable): Promise<string> {
        return this.#connection.call("text_editor", { command, ...given(params) }, options.signal);
    }

    /** A file with numbers, or some of its lines (from 1; -1: the last); of a directory what is in it. */
    async view(path: string, options: Abortable & { lines?: readonly [first: number, last: number] } = {}): Promise<string> {
        return this.#edit("view", { path, view_range: options.lines }, options);
    }

    async create(path: string, text: string, options: Abortable & { overwrite?: boolean; parents?: boolean } = {}): Promise<string> {
        return this.#edit("create", { path, file_text: text, overwrite: options.overwrite, parents: options.parents }, options);
    }

    /** Text that is there exactly once by another one; with `all`, wherever it is. */
    async replace(path: string, old: string, by: string, options: Abortable & { all?: boolean } = {}): Promise<string> {
        return this.#edit("str_replace", { path, old_str: old, new_str: by, replace_all: options.all }, options);
    }

    /** Text behind a line; 0: in front of all. */
    async insert(path: string, line: number, text: string, options: Abortable = {}): Promise<string> {
        return this.#edit("insert", { path, insert_line: line, insert_text: text }, options);
    }

    /** Several edits, all or none: objects with the params of `str_replace`, `insert` or `create` (docs/protocol.md). */
    async many(edits: readonly Message[], options: Abortable = {}): Promise<string> {
        return this.#edit("edit_many", { edits }, options);
    }

    /** A unified diff, git's too, or a text from `*** Begin Patch` to `*** End Patch`: all of it or nothing. `path`: where its names begin. */
    async patch(patch: string, options: Abortable & { path?: string } = {}): Promise<string> {
        return this.#edit("apply_patch", { patch, path: options.path }, options);
    }

    async undo(path: string, options: Abortable = {}): Promise<string> {
        return this.#edit("undo_edit", { path }, options);
    }
}

/** An MCP server that runs in the target. `await using` ends it. */
export class McpServer implements AsyncDisposable {
    readonly sessionId: number;
    #connection: Connection;
    #last = 0;

    constructor(connection: Connection, sessionId: number) {
        this.#connection = connection;
        this.sessionId = sessionId;
    }

    /** The server's response, whole: with `result` or `error`. */
    async request(method: string, params: Message = {}, options: Abortable = {}): Promise<Message> {
        const request = { jsonrpc: "2.0", id: ++this.#last, method, params };
        return this.#connection.call("mcp_send_request", { session_id: this.sessionId, request }, options.signal);
    }

    async notify(method: string, params: Message = {}, options: Abortable = {}): Promise<void> {
        const notification = { jsonrpc: "2.0", method, params };
        await this.#connection.call("mcp_send_notification", { session_id: this.sessionId, notification }, options.signal);
    }

    async kill(options: Abortable = {}): Promise<void> {
        await this.#connection.call("mcp_kill_server", { session_id: this.sessionId }, options.signal);
    }

    async [Symbol.asyncDispose](): Promise<void> {
        if (!this.#connection.closed) {
            await this.kill();
        }
    }
}

export interface McpOptions extends Abortable {
    env?: Readonly<Record<string, string>> | undefined;
    cwd?: string | undefined;
    user?: string | undefined;
}

/** MCP servers in the target. */
export class Mcp {
    #connection: Connection;

    constructor(connection: Connection) {
        this.#connection = connection;
    }

    async launch(command: string, args: readonly string[] = [], options: McpOptions = {}): Promise<McpServer> {
        const { env, cwd, user, signal } = options;
        const params = { server_params: { command, args, ...given({ env, cwd }) }, ...given({ user }) };
        return new McpServer(this.#connection, await this.#connection.call("mcp_launch_server", params, signal));
    }
}

/** A page as text: what is visible of it, and what went wrong. */
export interface Page {
    web_url: string;
    main_content: string | null;
    web_at: string;
    error: string | null;
    notes?: string[];
}

/** A browser session (Chromium, where the target has it). What it gives are pages as text. The first call begins it. */
export class Browser implements AsyncDisposable {
    #connection: Connection;
    #session: Promise<string> | undefined;

    constructor(connection: Connection) {
        this.#connection = connection;
    }

    async #begin(): Promise<string> {
        return (await this.#connection.call("web_new_session", {})).session_name;
    }

    /** Any of the web_ methods, by its name without that: `call("press", { key: "Enter" })`. */
    async call(method: string, params: Message = {}, options: Abortable = {}): Promise<Json> {
        this.#session ??= this.#begin();
        this.#session.catch(() => (this.#session = undefined));
        return this.#connection.call(`web_${method}`, { session_name: await this.#session, ...params }, options.signal);
    }

    async go(url: string, options: Abortable = {}): Promise<Page> {
        return this.call("go", { url }, options);
    }

    async click(elementId: number, options: Abortable = {}): Promise<Page> {
        return this.call("click", { element_id: elementId }, options);
    }

    async type(elementId: number, text: string, options: Abortable = {}): Promise<Page> {
        return this.call("type", { element_id: elementId, text }, options);
    }

    /** A PNG. */
    async screenshot(options: Abortable & { fullPage?: boolean } = {}): Promise<Buffer> {
        return Buffer.from((await this.call("screenshot", given({ full_page: options.fullPage }), options)).data, "base64");
    }

    async close(options: Abortable = {}): Promise<void> {
        if (this.#session) {
            await this.call("close_session", {}, options);
            this.#session = undefined;
        }
    }

    async [Symbol.asyncDispose](): Promise<void> {
        if (!this.#connection.closed) {
            await this.close();
        }
    }
}
