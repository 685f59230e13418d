/** Answers what never becomes a request: malformed HTTP, and methods that the parser does not know. */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { Problem } from '../model/error.ts';
import type { Logger } from '../observe/log.ts';
import { STATUS_CODES } from '../std/http-names.ts';
import { renderProblem } from './problem.ts';

const TOO_SLOW = 'ERR_HTTP_REQUEST_TIMEOUT';
const MAX_LINE_BYTES = 8_192;
/** What still arrives is read and dropped for so long: closing on unread bytes would take the answer with it. */
const LINGER_MS = 1_000;

/** What a connection is answering; kept per socket, for the parser reports errors without a request. */
export type Answering = WeakMap<Duplex, ServerResponse>;

/** What Node's parser reports; `rawPacket` holds the bytes at hand. */
interface ParserError extends Error {
  code: string;
  rawPacket: unknown;
}

/**
 * Writes an error straight to the socket and closes it.
 *
 * @param unknownMethod what a well-formed request with this target and a method unknown to Node is to be told
 */
export function createClientErrorHandler(input: {
  answering: Answering;
  unknownMethod(target: string): Problem;
  /** Whether what this connection asks for may take as long as it wants to arrive. */
  hasTime(request: IncomingMessage): boolean;
  log: Logger;
}): (error: ParserError, socket: Duplex) => void {
  const closing = new WeakSet<Duplex>();
  return (error, socket) => {
    const current = input.answering.get(socket);
    // The parser goes on complaining about what follows the bytes that it has refused.
    if (closing.has(socket)) return;
    // Node says it once for each request and leaves the rest to us: who has time is bounded by other means.
    if (error.code === TOO_SLOW && current !== undefined && input.hasTime(current.req)) return;
    // Whoever opened a connection and never asked for anything, as browsers do, is not told off.
    const isUnused = error.code === TOO_SLOW && socket instanceof Socket && socket.bytesRead === 0;
    if (error.code === 'ECONNRESET' || !socket.writable || isUnused) {
      socket.destroy();
      return;
    }
    closing.add(socket);
    input.log.debug({ code: error.code }, 'request.malformed');
    const pending = current !== undefined && !current.writableFinished;
    if (pending && current.req.complete) {
      // What was asked before, in good order, is answered first. The bytes at hand may begin with that request, so
      // they tell nothing of the one that was refused.
      const refusal = new Problem('request_malformed', { cause: error });
      current.once('finish', () => writeProblem(socket, refusal, { head: false }));
    } else if (pending && current.headersSent) {
      socket.destroy();
    } else {
      const head = firstLine(error).startsWith('HEAD ');
      writeProblem(socket, problemOf(error, input.unknownMethod), { head });
    }
  };
}

/** Answers CONNECT, which Node hands over as a bare socket. */
export function answerConnect(unknownMethod: (target: string) => Problem) {
  return (request: IncomingMessage, socket: Duplex): void => {
    writeProblem(socket, unknownMethod(request.url ?? ''), { head: false });
  };
}

function problemOf(error: ParserError, unknownMethod: (target: string) => Problem): Problem {
  if (error.code === 'HPE_HEADER_OVERFLOW') return new Problem('headers_too_large');
  if (error.code === 'HPE_INVALID_METHOD') {
    const target = /^[!#$%&'*+.^_`|~\w-]+ (\/\S*) HTTP\/1\.[01]\r?$/.exec(firstLine(error))?.[1];
    if (target !== undefined) return unknownMethod(target);
  }
  if (error.code === TOO_SLOW) {
    return new Problem('request_malformed', { sentence: 'The request took too long to arrive' });
  }
  return new Problem('request_malformed', { cause: error });
}

/** As far as the bytes at hand begin with it; they do unless the request came in pieces. */
function firstLine({ rawPacket }: ParserError): string {
  if (!(rawPacket instanceof Buffer)) return '';
  return rawPacket.subarray(0, MAX_LINE_BYTES).toString('latin1').split('\n', 1)[0] ?? '';
}

/** An answer to HEAD has no body: a client would take it for the next answer. */
function writeProblem(socket: Duplex, problem: Problem, { head }: { head: boolean }): void {
  socket.end(refusalBytes(problem, { head }));
  const cut = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once('close', () => clearTimeout(cut));
}

/** An answer as it goes over the wire, after which the connection is closed. */
export function refusalBytes(problem: Problem, { head = false } = {}): string {
  const { status, headers, body } = renderProblem(problem);
  const lines = Object.entries({
    ...headers,
    'x-request-id': randomUUID(),
    'content-length': Buffer.byteLength(body),
    connection: 'close',
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${head ? '' : body}`;
}
