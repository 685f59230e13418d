/**
 * Reads request bodies up to a size limit, and discards bodies that no operation reads.
 */
import type { Server as HttpServer, IncomingMessage, ServerResponse } from 'node:http';
import { Problem } from '../../model/error.ts';
import type { Call } from '../route.ts';
import { refuseUnknownFields } from './strict.ts';

/** The largest JSON body that is accepted. */
export const MAX_BODY_BYTES = 64 * 1_024;
/**
 * How much of an oversized JSON body is read and discarded before it is refused. Closing a connection with unread
 * bytes resets it, and the client then never sees the response.
 */
const MAX_DISCARDED_BYTES = 16 * 1_048_576;

/** Requests whose operation is waiting for their body. */
const arriving = new WeakSet<IncomingMessage>();

/** A JSON object, no body, or a body that is neither, with the reason. */
export type Body =
  | { kind: 'object'; value: Record<string, unknown> }
  | { kind: 'empty' }
  | { kind: 'other'; mistake: string; isUnsupported?: true };

/**
 * Reads the whole body as JSON.
 *
 * @param most maximum size in bytes; small for operations without a key, because each connection may use that much
 *   memory
 * @param parseText parses the JSON
 * @throws Problem `body_too_large` beyond `most`, which also closes the connection after the response;
 *   `request_malformed` when the client disconnected
 */
export async function readBody(
  request: IncomingMessage,
  most = MAX_BODY_BYTES,
  parseText: (text: string) => unknown = JSON.parse,
): Promise<Body> {
  // A client that waits for `100 Continue` declares the size first.
  const isDeclared = isUninvited(request) && Number(request.headers['content-length'] ?? 0) > most;
  const { bytes, size } = isDeclared
    ? { bytes: Buffer.alloc(0), size: most + 1 }
    : await readBeginning(request, { most, discarded: MAX_DISCARDED_BYTES });
  if (size > most) {
    throw new Problem('body_too_large', {
      sentence: `The request body is larger than ${most / 1_024} KiB`,
      headers: { connection: 'close' },
    });
  }
  if (size === 0) return { kind: 'empty' };
  if (!isJson(request.headers['content-type'])) {
    return {
      kind: 'other',
      isUnsupported: true,
      mistake: 'Send the body as JSON, with the header `content-type: application/json`',
    };
  }
  const value = parse(bytes, parseText);
  if (value === undefined) return { kind: 'other', mistake: 'The request body is not valid JSON in UTF-8' };
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return { kind: 'other', mistake: 'The request body must be a JSON object' };
  }
  return { kind: 'object', value: value as Record<string, unknown> };
}

/**
 * Reads a JSON object whose fields the operation declares.
 *
 * @param needs describes the body in the error for a missing body; without `needs`, a missing body counts as an empty
 *   object
 * @param rest see `readBody`
 * @throws Problem `body_invalid`; `content_unsupported`; the errors of `refuseUnknownFields` and `readBody`
 */
export async function bodyFields(
  { request, operation }: Pick<Call, 'request' | 'operation'>,
  needs?: string,
  ...rest: [most?: number, parseText?: (text: string) => unknown]
): Promise<Record<string, unknown>> {
  const body = await readBody(request.raw, ...rest);
  if (body.kind === 'object') {
    refuseUnknownFields(operation, body.value);
    return body.value;
  }
  if (body.kind === 'empty' && needs === undefined) return {};
  if (body.kind === 'empty') {
    throw new Problem('body_invalid', { sentence: `A request body is required: ${needs}` });
  }
  throw new Problem(body.isUnsupported ? 'content_unsupported' : 'body_invalid', { sentence: body.mistake });
}

/** Whether the client announced a body that is not empty. */
export function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/**
 * Refuses a body that the operation does not take. An empty body is accepted, and so is `{}`, which some clients send
 * with every POST.
 *
 * @throws Problem `body_invalid`; the errors of `refuseUnknownFields` and `readBody`
 */
export async function refuseBody(call: Pick<Call, 'request' | 'operation'>): Promise<void> {
  const body = await readBody(call.request.raw);
  if (body.kind === 'object') refuseUnknownFields(call.operation, body.value);
  if (body.kind === 'other') {
    throw new Problem('body_invalid', { sentence: 'This operation takes no body' });
  }
}

/**
 * Reads a body and keeps its beginning.
 *
 * @param most how many bytes are kept
 * @param discarded how many more are read and discarded, so that most clients still get their response
 * @returns `size` of everything that was read; `isWhole` is false if that is not the whole body: the connection must
 *   then be closed after the response
 * @throws Problem `request_malformed` when the client disconnected
 */
export async function readBeginning(
  request: IncomingMessage,
  { most, discarded }: { most: number; discarded: number },
): Promise<{ bytes: Buffer; size: number; isWhole: boolean }> {
  const chunks: Buffer[] = [];
  let size = 0;
  let isWhole = true;
  arriving.add(request);
  inviteBody(request);
  try {
    for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      const room = Math.max(0, most - size);
      if (room > 0) chunks.push(chunk.subarray(0, room));
      size += chunk.length;
      if (size <= most + discarded) continue;
      isWhole = false;
      break;
    }
  } catch (cause) {
    throw new Problem('request_malformed', { sentence: 'The request body ended too early', cause });
  } finally {
    arriving.delete(request);
  }
  return { bytes: Buffer.concat(chunks), size, isWhole };
}

/** Whether an operation is waiting for the client to send the body. Meanwhile it uses no CPU time. */
export function isBodyArriving(request: IncomingMessage): boolean {
  return arriving.has(request);
}

/** `application/json` and `application/…+json` (RFC 6839), with any parameters. */
function isJson(contentType: string | undefined): boolean {
  return /^\s*application\/(?:[\w!#$&^.-]+\+)*json\s*(?:;|$)/i.test(contentType ?? '');
}

/** Undefined if the bytes are not JSON. A byte order mark is skipped, as RFC 8259, section 8.1 allows. */
function parse(bytes: Buffer, parseText: (text: string) => unknown): unknown {
  try {
    return parseText(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    return undefined;
  }
}

const waiting = new WeakMap<IncomingMessage, ServerResponse>();

/** Accepts requests without the `100 Continue` that Node would send immediately. Other expectations are ignored. */
export function holdContinue(server: HttpServer): void {
  server.on('checkContinue', (request, response) => {
    waiting.set(request, response);
    server.emit('request', request, response);
  });
  // Otherwise Node returns 417.
  server.on('checkExpectation', (request, response) => server.emit('request', request, response));
}

/** Whether the client still waits for `100 Continue`. */
export function isUninvited(request: IncomingMessage): boolean {
  return waiting.has(request);
}

/** Sends `100 Continue` to a client that waits for it. */
export function inviteBody(request: IncomingMessage): void {
  const response = waiting.get(request);
  waiting.delete(request);
  if (response !== undefined && !response.headersSent) response.writeContinue();
}

export interface LingerBounds {
  ms: number;
  bytes: number;
}

const UNREAD: LingerBounds = { ms: 10_000, bytes: 16 * 1_048_576 };
const LOOK_EVERY_MS = 25;

/** Limits how much of a body is read after the response. */
export function boundUnread(request: IncomingMessage, response: ServerResponse): void {
  if (!hasBody(request)) return;
  response.once('finish', () => lingerOn(request, UNREAD));
}

/** Discards the rest of the body, and closes the connection when a limit is exceeded. */
export function lingerOn(request: IncomingMessage, { ms, bytes }: LingerBounds): void {
  if (request.complete || request.destroyed) return;
  const { socket } = request;
  const start = socket.bytesRead;
  // An abandoned iterator still listens to the request, so `resume` has no effect without a listener for `data`.
  request.on('data', () => {});
  request.resume();
  const end = performance.now() + ms;
  const look = setInterval(() => {
    // No listener is added to the connection, because listeners would accumulate over thousands of requests.
    if (socket.destroyed) clearInterval(look);
    if (performance.now() < end && socket.bytesRead - start <= bytes) return;
    clearInterval(look);
    socket.destroy();
  }, LOOK_EVERY_MS);
  for (const event of ['end', 'close']) request.once(event, () => clearInterval(look));
}
