/** A TCP port of loopback before a unix socket: a network that can be cut, or that stops forwarding without a word. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export interface TcpProxy {
  port: number;
  /** Forwards nothing any more, and says nothing of it, until `resume`. New connections are taken all the same. */
  stall(): void;
  resume(): void;
  stop(): void;
}

export async function startTcpProxy(socketPath: string): Promise<TcpProxy> {
  const sockets = new Set<Socket>();
  let stalled = false;
  const server = createServer((near) => {
    const far = connect(socketPath);
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from);
      from.on('data', (chunk) => to.write(chunk));
      from.on('error', () => undefined);
      from.on('close', () => {
        sockets.delete(from);
        to.destroy();
      });
      if (stalled) from.pause();
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    stall() {
      stalled = true;
      for (const socket of sockets) socket.pause();
    },
    resume() {
      stalled = false;
      for (const socket of sockets) socket.resume();
    },
    stop() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
