/**
 * Hands in any Linux container, over one connection that is kept.
 *
 *     await using sandbox = await Sandbox.connect("docker:web");
 *     console.log((await sandbox.run(["uname", "-r"])).text);
 */

import "./dispose.ts"; // before the classes that have it

export * from "./errors.ts";
export type { CopyOptions, FileOptions, Files, FindOptions, Found, SearchOptions, SearchResult, Stat } from "./files.ts";
export type { Forward } from "./forward.ts";
export { type Copied, findToolbox } from "./host.ts";
export type { Job, JobOptions, JobOutput } from "./job.ts";
export type { Methods } from "./methods.ts";
export type { Completed, Output, Process, ProgramOptions, RunOptions } from "./program.ts";
export { type ConnectOptions, eject, type EjectOptions, Sandbox } from "./sandbox.ts";
export type { Shell, ShellOptions, ShellResult, ShellRunOptions } from "./shell.ts";
export type { Browser, Editor, Mcp, McpOptions, McpServer, Page } from "./tools.ts";
export type { Abortable } from "./waiting.ts";
export type { Change, Watch } from "./watch.ts";
export type { Json, Message } from "./wire.ts";
