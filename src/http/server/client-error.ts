/** Responds to input that never becomes a request: malformed HTTP, timeouts, and methods unknown to the parser. */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { Problem } from '../../model/error.ts';
import type { Logger } from '../../observe/log.ts';
import { STATUS_CODES } from '../../std/http-names.ts';
import { renderProblem } from './problem.ts';

const TOO_SLOW = 'ERR_HTTP_REQUEST_TIMEOUT';
const MAX_LINE_BYTES = 8_192;
/** How long input is read and discarded. Closing a connection with unread bytes resets it, and the response is lost. */
const LINGER_MS = 1_000;

/** An error of Node's parser; `rawPacket` holds the bytes that it was parsing. */
interface ParserError extends Error {
  code: string;
  rawPacket: unknown;
}

/**
 * Creates a handler of `clientError` that writes the error directly to the socket and closes it.
 *
 * @param input.unknownMethod the error for a well-formed request whose method Node does not know
 * @param input.isFrozen whether the request is for an operation of the contract
 */
export function createClientErrorHandler(input: {
  /** The latest response on a connection. It is needed because the parser reports errors without a request. */
  responseOn(socket: Duplex): ServerResponse | undefined;
  unknownMethod(target: string): Problem;
  isFrozen(method: string, target: string): boolean;
  /** Whether the body that arrives on a connection may take longer than the timeout. */
  streamsBody(socket: Duplex): boolean;
  log: Logger;
}): (error: Error, socket: Duplex) => void {
  const closing = new WeakSet<Duplex>();
  return (raised, socket) => {
    const error = raised as ParserError;
    const current = input.responseOn(socket);
    // After the first error, the parser reports an error for every further chunk.
    if (closing.has(socket)) return;
    // Operations with `streamsBody` have their own time limit. Node reports the timeout once per request.
    if (error.code === TOO_SLOW && current !== undefined && input.streamsBody(socket)) return;
    // Browsers open connections in advance and may never use them. These are closed without a response.
    const isUnused = error.code === TOO_SLOW && socket instanceof Socket && socket.bytesRead === 0;
    if (error.code === 'ECONNRESET' || !socket.writable || isUnused) {
      socket.destroy();
      return;
    }
    closing.add(socket);
    input.log.debug({ code: error.code }, 'request.malformed');
    const pending = current !== undefined && !current.writableFinished;
    if (pending && current.req.complete) {
      // The previous request is complete and gets its response first. `rawPacket` may start with that request, so it
      // does not show what was wrong.
      const refusal = new Problem('request_malformed', { cause: error });
      current.once('finish', () => writeProblem(socket, refusal, { head: false }));
    } else if (pending && current.headersSent) {
      socket.destroy();
    } else {
      const [method = '', target = ''] = firstLine(error).split(' ', 2);
      const isFrozen = input.isFrozen(method, target);
      writeProblem(socket, problemOf(error, input.unknownMethod), { head: method === 'HEAD', isFrozen });
    }
  };
}

/** Creates a handler that refuses CONNECT. Node passes it a bare socket and no longer ends earlier responses. */
export function refuseConnect(input: {
  unknownMethod(target: string): Problem;
  /** The unfinished responses on a connection. */
  pendingOn(socket: Duplex): readonly ServerResponse[];
}) {
  return (request: IncomingMessage, socket: Duplex): void => {
    // Without a handler, the error of a client that resets the connection would end the process.
    socket.on('error', () => socket.destroy());
    const pending = input.pendingOn(socket);
    for (const response of pending) response.destroy();
    if (pending.length > 0) socket.destroy();
    else writeProblem(socket, input.unknownMethod(request.url ?? ''), { head: false });
  };
}

function problemOf(error: ParserError, unknownMethod: (target: string) => Problem): Problem {
  if (error.code === 'HPE_HEADER_OVERFLOW') return new Problem('headers_too_large');
  if (error.code === 'HPE_INVALID_METHOD') {
    const target = /^[!#$%&'*+.^_`|~\w-]+ (\/\S*) HTTP\/1\.[01]\r?$/.exec(firstLine(error))?.[1];
    if (target !== undefined) return unknownMethod(target);
  }
  if (/ HTTP\/[2-9](?:\.\d)?\r?$/.test(firstLine(error))) return new Problem('http_version_unsupported');
  if (error.code === TOO_SLOW) {
    return new Problem('request_malformed', { sentence: 'The request took too long to arrive' });
  }
  return new Problem('request_malformed', { cause: error });
}

/** The first line of the parser's bytes. It is the request line unless the request arrived in several packets. */
function firstLine({ rawPacket }: ParserError): string {
  if (!(rawPacket instanceof Buffer)) return '';
  return rawPacket.subarray(0, MAX_LINE_BYTES).toString('latin1').split('\n', 1)[0] ?? '';
}

/**
 * @param form.head whether this responds to HEAD; the response then has no body, because the client would read it as
 *   the next response
 */
function writeProblem(socket: Duplex, problem: Problem, form: { head: boolean; isFrozen?: boolean }): void {
  socket.end(refusalBytes(problem, form));
  const cut = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once('close', () => clearTimeout(cut));
}

/** An error as a complete HTTP response with `connection: close`. */
export function refusalBytes(problem: Problem, { head = false, isFrozen = false } = {}): string {
  const { status, headers, body } = renderProblem(problem, { isFrozen });
  const lines = Object.entries({
    ...headers,
    'x-request-id': randomUUID(),
    'content-length': Buffer.byteLength(body),
    connection: 'close',
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${head ? '' : body}`;
}

/** An address or a name with an optional port, or empty (RFC 3986, section 3.2.2). */
const HOST = /^(?:\[[\da-f:.]+\]|[\w.~!$&'()*+,;=%-]*)(?::\d*)?$/i;

/** @throws Problem `request_malformed`, `http_version_unsupported` or `transfer_unsupported`; each closes the connection */
export function requireSound(request: IncomingMessage): void {
  const { httpVersion, httpVersionMajor, headers } = request;
  if (httpVersionMajor !== 1) throw new Problem('http_version_unsupported', CLOSE);
  const { host } = headers;
  if (host === undefined && httpVersion === '1.1') malformed('it has no host header');
  if (hasTwoHosts(request)) malformed('it has more than one host header');
  if (host !== undefined && !HOST.test(host)) malformed('its host header is not a host');
  const coding = headers['transfer-encoding'];
  if (coding !== undefined && coding.trim().toLowerCase() !== 'chunked') {
    throw new Problem('transfer_unsupported', CLOSE);
  }
}

/** Node keeps only the first of several. `headersDistinct` has all, but costs more, because it copies every header. */
function hasTwoHosts({ rawHeaders }: IncomingMessage): boolean {
  let hosts = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string;
    if (name.length === 4 && name.toLowerCase() === 'host') hosts += 1;
  }
  return hosts > 1;
}

const CLOSE = { headers: { connection: 'close' } };

function malformed(why: string): never {
  throw new Problem('request_malformed', {
    ...CLOSE,
    sentence: `The request is not valid HTTP: ${why}`,
  });
}
