/** `flowhook webhooks listen`: forwards the events of a server to a local address, signed, for development. */
import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { type Command, Option } from 'commander';
import { type Call, Flowhook, FlowhookError } from 'flowhook-client';
import { canonicalEvent, type EventType, eventNamesMistake } from '../../model/event.ts';
import { parseExactly } from '../../model/record.ts';
import { MAX_EVENTS, urlMistake } from '../../model/webhook.ts';
import { serviceUrl } from '../../net/host.ts';
import { durationWords } from '../../std/amounts.ts';
import { VERSION } from '../../std/version.ts';
import { signatureHeaders } from '../../webhooks/sign.ts';
import { UsageError } from '../exit.ts';
import { configOf, type Options } from '../options.ts';
import { keyOf, type Profile, serverOf } from '../profiles.ts';
import { print, say, untilInterrupted, warn } from '../terminal.ts';

const CTRL_C = '\u0003';
const WAIT_S = 25;
const LIMIT = 100;
/** The timeout of a request, which the server may hold for `WAIT_S`. */
const ANSWER_MS = 40_000;
const AWAY_MS = 1_000;
/** The longest timeout that a webhook may have. */
const FORWARD_MS = 30_000;

export function addListen(webhooks: Command): void {
  webhooks
    .command('listen')
    .description('forward the events of a server to a local address, signed, until Ctrl-C')
    .requiredOption('--forward-to <url>', 'where your receiver listens: http://127.0.0.1:9000/hook')
    .option('--url <url>', 'the server (default: FLOWHOOK_URL, else the address and port of the settings)')
    .addOption(new Option('--server <url>', 'the same as --url').hideHelp())
    .option('--key <key>', 'an API key with the scope read (default: the variable FLOWHOOK_KEY)')
    .option('--profile <name>', 'a server saved by `flowhook login` (or FLOWHOOK_PROFILE)')
    .option('--workflow <id>', 'only events of this workflow')
    .option('--events <names>', 'only these events, comma-separated (default: every event)')
    .option('--secret <whsec>', 'sign with this secret (default: a new one, printed at the start)')
    .option('--print', 'print the body of each event')
    .option('--resend <event>', 'forward only this event, once')
    .option('--json', 'print JSON, one object per line')
    .addHelpText(
      'after',
      '\nOn a terminal the key r sends the last event again. An event that your receiver refuses is not retried.\n' +
        'While the server is unreachable this waits, then continues with what has happened meanwhile.\n' +
        'Exit codes: 0 ended by Ctrl-C (with --resend: delivered), 1 failed, 3 no such event, 4 the key was refused.',
    )
    .action(listen);
}

/** An event: its fields, and its body as it was sent. */
interface WireEvent {
  fields: { id: string; type: string; sequence: number; workflowId?: string };
  body: string;
}

async function listen(options: Options): Promise<void> {
  const forwardTo = urlFrom('--forward-to', options.forwardTo);
  const server = serverFrom(options);
  const client = new Flowhook({ ...server, retries: 0, timeoutMs: ANSWER_MS });
  const { secret, key } = secretFrom(options.secret);
  const isWanted = filterFrom(options);
  const forward = async (event: WireEvent) => {
    const result = await forwardEvent(event, { url: forwardTo, key });
    report(event, result, options);
    return result;
  };
  // Not by `say`: even with --quiet, the receiver needs the secret.
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
    resend: () => (last === undefined ? say('There is nothing to send again yet') : void forward(last)),
    end: () => process.kill(process.pid, 'SIGINT'),
  });
  const onReady = () =>
    say(
      `Listening for events of ${server.url}, forwarding to ${forwardTo}. Ctrl-C ends${process.stdin.isTTY ? ', r sends the last one again' : ''}`,
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

/** Yields events from now on until the signal is aborted, also across restarts of the server. */
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
      // After an outage ask without waiting, to notice at once that the server is back.
      const wait = isAway ? 0 : WAIT_S;
      const { events, next } = await ask(
        after === undefined ? { after: 'now' } : { after, limit: LIMIT, wait },
      );
      if (isAway) say('The server is there again');
      isAway = false;
      if (after === undefined) onReady();
      if (after === undefined || events.length > 0) after = next;
      else {
        // A server with a new database counts from 1 again: with the old position, no event would arrive until then.
        const { next: newest } = await ask({ after: 'now' });
        if (newest < after) {
          say(
            `The newest event of the server is #${newest}, before #${after}: it has another database now. Going on from there`,
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
        const what = status === 0 ? 'cannot be reached' : `cannot answer: ${message}`;
        say(`The server ${server.url} ${what}. Trying again until it is there`);
      }
      isAway = true;
      await pause(AWAY_MS, undefined, { signal }).catch(() => {});
    }
  }
}

/** An answer with its numbers as they are, also those that a double cannot hold: what is forwarded is compared by bytes. */
async function read<T>(client: Flowhook, call: Call): Promise<T> {
  const text = await (await client.request(call)).text();
  return parseExactly(text) as T;
}

interface Forwarded {
  isDelivered: boolean;
  status: number | null;
  /** Why there was no answer; null when there was one, whatever it said. */
  error: string | null;
  durationMs: number;
}

/** Posts one event to a local receiver, signed as a delivery is. A failure is a result, and so is a redirect. */
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
  if (name === 'TimeoutError') return `no answer within ${FORWARD_MS / 1_000} s`;
  const { code } = (cause ?? {}) as NodeJS.ErrnoException;
  if (code === 'ECONNREFUSED') return 'nothing listens there: start your receiver';
  return code ?? (cause instanceof Error ? cause.message : message);
}

/** A user and password in the URL become a header, as they do for a delivery. */
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

/** Reads single keys on a terminal; in raw mode Ctrl-C arrives as a key as well. */
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
  const { server, url = server, ...rest } = options;
  const given = { ...rest, ...(url === undefined ? {} : { url: urlFrom('--url', url) }) };
  const named = serverOf(given);
  if (named !== undefined) return { ...named, url: named.url.replace(/\/+$/, '') };
  const config = configOf({});
  const own = serviceUrl({ ...config, isSecure: config.tlsCert !== undefined });
  return { url: own, key: keyOf(given, config.environment) };
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
    throw new UsageError('--secret must be whsec_ and at least 24 bytes as base64');
  }
  return { secret, key };
}

/**
 * The names of `--events`; every event when the flag is missing.
 *
 * @throws UsageError for a name that never fires: a subscription to it would hear nothing
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
