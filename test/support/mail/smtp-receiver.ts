/** A real SMTP server for tests (`smtp-server`), which keeps the mails that it accepts and can refuse anything. */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
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
  /** Closes the connections of all clients. */
  hangUp(): void;
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
    hangUp() {
      for (const socket of sockets) socket.destroy();
    },
    async close() {
      receiver.hangUp();
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

/** What a `wordedServer` replies: a line without its end, or something that no server should do. */
export type Reply = string | 'drop' | 'hang' | ((socket: Socket) => void);

/**
 * A server that follows a script instead of SMTP, for replies that no real server gives. Other commands are accepted.
 *
 * @param replies by command (`EHLO`, `MAIL`, `RCPT`, `DATA`, `RSET`), by `greeting`, and by `.`, the end of the mail
 */
export async function wordedServer(replies: Readonly<Record<string, Reply>>): Promise<{
  port: number;
  /** The commands of all connections, and the mails as lines that end with a dot. */
  heard: string[];
  connections(): number;
  close(): Promise<void>;
}> {
  const sockets = new Set<Socket>();
  const heard: string[] = [];
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    sockets.add(socket);
    socket.on('error', () => {}).once('close', () => sockets.delete(socket));
    const respond = (name: string, usual: string) => {
      const given = replies[name] ?? usual;
      if (given === 'drop') socket.destroy();
      else if (typeof given === 'function') given(socket);
      else if (given !== 'hang') socket.write(`${given}\r\n`);
    };
    let rest = '';
    let isData = false;
    socket.on('data', (chunk: Buffer) => {
      rest += chunk.toString('latin1');
      if (isData && replies.message === 'drop') socket.destroy();
      for (let end = rest.indexOf('\r\n'); end !== -1; end = rest.indexOf('\r\n')) {
        const line = rest.slice(0, end);
        rest = rest.slice(end + 2);
        heard.push(line);
        if (isData && line !== '.') continue;
        const name = isData ? '.' : (line.split(/[ :]/, 1)[0] ?? '').toUpperCase();
        isData = name === 'DATA' && String(replies.DATA ?? '354').startsWith('354');
        respond(name, name === 'DATA' ? '354 Send it' : '250 Fine');
      }
    });
    respond('greeting', '220 mail.test');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    heard,
    connections: () => connections,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
