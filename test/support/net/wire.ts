/** Sends HTTP requests unchanged: nothing is normalized, escaped or added except `host` and `content-length`. */
import assert from 'node:assert/strict';
import { type Agent, request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { connect } from 'node:net';

export interface Sent {
  method: string;
  /** The request target, sent unchanged. */
  path: string;
  /** In order. A name may be repeated. */
  headers?: readonly (readonly [name: string, value: string])[];
  body?: string | Buffer;
}

export interface Got {
  /** The request, as a readable text. */
  sent: string;
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
}

/** Sends a request and reads the whole response. Rejects if the connection is closed before the end. */
export function send(url: string, sent: Sent, agent: Agent): Promise<Got> {
  const { hostname, port, host } = new URL(url);
  const given = sent.headers ?? [];
  const named = (name: string) => given.some(([one]) => one.toLowerCase() === name);
  const body = sent.body === undefined ? undefined : Buffer.from(sent.body);
  const framed = named('content-length') || named('transfer-encoding');
  const headers = [
    ...(named('host') ? [] : [['host', host] as const]),
    ...(framed || (body === undefined && sent.method !== 'POST')
      ? []
      : [['content-length', String(body?.length ?? 0)] as const]),
    ...given,
  ].flat();
  return new Promise((resolve, reject) => {
    const request = httpRequest({ hostname, port, method: sent.method, path: sent.path, headers, agent });
    request.on('error', reject);
    request.on('response', (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () =>
        resolve({
          sent: describe(sent),
          status: response.statusCode ?? 0,
          headers: response.headers,
          text: Buffer.concat(chunks).toString(),
        }),
      );
    });
    request.end(body);
  });
}

/** Writes bytes to a new connection and reads until the service closes it: send `connection: close`. */
export function sendBytes(url: string, bytes: string): Promise<Got> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port) });
    const chunks: Buffer[] = [];
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    socket.on('error', reject);
    socket.on('close', () => {
      const [head = '', ...rest] = Buffer.concat(chunks).toString().split('\r\n\r\n');
      const [line = '', ...lines] = head.split('\r\n');
      const headers = Object.fromEntries(
        lines.map((one) => [
          one.slice(0, one.indexOf(':')).toLowerCase(),
          one.slice(one.indexOf(':') + 1).trim(),
        ]),
      );
      const text = rest.join('\r\n\r\n');
      resolve({
        sent: JSON.stringify(bytes.slice(0, 300)),
        status: Number(line.split(' ')[1]),
        headers,
        text: headers['transfer-encoding'] === 'chunked' ? unchunk(text) : text,
      });
    });
    socket.write(bytes, 'latin1');
  });
}

/** Checks the headers and the body that every response must have. Errors show the request and the response. */
export function assertAnswer(got: Got): void {
  const { status, headers, text } = got;
  const problem = (what: string) => `${what}\n${report(got)}`;
  assert.match(headers['x-request-id'] as string, /^[A-Za-z0-9._-]{1,128}$/, problem('no x-request-id'));
  if (status === 204) {
    assert.equal(text, '', problem('a 204 with a body'));
    return;
  }
  assert.equal(headers['content-type'], 'application/json; charset=utf-8', problem('wrong content-type'));
  if (status === 401) assert.equal(headers['www-authenticate'], 'ApiKey', problem('no www-authenticate'));
  if (status === 405) assert.ok(headers.allow, problem('no allow'));
  if (status >= 400) assert.match(headers['x-error-code'] as string, /^[a-z_]+$/, problem('no x-error-code'));
  if (got.sent.startsWith('HEAD ')) {
    assert.equal(text, '', problem('a body on HEAD'));
    return;
  }
  const body = parsed(got);
  if (status < 400) return;
  assert.deepEqual(Object.keys(body as object), ['error'], problem('not exactly { "error": … }'));
  const { error } = body as { error: unknown };
  assert.ok(typeof error === 'string' && error.length > 0, problem('an empty error'));
  assert.doesNotMatch(error, /\n|node:internal|\.ts\b/, problem('a stack trace'));
}

/** The body as JSON. Errors show the request and the response. */
export function parsed(got: Got): unknown {
  try {
    return JSON.parse(got.text);
  } catch {
    return assert.fail(`the body is not JSON\n${report(got)}`);
  }
}

/** The request and the response, for error messages. */
export function report(got: Got): string {
  return `  sent: ${got.sent}\n  got:  ${got.status} ${got.text.slice(0, 500)}\n        ${JSON.stringify(got.headers)}`;
}

function describe({ method, path, headers = [], body }: Sent): string {
  const target = path.length > 300 ? `${path.slice(0, 300)}… (${path.length} characters)` : path;
  const lines = headers.map(([name, value]) => `\n        ${name}: ${value.slice(0, 100)}`).join('');
  return `${method} ${target}${lines}${body === undefined ? '' : `\n        ${body.toString().slice(0, 300)}`}`;
}

function unchunk(text: string): string {
  let rest = Buffer.from(text);
  const parts: Buffer[] = [];
  for (;;) {
    const line = rest.indexOf('\r\n');
    const size = Number.parseInt(rest.subarray(0, line).toString(), 16);
    if (!(size > 0)) return Buffer.concat(parts).toString();
    parts.push(rest.subarray(line + 2, line + 2 + size));
    rest = rest.subarray(line + 2 + size + 2);
  }
}
