/** `flowhook webhooks listen`: forwards the events of a server to a local URL, signed, for development. */
import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { type Call, Flowhook, FlowhookError } from '../../../client/src/flowhook-client.ts';
import { canonicalEvent, EVENT_TYPES, type EventType, eventNamesMistake } from '../../model/event.ts';
import { MAX_EVENTS, urlMistake } from '../../model/webhook.ts';
import { serviceUrl } from '../../net/host.ts';
import { durationWords } from '../../std/amounts.ts';
import { parseExactly } from '../../std/exact-json.ts';
import { VERSION } from '../../std/version.ts';
import { signatureHeaders } from '../../webhooks/sign.ts';
import type { Command } from '../command.ts';
import { UsageError } from '../exit.ts';
import { configOf, type Options } from '../options.ts';
import { keyOf, type Profile, serverOf } from '../profiles.ts';
import { print, say, untilInterrupted, warn } from '../terminal.ts';

const CTRL_C = '\u0003';
const WAIT_S = 25;
const LIMIT = 100;
/** The timeout of a request is longer than `WAIT_S`, because the server may wait for events for `WAIT_S` seconds. */
const TIMEOUT_MS = 40_000;
/** The pause between requests while the server is unreachable. */
const RETRY_MS = 1_000;
/** The maximum timeout of a webhook. */
const FORWARD_MS = 30_000;

export function addListen(webhooks: Command): void {
  webhooks
    .command('listen')
    .description('forward the events of a server to a local URL, signed, until Ctrl-C')
    .withExamples('webhooks listen --forward-to http://127.0.0.1:9000/hook --print')
    .requiredOption('--forward-to <url>', 'URL of your receiver, such as http://127.0.0.1:9000/hook')
    .option(
      '--url <url>',
      'URL of the server (default: FLOWHOOK_URL, else the host and port in the settings)',
    )
    .option('--key <key>', 'API key with the scope read (default: FLOWHOOK_KEY)')
    .option('--profile <name>', 'use a server saved by `flowhook login` (default: FLOWHOOK_PROFILE)')
    .option('--workflow <id>', 'only events of this workflow')
    .option('--events <names>', 'only these events, comma-separated (default: all events)')
    .withValues('--events', EVENT_TYPES)
    .option('--secret <whsec>', 'signing secret (default: a new one, printed at the start)')
    .option('--print', 'print the body of each event')
    .option('--resend <event>', 'forward only the event with this id, once')
    .option('--json', 'print JSON, one object per line')
    .addHelpText(
      'after',
      '\nOn a terminal, press r to send the last event again. Failed requests are not retried.\n' +
        'If the server is unreachable, the command waits, and then forwards the events that it missed.\n' +
        'Exit codes: 0 ended by Ctrl-C (with --resend: delivered), 1 failed, 3 no such event, 4 key rejected.',
    )
    .action(listen);
}

/** An event from a server, with its parsed fields and its original body. */
interface WireEvent {
  fields: { id: string; type: string; sequence: number; workflowId?: string };
  body: string;
}

async function listen(options: Options): Promise<void> {
  const forwardTo = urlFrom('--forward-to', options.forwardTo);
  const server = serverFrom(options);
  const client = new Flowhook({ ...server, retries: 0, timeoutMs: TIMEOUT_MS });
  const { secret, key } = secretFrom(options.secret);
  const isWanted = filterFrom(options);
  const forward = async (event: WireEvent) => {
    const result = await forwardEvent(event, { url: forwardTo, key });
    report(event, result, options);
    return result;
  };
  // The secret is printed even with --quiet, because the receiver needs it.
  warn(`Signing secret: ${secret}`);

  if (options.resend !== undefined) {
    const path = `/v1/events/${encodeURIComponent(String(options.resend))}`;
    const fields = await read<WireEvent['fields']>(client, { path });
    const { isDelivered } = await forward({ fields, body: JSON.stringify(fields) });
    process.exitCode = isDelivered ? 0 : 1;
    return;
  }

  const interrupted = untilInterrupted({ isEnd: true });
  let last: WireEvent | undefined;
  const leaveKeys = listenForKeys({
    resend: () => (last === undefined ? say('There is no event to send again yet') : void forward(last)),
    end: () => process.kill(process.pid, 'SIGINT'),
  });
  const onReady = () =>
    say(
      `Forwarding events of ${server.url} to ${forwardTo}. Press Ctrl-C to stop${process.stdin.isTTY ? ', or r to send the last event again' : ''}`,
    );
  try {
    for await (const event of followEvents(client, { server, signal: interrupted.signal, onReady })) {
      if (!isWanted(event)) continue;
      last = event;
      await forward(event);
    }
  } finally {
    leaveKeys();
    interrupted.clear();
  }
}

/** Yields new events until the signal is aborted, and continues after a restart of the server. */
async function* followEvents(
  client: Flowhook,
  { server, signal, onReady }: { server: Profile; signal: AbortSignal; onReady(): void },
): AsyncGenerator<WireEvent> {
  const ask = (query: NonNullable<Call['query']>) =>
    read<{ events: WireEvent['fields'][]; next: number }>(client, { path: '/v1/events', query, signal });
  let after: number | undefined;
  let isAway = false;
  while (!signal.aborted) {
    try {
      // After an outage, the request does not wait for events, so that the command notices immediately that the server
      // is back.
      const wait = isAway ? 0 : WAIT_S;
      const { events, next } = await ask(
        after === undefined ? { after: 'now' } : { after, limit: LIMIT, wait },
      );
      if (isAway) say('The server is reachable again');
      isAway = false;
      if (after === undefined) onReady();
      if (after === undefined || events.length > 0) after = next;
      else {
        // A server with a new database numbers its events from 1 again. Reading from the old position would skip these
        // events.
        const { next: newest } = await ask({ after: 'now' });
        if (newest < after) {
          say(
            `The server has a new database: its newest event is #${newest}, not #${after}. Continuing from #${newest}`,
          );
          after = newest;
        }
      }
      for (const fields of events) yield { fields, body: JSON.stringify(fields) };
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof FlowhookError)) throw error;
      const { status, message } = error;
      if (status !== 0 && status < 500 && status !== 429) throw error;
      if (!isAway) {
        const what = status === 0 ? 'is unreachable' : `returned an error: ${message}`;
        say(`The server ${server.url} ${what}. Retrying every second`);
      }
      isAway = true;
      await pause(RETRY_MS, undefined, { signal }).catch(() => {});
    }
  }
}

/**
 * Parses a response without losing the digits of numbers that a double cannot represent, because a signature covers
 * every byte of an event.
 */
async function read<T>(client: Flowhook, call: Call): Promise<T> {
  const text = await (await client.request(call)).text();
  return parseExactly(text) as T;
}

interface Forwarded {
  isDelivered: boolean;
  status: number | null;
  /** The reason why the receiver did not respond; null if it responded with any status. */
  error: string | null;
  durationMs: number;
}

/**
 * Posts one event to a local receiver, signed like a delivery. Failures and redirects are returned as results, not
 * thrown as errors.
 */
async function forwardEvent(
  { fields, body }: WireEvent,
  { url, key }: { url: string; key: Uint8Array },
): Promise<Forwarded> {
  const startMs = performance.now();
  const timestamp = Math.floor(Date.now() / 1_000);
  const plain = new URL(url);
  plain.username = plain.password = '';
  try {
    const response = await fetch(plain, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'user-agent': `flowhook/${VERSION} listen`,
        'webhook-event': fields.type,
        'webhook-attempt': '1',
        ...basic(url),
        ...(await signatureHeaders({ id: fields.id, timestamp, body }, { secrets: [key], privateKey: null })),
      },
      body,
      redirect: 'manual',
      signal: AbortSignal.timeout(FORWARD_MS),
    });
    await response.body?.cancel();
    const durationMs = performance.now() - startMs;
    return { isDelivered: response.ok, status: response.status, error: null, durationMs };
  } catch (error) {
    const durationMs = performance.now() - startMs;
    return { isDelivered: false, status: null, error: whyUnsent(error), durationMs };
  }
}

function whyUnsent(error: unknown): string {
  const { name, message, cause } = error as Error;
  if (name === 'TimeoutError') return `no response within ${FORWARD_MS / 1_000} s`;
  const { code } = (cause ?? {}) as NodeJS.ErrnoException;
  if (code === 'ECONNREFUSED') return 'connection refused: start your receiver';
  return code ?? (cause instanceof Error ? cause.message : message);
}

/** Converts a user and password in the URL to an `authorization` header, as deliveries do. */
function basic(url: string): Record<string, string> {
  const { username, password } = new URL(url);
  if (username === '' && password === '') return {};
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return { authorization: `Basic ${Buffer.from(pair).toString('base64')}` };
}

function report(event: WireEvent, result: Forwarded, options: Options): void {
  const { id, type, sequence, workflowId } = event.fields;
  const { status, error, durationMs } = result;
  const line = [
    new Date().toISOString(),
    `#${sequence}`,
    type,
    workflowId ?? '-',
    id,
    `→ ${error ?? status}`,
    durationWords(durationMs),
  ];
  const body = options.print === true ? [JSON.stringify(event.fields, null, 2)] : [];
  print(options, { event: event.fields, status, error, durationMs }, [line.join('  '), ...body]);
}

/** Reads single keys on a terminal. In raw mode, Ctrl-C is read as a key and does not cause a signal. */
function listenForKeys(on: { resend(): void; end(): void }): () => void {
  const { stdin } = process;
  if (stdin.isTTY !== true) return () => {};
  const onData = (text: string) => {
    if (text === 'r') on.resend();
    if (text === 'q' || text === CTRL_C) on.end();
  };
  stdin.setRawMode(true).setEncoding('utf8').on('data', onData);
  return () => {
    stdin.off('data', onData);
    stdin.setRawMode(false).pause();
  };
}

function serverFrom(options: Options): Profile {
  const named = serverOf(options);
  if (named !== undefined) return { ...named, url: named.url.replace(/\/+$/, '') };
  const config = configOf({});
  const own = serviceUrl({ ...config, isSecure: config.tlsCert !== undefined });
  return { url: own, key: keyOf(options, config.environment) };
}

function urlFrom(flag: string, value: unknown): string {
  const mistake = urlMistake(value)?.replace('`webhookUrl`', flag);
  if (mistake !== undefined) throw new UsageError(mistake);
  return String(value);
}

function secretFrom(given: unknown): { secret: string; key: Buffer } {
  const secret = given === undefined ? `whsec_${randomBytes(32).toString('base64')}` : String(given);
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  if (!secret.startsWith('whsec_') || key.length < 24) {
    throw new UsageError('--secret must be `whsec_`, followed by at least 24 bytes encoded as base64');
  }
  return { secret, key };
}

/**
 * Returns the event names in `--events`; all event names if the flag is missing.
 *
 * @throws UsageError if a name is not the name of an event
 */
export function eventNames(options: Options): string[] {
  const names = String(options.events ?? '*')
    .split(',')
    .map((name) => name.trim());
  if (names.length > MAX_EVENTS) throw new UsageError(`--events takes at most ${MAX_EVENTS} names`);
  const mistake = eventNamesMistake(names);
  if (mistake !== undefined) throw new UsageError(`--events: ${mistake}`);
  return names;
}

function filterFrom(options: Options): (event: WireEvent) => boolean {
  const types = eventNames(options).map(canonicalEvent);
  return ({ fields: { type, workflowId } }) =>
    (types.includes('*') || types.includes(type as EventType)) &&
    (options.workflow === undefined || workflowId === options.workflow);
}
