/** A target, and what can be done in it. */

import { Connection } from "./connection.ts";
import { Files } from "./files.ts";
import { Forward } from "./forward.ts";
import { Place, saidBy } from "./host.ts";
import { Job, type JobOptions } from "./job.ts";
import { Methods } from "./methods.ts";
import { type Completed, Process, type ProgramOptions, run, type RunOptions } from "./program.ts";
import { Shell, type ShellOptions } from "./shell.ts";
import { Browser, Editor, Mcp } from "./tools.ts";
import type { Abortable } from "./waiting.ts";
import type { Json, Message } from "./wire.ts";

export interface EjectOptions extends Abortable {
    /** More of `toolbox eject`. */
    options?: readonly string[] | undefined;
}

/** Stops everything that was started there, and removes the program (`toolbox eject --help`). */
export async function eject(target: string, { options = [], signal }: EjectOptions = {}): Promise<void> {
    await saidBy(["eject", "-q", ...options, "--", target], signal);
}

export interface ConnectOptions extends Abortable {
    user?: string | undefined;
    /** More of `toolbox connect`. */
    options?: readonly string[] | undefined;
    /** How long the connection is kept when nobody uses it. */
    persist?: string | undefined;
}

/** A container, a host or whatever else a target names. `connect` makes it, `await using` lets go of it: what runs there goes on. */
export class Sandbox implements AsyncDisposable {
    readonly target: string;
    readonly methods: Methods;
    readonly files: Files;
    readonly edit: Editor;
    readonly mcp: Mcp;
    readonly browser: Browser;
    #connection: Connection;

    private constructor(connection: Connection, target: string, place?: Place) {
        this.#connection = connection;
        this.target = target;
        this.methods = new Methods(connection);
        this.files = new Files(connection, place);
        this.edit = new Editor(connection);
        this.mcp = new Mcp(connection);
        this.browser = new Browser(connection);
    }

    /**
     * Over the connection that is kept to `docker:NAME`, `k8s:POD`, `ssh:HOST`, `local:` (`toolbox connect --help`); places the program
     * there where it isn't.
     */
    static async connect(target: string, { user, options = [], persist = "60s", signal }: ConnectOptions = {}): Promise<Sandbox> {
        const more = [...(user === undefined ? [] : ["--user", user]), ...options];
        const made = JSON.parse(await saidBy(["connect", "--json", `--persist=${persist}`, ...more, "--", target], signal));
        return new Sandbox(await Connection.open(made[0].socket, signal), target, new Place(target, more));
    }

    /** Over a command of one's own that ends in `toolbox exec --stream`. */
    static async over(command: readonly string[], { signal }: Abortable = {}): Promise<Sandbox> {
        return new Sandbox(await Connection.over(command, signal), command[0] ?? "");
    }

    /** Lets go of it. What runs there goes on. */
    async close(): Promise<void> {
        await this.#connection.close();
    }

    async [Symbol.asyncDispose](): Promise<void> {
        await this.close();
    }

    /** Whether the connection has ended, from whichever side. */
    get closed(): boolean {
        return this.#connection.closed;
    }

    /** What the program there said of itself: `version`, `build`, `instance`, `pid`, `features`, `limits`. */
    get hello(): Message {
        return this.#connection.hello;
    }

    /** Any method of docs/protocol.md. */
    async call(method: string, params?: Message, { signal }: Abortable = {}): Promise<Json> {
        return this.#connection.call(method, params, signal);
    }

    /**
     * Runs a program to its end, stdout and stderr apart and to the byte. The signal and `timeoutMs` (RunTimeout) end it with all that
     * it has started; `check` makes a status that isn't 0 RunFailed, `outputLimit` more output OutputLimit. What can't be started is CannotRun.
     */
    async run(argv: readonly string[], options: RunOptions = {}): Promise<Completed> {
        return run(this.#connection, argv, options);
    }

    /** A program whose output is read, and whose stdin is written, while it runs. For `await using`. */
    process(argv: readonly string[], options: ProgramOptions & { stdin?: boolean } = {}): Process {
        return new Process(this.#connection, argv, options, options.stdin ?? true);
    }

    /** A job: it goes on when this client goes. A string is a command for /bin/sh. */
    async start(argv: string | readonly string[], options: JobOptions = {}): Promise<Job> {
        return Job.start(this.#connection, argv, options);
    }

    /** One that was started before. */
    job(pid: number): Job {
        return new Job(this.#connection, pid);
    }

    /** A new session: of bash or what there is of its kind, or of any interpreter (`program`). A name: the session that has it. */
    async shell(which: string | ShellOptions = {}): Promise<Shell> {
        return typeof which === "string" ? new Shell(this.#connection, which) : Shell.start(this.#connection, which);
    }

    /** `edit.patch`: a diff, or a text from `*** Begin Patch` on, applied whole or not at all. */
    async patch(patch: string, options: Abortable & { path?: string } = {}): Promise<string> {
        return this.edit.patch(patch, options);
    }

    /** A port of this machine (0: the system chooses) that leads to a port, `HOST:PORT` or Unix socket there. For `await using`. */
    async forward(leadsTo: number | string, { host = "127.0.0.1", port = 0 }: { host?: string; port?: number } = {}): Promise<Forward> {
        return Forward.listen(this.#connection, String(leadsTo), host, port);
    }

    /** What the tools rest on there, tried. */
    async doctor(options: Abortable = {}): Promise<{ ok: boolean; checks: Message[] }> {
        return this.#connection.call("doctor", {}, options.signal);
    }
}
