/** Answers what never becomes a request, or is none: malformed HTTP, timeouts, and methods that the parser does not know. */
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
/** How long further input is still discarded: closing on unread bytes resets the connection, and loses the answer. */
const LINGER_MS = 1_000;

/** What Node's parser reports; `rawPacket` holds the bytes at hand. */
interface ParserError extends Error {
  code: string;
  rawPacket: unknown;
}

/**
 * A handler of `clientError` that writes the error straight to the socket and closes it.
 *
 * @param input.unknownMethod the error for a well-formed request for this target with a method unknown to Node
 * @param input.isFrozen whether an operation of the contract would answer
 */
export function createClientErrorHandler(input: {
  /** The latest answer on a connection: the parser reports errors without a request. */
  answerOf(socket: Duplex): ServerResponse | undefined;
  unknownMethod(target: string): Problem;
  isFrozen(method: string, target: string): boolean;
  /** Whether the body that arrives on a connection may take longer than the timeout. */
  streamsBody(socket: Duplex): boolean;
  log: Logger;
}): (error: Error, socket: Duplex) => void {
  const closing = new WeakSet<Duplex>();
  return (raised, socket) => {
    const error = raised as ParserError;
    const current = input.answerOf(socket);
    // The parser keeps reporting errors in the bytes that follow the first.
    if (closing.has(socket)) return;
    // Node reports this once for each request: an operation that `streamsBody` bounds its body by itself.
    if (error.code === TOO_SLOW && current !== undefined && input.streamsBody(socket)) return;
    // Browsers open connections ahead and may never use them: those are closed without an answer.
    const isUnused = error.code === TOO_SLOW && socket instanceof Socket && socket.bytesRead === 0;
    if (error.code === 'ECONNRESET' || !socket.writable || isUnused) {
      socket.destroy();
      return;
    }
    closing.add(socket);
    input.log.debug({ code: error.code }, 'request.malformed');
    const pending = current !== undefined && !current.writableFinished;
    if (pending && current.req.complete) {
      // The request before it was complete, and is answered first. The bytes at hand may begin with that one, so they
      // do not say what was wrong.
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

/** A handler of CONNECT, for which Node passes a bare socket: it no longer closes earlier answers with it. */
export function answerConnect(input: {
  unknownMethod(target: string): Problem;
  /** The answers that a connection still waits for. */
  unansweredOn(socket: Duplex): readonly ServerResponse[];
}) {
  return (request: IncomingMessage, socket: Duplex): void => {
    // The error of a client that resets the connection would end the process.
    socket.on('error', () => socket.destroy());
    const before = input.unansweredOn(socket);
    for (const answer of before) answer.destroy();
    if (before.length > 0) socket.destroy();
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

/** The request line, if the bytes at hand begin with it: they do unless the request came in pieces. */
function firstLine({ rawPacket }: ParserError): string {
  if (!(rawPacket instanceof Buffer)) return '';
  return rawPacket.subarray(0, MAX_LINE_BYTES).toString('latin1').split('\n', 1)[0] ?? '';
}

/** @param input.head an answer to HEAD has no body: the client would take it for the next answer */
function writeProblem(socket: Duplex, problem: Problem, form: { head: boolean; isFrozen?: boolean }): void {
  socket.end(refusalBytes(problem, form));
  const cut = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once('close', () => clearTimeout(cut));
}

/** The whole answer as bytes; the connection is closed after it. */
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

/** An address or a name with an optional port, or nothing (RFC 3986, section 3.2.2). */
const HOST = /^(?:\[[\da-f:.]+\]|[\w.~!$&'()*+,;=%-]*)(?::\d*)?$/i;

/** @throws Problem `request_malformed`, `http_version_unsupported` or `transfer_unsupported`: each closes the connection */
export function requireSound(request: IncomingMessage): void {
  const { httpVersion, httpVersionMajor, headers } = request;
  if (httpVersionMajor !== 1) throw new Problem('http_version_unsupported', CLOSE);
  const hosts = request.headersDistinct.host ?? [];
  if (hosts.length === 0 && httpVersion === '1.1') malformed('it has no host header');
  if (hosts.length > 1) malformed('it has more than one host header');
  if (hosts[0] !== undefined && !HOST.test(hosts[0])) malformed('its host header is not a host');
  const coding = headers['transfer-encoding'];
  if (coding !== undefined && coding.trim().toLowerCase() !== 'chunked') {
    throw new Problem('transfer_unsupported', CLOSE);
  }
}

const CLOSE = { headers: { connection: 'close' } };

function malformed(why: string): never {
  throw new Problem('request_malformed', {
    ...CLOSE,
    sentence: `The request is not valid HTTP: ${why}`,
  });
}
