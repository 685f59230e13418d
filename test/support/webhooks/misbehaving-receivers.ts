/** Receivers that misbehave, on loopback sockets that are closed after the tests of the file. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import {
  type AddressInfo,
  createServer as createTcpServer,
  type Socket,
  type Server as TcpServer,
} from 'node:net';
import { after } from 'node:test';

const servers: (Server | TcpServer)[] = [];
const sockets: Socket[] = [];
after(() => {
  for (const server of servers) server.close();
  for (const socket of sockets) socket.destroy();
});

/** Starts a receiver that responds with `handle`. Resolves with its host and port. */
export async function receiver(
  handle: (request: IncomingMessage, response: ServerResponse, body: string) => void,
): Promise<string> {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    handle(request, response, Buffer.concat(chunks).toString());
  });
  return `127.0.0.1:${await listen(server)}`;
}

/** Starts a receiver that calls `handle` with every connection. Resolves with its host and port. */
export async function tcp(handle: (socket: Socket) => void): Promise<string> {
  const server = createTcpServer((socket) => {
    socket.on('error', () => undefined);
    handle(socket);
  });
  return `127.0.0.1:${await listen(server)}`;
}

/** Calls `write` every 5 ms while the socket is open. */
export function drip(socket: Socket, write: () => void): void {
  const timer = setInterval(write, 5);
  socket.on('close', () => clearInterval(timer));
}

/** Listens on loopback. Resolves with the port. */
export async function listen(server: Server | TcpServer): Promise<number> {
  servers.push(server);
  server.on('connection', (socket: Socket) => sockets.push(socket));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}
