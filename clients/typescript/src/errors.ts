/** What can go wrong, in the words of who met it. */

import type { Json } from "./wire.ts";

/** All errors of this package. */
export class ToolboxError extends Error {
    override get name(): string {
        return this.constructor.name;
    }
}

/** There is no way to the target: what `toolbox connect` said, and its exit status where there is one. */
export class CannotConnect extends ToolboxError {
    readonly status: number | undefined;

    constructor(said: string, status?: number) {
        super(said);
        this.status = status;
    }
}

/** The connection ended while something was open over it. What became of that is not known here. */
export class ConnectionLost extends ToolboxError {}

/** A call was answered with an error. */
export class CallError extends ToolboxError {
    readonly code: number;
    readonly data: Json;

    constructor(code: number, message: string, data?: Json) {
        super(message);
        this.code = code;
        this.data = data;
    }
}

/** The tool says no: a file isn't there, a session is busy (-32099). */
export class ToolError extends CallError {}

/** Something can't be done with a file. `kind` says why: not_found, is_directory, exists, permission, … (docs/files.md). */
export class FileError extends ToolError {
    get kind(): string {
        return String(this.data.kind);
    }
}

/** The call isn't one that the method takes (-32602). */
export class InvalidParams extends CallError {}

/** The program there has no such method (-32601). */
export class UnknownMethod extends CallError {}

/** A program was not started: 127 where it isn't there, 126 where it can't be run, 125 for all else. */
export class CannotRun extends ToolboxError {
    readonly status: number;

    constructor(status: number, why: string) {
        super(why);
        this.status = status;
    }
}

/** A program ended otherwise than it was to. What it had said until then is here. */
export class ProgramError extends ToolboxError {
    readonly argv: readonly string[];
    readonly stdout: Buffer;
    readonly stderr: Buffer;

    constructor(message: string, argv: readonly string[], stdout: Buffer, stderr: Buffer) {
        super(message);
        this.argv = argv;
        this.stdout = stdout;
        this.stderr = stderr;
    }
}

/** A program that was run with `check` ended with another status than 0. */
export class RunFailed extends ProgramError {
    readonly status: number;

    constructor(argv: readonly string[], status: number, stdout: Buffer, stderr: Buffer) {
        const last = stderr.toString().trim().slice(-500);
        super(`${argv[0]} ended with status ${status}${last ? `: ${last}` : ""}`, argv, stdout, stderr);
        this.status = status;
    }
}

/** A program was ended, with all that it had started, when its time was over. */
export class RunTimeout extends ProgramError {
    readonly timeoutMs: number;

    constructor(argv: readonly string[], timeoutMs: number, stdout: Buffer, stderr: Buffer) {
        super(`${argv[0]} was ended after ${timeoutMs} ms`, argv, stdout, stderr);
        this.timeoutMs = timeoutMs;
    }
}

/** A program said more than was allowed, and was ended. */
export class OutputLimit extends ProgramError {
    readonly limit: number;

    constructor(argv: readonly string[], limit: number, stdout: Buffer, stderr: Buffer) {
        super(`${argv[0]} said more than ${limit} bytes`, argv, stdout, stderr);
        this.limit = limit;
    }
}

/** Not all of it was copied: what `toolbox cp` said, and the sum of what was, with `failed` among it. */
export class CopyFailed extends ToolboxError {
    readonly copied: Json;

    constructor(said: string, copied: Json) {
        super(said);
        this.copied = copied;
    }
}

const KINDS = new Map<number, typeof CallError>([
    [-32099, ToolError],
    [-32602, InvalidParams],
    [-32601, UnknownMethod],
]);

/** The error for the error member of an answer. */
export function ofAnswer(error: { code: number; message: string; data?: Json }): CallError {
    const kind = typeof error.data?.kind === "string" ? FileError : (KINDS.get(error.code) ?? CallError);
    return new kind(error.code, error.message, error.data);
}
