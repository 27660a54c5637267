/** A port of this machine that leads to one of the target's. */

import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import type { ByteStream } from "./bytestream.ts";
import type { Connection } from "./connection.ts";

/** It leads there until it is closed (`await using`). */
export class Forward implements AsyncDisposable {
    #connection: Connection;
    #leadsTo: string;
    #server: Server;
    #clients = new Set<Socket>();

    private constructor(connection: Connection, leadsTo: string) {
        this.#connection = connection;
        this.#leadsTo = leadsTo;
        this.#server = createServer({ allowHalfOpen: true }, (client) => void this.#serve(client));
    }

    static async listen(connection: Connection, leadsTo: string, host: string, port: number): Promise<Forward> {
        const made = new Forward(connection, leadsTo);
        made.#server.listen(port, host);
        await once(made.#server, "listening");
        return made;
    }

    /** The port here, also where the system chose it. */
    get port(): number {
        return (this.#server.address() as AddressInfo).port;
    }

    async #serve(client: Socket): Promise<void> {
        this.#clients.add(client);
        client.on("error", () => client.destroy());
        let stream: ByteStream | undefined;
        try {
            stream = this.#connection.stream({ connect: this.#leadsTo });
            const opened = stream;
            client.on("close", () => opened.reset());
            await Promise.all([send(client, stream), receive(client, stream)]);
        } catch {
            client.resetAndDestroy(); // whoever is here learns it as he would there
        } finally {
            stream?.reset();
            client.destroy();
            this.#clients.delete(client);
        }
    }

    async close(): Promise<void> {
        const closed = new Promise((done) => this.#server.close(done));
        this.#clients.forEach((client) => client.destroy());
        await closed;
    }

    async [Symbol.asyncDispose](): Promise<void> {
        await this.close();
    }
}

async function send(client: Socket, stream: ByteStream): Promise<void> {
    for await (const data of client.iterator({ destroyOnReturn: false })) {
        await stream.write(data as Buffer);
    }
    stream.end();
}

async function receive(client: Socket, stream: ByteStream): Promise<void> {
    for (let data = await stream.read(); data; data = await stream.read()) {
        if (!client.write(data)) {
            await once(client, "drain");
        }
    }
    client.end();
    await once(client, "finish");
}
