/** A proxy from a TCP port on loopback to a unix socket: a network that tests can interrupt or stall. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export interface TcpProxy {
  port: number;
  /** Stops forwarding until `resume`, without closing connections. New connections are still accepted. */
  stall(): void;
  resume(): void;
  /** Closes the connection on which clients send this text for the nth time, instead of forwarding the response. */
  loseAnswerTo(sent: string, nth: number): void;
  stop(): void;
}

const READY = Buffer.from('Z\0\0\0\x05I', 'latin1');

export async function startTcpProxy(socketPath: string): Promise<TcpProxy> {
  const sockets = new Set<Socket>();
  let stalled = false;
  let fatal = { sent: '', left: 0 };
  const server = createServer((near) => {
    const far = connect(socketPath);
    near.on('data', (chunk) => {
      if (fatal.left === 0 || !chunk.includes(fatal.sent)) return;
      fatal.left -= 1;
      if (fatal.left > 0) return;
      // PostgreSQL has responded to all that was sent when it reports that it is ready, outside of a transaction.
      far.removeAllListeners('data').on('data', (answer: Buffer) => {
        if (answer.subarray(-6).equals(READY)) near.destroy();
      });
    });
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
    loseAnswerTo(sent, nth) {
      fatal = { sent, left: nth };
    },
    stop() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
