#!/usr/bin/env node
// The command `toolbox`: runs the program that the package of this platform brings, as if it had been called itself.
"use strict";

const { constants } = require("node:os");

function program() {
    const name = `toolbox-sandbox-${process.platform}-${process.arch}`;
    try {
        return require.resolve(`${name}/bin/toolbox`);
    } catch {
        console.error(`toolbox: the package ${name} is not installed: there is none for this platform, or npm was told to leave optional dependencies out`);
        process.exit(1);
    }
}

function run(path, args) {
    const child = require("node:child_process").spawn(path, args, { stdio: "inherit" });
    for (const name of ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH"]) {
        process.on(name, () => child.kill(name)); // a terminal's own signals reach both; this one waits for the other's end
    }
    child.on("error", (error) => {
        console.error(`toolbox: ${path} can't be run: ${error.message}`);
        process.exit(126);
    });
    child.on("exit", (code, signal) => process.exit(code === null ? 128 + constants.signals[signal] : code));
}

const path = program();
const args = process.argv.slice(2);
if (process.execve && process.env.NODE_OPTIONS === undefined) {
    process.execve(path, ["toolbox", ...args], process.env);
} else {
    run(path, args);
}
