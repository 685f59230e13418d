/**
 * A strict transaction pooler for PostgreSQL: after each transaction a client gets a different connection, so that it
 * never finds state that it left in a session.
 */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** https://www.postgresql.org/docs/18/protocol-message-formats.html */
const SSL_REQUEST = 80_877_103;
const CANCEL_REQUEST = 80_877_102;
const PARAMETERS = {
  server_version: '15.0',
  client_encoding: 'UTF8',
  standard_conforming_strings: 'on',
  integer_datetimes: 'on',
  DateStyle: 'ISO, MDY',
};

export interface TransactionPool {
  port: number;
  /** How often a client got a different connection than before. */
  readonly changes: number;
  stop(): void;
}

/** @param input.size number of connections per database */
export async function startTransactionPool(input: {
  socketPath: string;
  size: number;
}): Promise<TransactionPool> {
  const sockets = new Set<Socket>();
  const servers = new Map<string, Servers>();
  let changes = 0;
  const listener = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.unref();
    socket.on('error', () => undefined);
    socket.on('close', () => sockets.delete(socket));
    serve(socket).catch(() => socket.destroy());
  });

  async function serve(client: Socket): Promise<void> {
    const messages = new Messages(client);
    let startup = await messages.untyped();
    while (startup.readInt32BE(4) === SSL_REQUEST) {
      client.write('N');
      startup = await messages.untyped();
    }
    if (startup.readInt32BE(4) === CANCEL_REQUEST) return void client.destroy();
    const key = startup.toString('latin1');
    const pool = servers.get(key) ?? new Servers(input, startup);
    servers.set(key, pool);
    client.write(greeting());
    let before: Server | undefined;
    for (;;) {
      let unit = await requestOf(messages);
      if (unit === undefined) return void client.destroy();
      const server = await pool.take(before);
      if (before !== undefined && server !== before) changes += 1;
      before = server;
      let isIdle = false;
      try {
        while (!isIdle) {
          server.socket.write(unit);
          isIdle = (await forwardResponse(server, client)) === 'I';
          if (isIdle) break;
          const next = await requestOf(messages);
          if (next === undefined) return void client.destroy();
          unit = next;
        }
      } finally {
        // If the client has disconnected during a transaction, the connection cannot be reused.
        if (isIdle) pool.give(server);
        else pool.lose(server);
      }
    }
  }

  // The listener must not keep the process of the test alive.
  listener.listen(0, '127.0.0.1').unref();
  await once(listener, 'listening');
  return {
    port: (listener.address() as AddressInfo).port,
    get changes() {
      return changes;
    },
    stop() {
      listener.close();
      for (const socket of sockets) socket.destroy();
      for (const pool of servers.values()) pool.stop();
    },
  };
}

/** Reads a client's messages up to a simple query or a Sync, which need a response. Undefined if the client terminates. */
async function requestOf(messages: Messages): Promise<Buffer | undefined> {
  const parts: Buffer[] = [];
  for (;;) {
    const message = await messages.typed();
    const type = String.fromCharCode(message[0] as number);
    if (type === 'X') return undefined;
    parts.push(message);
    if (type === 'Q' || type === 'S') return Buffer.concat(parts);
  }
}

/** Forwards a response. Returns the transaction status after it: I, T or E. */
async function forwardResponse({ messages }: Server, client: Socket): Promise<string> {
  const parts: Buffer[] = [];
  for (;;) {
    const message = await messages.typed();
    parts.push(message);
    if (message[0] !== 0x5a) continue;
    client.write(Buffer.concat(parts));
    return String.fromCharCode(message[5] as number);
  }
}

interface Server {
  socket: Socket;
  messages: Messages;
}

/** The connections to one database. */
class Servers {
  readonly #input: { socketPath: string; size: number };
  readonly #startup: Buffer;
  readonly #free: Server[] = [];
  readonly #all = new Set<Server>();
  #waiting: (() => void)[] = [];

  constructor(input: { socketPath: string; size: number }, startup: Buffer) {
    this.#input = input;
    this.#startup = startup;
  }

  /** Waits for a different connection than the client had before. */
  async take(before: Server | undefined): Promise<Server> {
    for (;;) {
      const other = this.#free.findIndex((server) => server !== before);
      if (other !== -1) return this.#free.splice(other, 1)[0] as Server;
      if (this.#all.size < this.#input.size) return this.#open();
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  give(server: Server): void {
    this.#free.push(server);
    this.#wake();
  }

  lose(server: Server): void {
    this.#all.delete(server);
    server.socket.destroy();
    this.#wake();
  }

  stop(): void {
    for (const { socket } of this.#all) socket.destroy();
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resume of waiting) resume();
  }

  async #open(): Promise<Server> {
    const socket = connect(this.#input.socketPath).unref();
    const server = { socket, messages: new Messages(socket) };
    this.#all.add(server);
    socket.on('error', () => undefined);
    socket.on('close', () => {
      const place = this.#free.indexOf(server);
      if (place !== -1) this.#free.splice(place, 1);
      this.lose(server);
    });
    socket.write(this.#startup);
    while ((await server.messages.typed())[0] !== 0x5a);
    return server;
  }
}

/** Reads the messages on a socket, one at a time. Rejects when the socket is closed. */
class Messages {
  #bytes: Buffer = Buffer.alloc(0);
  #isOver = false;
  #wake: () => void = () => undefined;

  constructor(socket: Socket) {
    socket.on('data', (chunk: Buffer) => {
      this.#bytes = Buffer.concat([this.#bytes, chunk]);
      this.#wake();
    });
    socket.on('close', () => {
      this.#isOver = true;
      this.#wake();
    });
  }

  typed(): Promise<Buffer> {
    return this.#next(1);
  }

  /** Reads a message without a type, such as the first message of a client. */
  untyped(): Promise<Buffer> {
    return this.#next(0);
  }

  async #next(before: number): Promise<Buffer> {
    for (;;) {
      const length = this.#bytes.length < before + 4 ? undefined : this.#bytes.readInt32BE(before) + before;
      if (length !== undefined && this.#bytes.length >= length) {
        const message = this.#bytes.subarray(0, length);
        this.#bytes = this.#bytes.subarray(length);
        return message;
      }
      if (this.#isOver) throw new Error('The connection is closed');
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}

/** The messages of a server after a client has connected. */
function greeting(): Buffer {
  const parts = [message('R', Buffer.alloc(4))];
  for (const [name, value] of Object.entries(PARAMETERS)) {
    parts.push(message('S', Buffer.from(`${name}\0${value}\0`)));
  }
  parts.push(message('K', Buffer.alloc(8)), message('Z', Buffer.from('I')));
  return Buffer.concat(parts);
}

function message(type: string, body: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeInt32BE(body.length + 4);
  return Buffer.concat([Buffer.from(type), length, body]);
}
