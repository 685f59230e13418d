/**
 * Connections to the SMTP server, on which one mail after the other is sent. Nodemailer speaks SMTP; this file opens its
 * sockets, so that an attempt knows how far it came, and can be ended at any time. Nodemailer's own pool would send a mail
 * again by itself, and report neither the address nor the step.
 */
import { connect, isIPv6, type Socket } from 'node:net';
import { performance } from 'node:perf_hooks';
import { Readable } from 'node:stream';
import type Session from 'nodemailer/lib/smtp-connection';
import type { Resolver } from '../../net/resolver.ts';
import type { SmtpServer } from '../../net/smtp-url.ts';
import { onAbort } from '../../std/stop-order.ts';
import { NotMailedError, type SmtpTrace } from './mail-failure.ts';

export function newTrace(): SmtpTrace {
  return {
    step: 'wait',
    remoteAddress: null,
    startedMs: null,
    lookedUpMs: null,
    connectedMs: null,
    securedMs: null,
    repliedMs: null,
  };
}

/** An open connection that is signed in. */
interface Line {
  session: Session;
  socket: Socket;
  remoteAddress: string | null;
  sent: number;
  idleTimer: NodeJS.Timeout | undefined;
}

/** Connections at the same time. Common servers accept ten or more from one client. */
const MAX_LINES = 8;
/** A server may limit how many mails it accepts on one connection. */
const MAX_PER_LINE = 100;
/** An idle connection is closed after this time. Servers must wait for five minutes. */
const IDLE_MS = 60_000;
/** Replies are a few hundred bytes long. */
const MAX_REPLY_BYTES = 64 * 1_024;
/** How long the server may take to close its side of a connection. */
const CLOSE_MS = 1_000;
/** Nodemailer's own limits must not end an attempt before the attempt's limit. */
const NEVER_MS = 2 ** 31 - 1;

export class SmtpClient {
  readonly #server: SmtpServer;
  readonly #resolver: Resolver;
  readonly #ca: string | undefined;
  readonly #idle: Line[] = [];
  readonly #open = new Set<Line>();
  /** Connections that are open or being opened. */
  #lines = 0;
  readonly #waiting: (() => void)[] = [];
  #isClosed = false;

  /** @param ca a certificate to trust besides the usual ones (PEM) */
  constructor(server: SmtpServer, resolver: Resolver, ca?: string) {
    this.#server = server;
    this.#resolver = resolver;
    this.#ca = ca;
  }

  /**
   * Sends one mail, and returns the server's reply. A connection that the server has closed while it was idle is replaced
   * once, as long as nothing of the mail was sent.
   *
   * @param input.signal ends the attempt. Its reason becomes the error
   * @throws Error of nodemailer, of the resolver or the socket, or the reason of the signal
   */
  async send(input: {
    from: string;
    to: string;
    message: Buffer;
    signal: AbortSignal;
    trace: SmtpTrace;
  }): Promise<string> {
    const { signal, trace } = input;
    await this.#place(signal);
    try {
      trace.startedMs = performance.now();
      const known = this.#takeIdle();
      if (known !== undefined) {
        const message = Readable.from([input.message], { objectMode: false });
        try {
          return await this.#sendOn(known, { ...input, message });
        } catch (error) {
          if (message.readableDidRead || signal.aborted || !hasHungUp(error)) throw error;
        }
      }
      const line = await this.#dial(signal, trace);
      const message = Readable.from([input.message], { objectMode: false });
      return await this.#sendOn(line, { ...input, message });
    } finally {
      this.#free();
    }
  }

  /** Connects and signs in, without sending anything. @throws like `send` */
  async check(signal: AbortSignal, trace = newTrace()): Promise<void> {
    await this.#place(signal);
    try {
      const line = await this.#dial(signal, trace);
      this.#open.delete(line);
      quit(line);
    } finally {
      this.#free();
    }
  }

  /** Closes all connections. Mails that are being sent fail; the caller waits for them before. */
  close(): void {
    this.#isClosed = true;
    for (const line of this.#open) (this.#idle.includes(line) ? quit : hangUp)(line);
    this.#open.clear();
    this.#idle.length = 0;
  }

  /** Waits until fewer than the maximum number of connections are in use. */
  async #place(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#lines < MAX_LINES) {
      this.#lines += 1;
      return;
    }
    const turn = Promise.withResolvers<void>();
    this.#waiting.push(turn.resolve);
    const settled = onAbort(signal, () => {
      const at = this.#waiting.indexOf(turn.resolve);
      if (at === -1) return;
      this.#waiting.splice(at, 1);
      turn.reject(signal.reason);
    });
    await turn.promise.finally(settled);
  }

  /** Gives the place to the mail that waits longest. */
  #free(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#lines -= 1;
    else next();
  }

  #takeIdle(): Line | undefined {
    for (;;) {
      const line = this.#idle.pop();
      if (line === undefined) return undefined;
      clearTimeout(line.idleTimer);
      if (!line.session.destroyed && line.socket.writable) return line;
      this.#open.delete(line);
    }
  }

  async #sendOn(
    line: Line,
    input: { from: string; to: string; message: Readable; signal: AbortSignal; trace: SmtpTrace },
  ): Promise<string> {
    const { from, to, message, signal, trace } = input;
    const { session } = line;
    trace.remoteAddress = line.remoteAddress;
    trace.step = 'envelope';
    try {
      requireUtf8(session, [from, to]);
      const reply = await until(
        signal,
        session,
        (done: (error: Error | null, info?: { response: string }) => void) =>
          session.send({ from, to: [to] }, message, done),
      );
      trace.repliedMs = performance.now();
      trace.step = 'reply';
      line.sent += 1;
      this.#keep(line);
      return (reply as { response: string }).response;
    } catch (error) {
      if (message.readableDidRead) trace.step = message.readableEnded ? 'reply' : 'message';
      message.destroy();
      // After a refusal, the connection can be used again. A mail whose transfer began cannot be taken back.
      const { responseCode = 0 } = error as { responseCode?: number };
      if (responseCode >= 400 && responseCode !== 421 && !session.destroyed && !signal.aborted) {
        session.reset((failed) => (failed ? this.#drop(line) : this.#keep(line)));
      } else this.#drop(line);
      throw error;
    }
  }

  #keep(line: Line): void {
    if (this.#isClosed || line.session.destroyed || line.sent >= MAX_PER_LINE) {
      this.#open.delete(line);
      quit(line);
      return;
    }
    line.idleTimer = setTimeout(() => {
      const at = this.#idle.indexOf(line);
      if (at === -1) return;
      this.#idle.splice(at, 1);
      this.#open.delete(line);
      quit(line);
    }, IDLE_MS);
    line.idleTimer.unref();
    this.#idle.push(line);
  }

  #drop(line: Line): void {
    this.#open.delete(line);
    hangUp(line);
  }

  /** Opens a connection and signs in. */
  async #dial(signal: AbortSignal, trace: SmtpTrace): Promise<Line> {
    const { host, port, implicitTls, tls, verifiesCertificate, login } = this.#server;
    trace.step = 'dns';
    const [addresses, { default: SMTPConnection }] = await Promise.all([
      this.#resolver.resolve(host),
      import('nodemailer/lib/smtp-connection'),
    ]);
    trace.lookedUpMs = performance.now();
    signal.throwIfAborted();
    trace.step = 'connect';
    const socket = await openSocket({ host, port, addresses }, signal);
    trace.connectedMs = performance.now();
    trace.remoteAddress = socket.remoteAddress ?? null;
    trace.step = 'greeting';
    const session = new SMTPConnection({
      connection: socket,
      host,
      port,
      secure: implicitTls,
      requireTLS: tls === 'required',
      ignoreTLS: tls === 'off',
      tls: { rejectUnauthorized: verifiesCertificate, ...(this.#ca === undefined ? {} : { ca: this.#ca }) },
      connectionTimeout: NEVER_MS,
      greetingTimeout: NEVER_MS,
      socketTimeout: NEVER_MS,
      socketCloseTimeout: CLOSE_MS,
      maxResponseSize: MAX_REPLY_BYTES,
    });
    // The connection may fail while nothing waits for it.
    session.on('error', () => {});
    const line: Line = { session, socket, remoteAddress: trace.remoteAddress, sent: 0, idleTimer: undefined };
    this.#open.add(line);
    session.once('end', () => this.#forget(line));
    try {
      await until(signal, session, (done: (error?: Error | null) => void) => session.connect(done));
      if (session.secure) trace.securedMs = performance.now();
      if (login !== null) {
        trace.step = 'login';
        if (!session.allowsAuth) {
          const sentence =
            'The SMTP server offers no authentication on this connection. Remove the user and the password from ' +
            'FLOWHOOK_SMTP_URL, or use the port for authenticated clients, usually 587 or 465';
          throw new NotMailedError('connect', sentence);
        }
        const { user, password: pass } = login;
        await until(signal, session, (done: (error: Error | null) => void) =>
          session.login({ user, pass, credentials: { user, pass } }, done),
        );
      }
      return line;
    } catch (error) {
      this.#drop(line);
      throw error;
    }
  }

  #forget(line: Line): void {
    this.#open.delete(line);
    const at = this.#idle.indexOf(line);
    if (at !== -1) this.#idle.splice(at, 1);
    clearTimeout(line.idleTimer);
  }
}

/** Runs a step of a session. Rejects if the session fails, or ends, or the signal aborts. */
async function until<Result>(
  signal: AbortSignal,
  session: Session,
  run: (done: (error?: Error | null, result?: Result) => void) => void,
): Promise<Result | undefined> {
  const over = Promise.withResolvers<Result | undefined>();
  const ended = () => over.reject(Object.assign(new Error('Connection closed'), { code: 'ECONNECTION' }));
  // The callback of the step gets the same error, with more details, so it goes first.
  const closed = () => setImmediate(ended);
  session.once('error', over.reject);
  session.once('end', closed);
  const settled = onAbort(signal, () => over.reject(signal.reason));
  run((error, result) => (error ? over.reject(error) : over.resolve(result)));
  try {
    return await over.promise;
  } finally {
    settled();
    session.off('error', over.reject);
    session.off('end', closed);
  }
}

function openSocket(
  to: { host: string; port: number; addresses: readonly string[] },
  signal: AbortSignal,
): Promise<Socket> {
  const over = Promise.withResolvers<Socket>();
  const all = to.addresses.map((address) => ({ address, family: isIPv6(address) ? 6 : 4 }));
  const socket = connect({
    host: to.host,
    port: to.port,
    autoSelectFamily: true,
    lookup: (_, options, found) => {
      const [first] = all;
      if (options.all === true || first === undefined) found(null, all);
      else found(null, first.address, first.family);
    },
  });
  const fail = (error: Error) => over.reject(error);
  socket.once('error', fail);
  socket.once('connect', () => {
    socket.off('error', fail);
    over.resolve(socket);
  });
  const settled = onAbort(signal, () => {
    socket.on('error', () => {}).destroy();
    over.reject(signal.reason);
  });
  return over.promise.finally(settled);
}

function hangUp({ session, socket, idleTimer }: Line): void {
  clearTimeout(idleTimer);
  session.close();
  socket.destroy();
}

/** Ends a connection on which nothing is being sent, as servers expect it. */
function quit(line: Line): void {
  clearTimeout(line.idleTimer);
  if (!line.session.destroyed) line.session.quit();
  // A server that neither replies nor closes its side would keep the socket open.
  setTimeout(() => hangUp(line), CLOSE_MS).unref();
}

/** Whether the server ended the connection instead of refusing the mail. */
function hasHungUp(error: unknown): boolean {
  const { code, responseCode } = error as { code?: string; responseCode?: number };
  return responseCode === 421 || code === 'ECONNECTION' || code === 'ESOCKET';
}

/** @throws NotMailedError if an address needs an extension of SMTP that the server does not offer */
function requireUtf8(session: Session, addresses: readonly string[]): void {
  // Nodemailer keeps this list to itself, and would send the address all the same.
  const { _supportedExtensions: offered } = session as unknown as { _supportedExtensions: readonly string[] };
  const foreign = addresses.find((address) => /[^\0-\x7f]/.test(address));
  if (foreign === undefined || offered.includes('SMTPUTF8')) return;
  throw new NotMailedError(
    'protocol',
    'The SMTP server does not offer SMTPUTF8, which an address with letters beyond ASCII before the @ requires. Use an ' +
      'address without them, or another server',
  );
}
