/** Bytes, however they are cut. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { Frame, RunWire, Wire, frame, line, runFrame } from "../src/wire.ts";

function* cut(data: Buffer, size: number): Generator<Buffer> {
    for (let start = 0; start < data.length; start += size) {
        yield data.subarray(start, start + size);
    }
}

test("messages and frames", () => {
    const one = { jsonrpc: "2.0", id: 1, result: "é\n\u0002" };
    const other = { jsonrpc: "2.0", id: 2, result: null };
    const bytes = Buffer.from("\n\u0002{}\n");
    const large = Buffer.alloc(1_500_000, "x");
    const data = Buffer.concat([
        line(one), frame("d", 7, bytes), frame("e", 7), Buffer.from("\n"), line({ jsonrpc: "2.0", method: "rpc.alive" }, other),
        frame("w", 4_000_000_000, Buffer.of(0, 0, 1, 0)), frame("d", 8, large),
    ]);
    const wanted = [
        one, new Frame("d", 7, bytes), new Frame("e", 7, Buffer.alloc(0)), other,
        new Frame("w", 4_000_000_000, Buffer.of(0, 0, 1, 0)), new Frame("d", 8, large),
    ];
    for (const size of [7, 50, 70_000, data.length]) {
        const wire = new Wire();
        assert.deepEqual([...cut(data, size)].flatMap((part) => [...wire.feed(part)]), wanted);
    }
});

test("messages and frames, byte by byte", () => {
    const data = Buffer.concat([line({ id: 1, result: "é" }), frame("d", 7, Buffer.from("\n\u0002")), Buffer.from("\n"), frame("e", 7), line({ id: 2 })]);
    for (const size of [1, 2, 3]) {
        const wire = new Wire();
        const arrived = [...cut(data, size)].flatMap((part) => [...wire.feed(part)]);
        assert.deepEqual(arrived, [{ id: 1, result: "é" }, new Frame("d", 7, Buffer.from("\n\u0002")), new Frame("e", 7, Buffer.alloc(0)), { id: 2 }]);
    }
});

test("a program's frames", () => {
    const data = Buffer.concat([runFrame("o", Buffer.alloc(300, "x")), runFrame("e"), runFrame("x", Buffer.of(3))]);
    for (const size of [1, 3, 5, data.length]) {
        const wire = new RunWire();
        const got = [...cut(data, size)].flatMap((part) => [...wire.feed(part)]);
        assert.deepEqual(got, [["o", Buffer.alloc(300, "x")], ["e", Buffer.alloc(0)], ["x", Buffer.of(3)]]);
    }
});
