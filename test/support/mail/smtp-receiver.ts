/** A real SMTP server for tests (`smtp-server`), which keeps the mails that it accepts and can refuse anything. */
import { once } from 'node:events';
import type { AddressInfo, Server, Socket } from 'node:net';
import { extract, type LetterparserMail, type LetterparserNode, parse } from 'letterparser';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';

/** A mail that was accepted, read by an independent parser. */
export interface ReceivedMail {
  from: string;
  to: string;
  /** As it was transferred, without the escaped dots. */
  raw: string;
  /** In lower case. */
  headers: Record<string, string>;
  mail: LetterparserMail;
  /** The user that signed in. */
  user: string | undefined;
  isSecure: boolean;
}

export interface SmtpReceiver {
  port: number;
  mails: ReceivedMail[];
  /** Connections so far. */
  connections: number;
  /** Resolves with mail number `count`, counted from 1. */
  mail(count: number): Promise<ReceivedMail>;
  close(): Promise<void>;
}

/** Makes an error that the server sends as this reply. */
export function reply(responseCode: number, message: string): Error {
  return Object.assign(new Error(message), { responseCode });
}

/** @param options those of `smtp-server`. Without `onAuth`, the server offers no authentication */
export async function smtpReceiver(
  options: SMTPServerOptions & {
    /** Decides about a mail that was transferred: an Error is the reply; a function gets the socket instead of a reply. */
    onMail?: (mail: ReceivedMail) => Error | 'nothing' | undefined | Promise<undefined>;
    port?: number;
  } = {},
): Promise<SmtpReceiver> {
  const waiting = new Set<() => void>();
  const { onMail, port = 0, ...own } = options;
  const receiver: SmtpReceiver = {
    port: 0,
    mails: [],
    connections: 0,
    async mail(count) {
      while (receiver.mails.length < count) {
        const next = Promise.withResolvers<void>();
        waiting.add(next.resolve);
        await next.promise;
      }
      return receiver.mails[count - 1] as ReceivedMail;
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
  const server = new SMTPServer({
    disabledCommands: own.onAuth === undefined ? ['AUTH'] : [],
    // A server without a certificate of its own would use one that has expired.
    hideSTARTTLS: own.cert === undefined,
    disableReverseLookup: true,
    closeTimeout: 100,
    logger: false,
    ...own,
    onData(stream, session, done) {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', async () => {
        const raw = Buffer.concat(chunks).toString('utf8');
        const { mailFrom, rcptTo } = session.envelope;
        const received: ReceivedMail = {
          from: mailFrom === false ? '' : mailFrom.address,
          to: rcptTo.map(({ address }) => address).join(', '),
          raw,
          headers: headersOf(parse(raw)),
          mail: extract(raw),
          user: session.user as string | undefined,
          isSecure: session.secure,
        };
        const refusal = await onMail?.(received);
        if (refusal === 'nothing') return;
        if (refusal !== undefined) return done(refusal);
        receiver.mails.push(received);
        done(null);
        for (const resolve of waiting) resolve();
        waiting.clear();
      });
    },
  });
  // A client that hangs up in the middle is an error for this server, but not for the test.
  server.on('error', () => {});
  const sockets = new Set<Socket>();
  (server.server as Server).on('connection', (socket: Socket) => {
    receiver.connections += 1;
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  server.listen(port, '127.0.0.1');
  await once(server.server as Server, 'listening');
  receiver.port = ((server.server as Server).address() as AddressInfo).port;
  return receiver;
}

function headersOf(node: LetterparserNode): Record<string, string> {
  const names = Object.entries(node.headers as Record<string, string | undefined>);
  return Object.fromEntries(names.map(([name, value]) => [name.toLowerCase(), value ?? '']));
}
