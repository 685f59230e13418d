/**
 * `npm run soak -- --overload [--minutes N]`: sends three times as many requests as the service can handle, for N minutes
 * that alternate with N minutes of rest. First, 128 connections that each wait for their responses determine the capacity.
 * Then up to 1,000 open connections send three times that rate, and at rest a hundredth of it. Writes, reads of single objects and whole reads are mixed. Every few seconds the program prints the accepted and
 * refused requests, the durations of accepted requests since they were sent (without the wait for a connection), and the
 * server's memory; at the end it compares with the start, and the last minutes with the first. Nothing here passes or fails.
 */
import { startFlowhook } from './flowhook.ts';
import { OpenLoop, type RawRequest, type TimedResponse } from './open-loop.ts';

const CONNECTIONS = 128;
const TIMES = 3;
const AT_REST = 0.01;
const MINUTE_MS = 60_000;
/** Further requests wait for a connection: a limit of this program, not of the service. */
const MAX_CONNECTIONS = 1_000;
const FIND_MS = 5_000;
const WINDOW_MS = 5_000;
const WEBHOOKS = 50;

export async function soakOverload({ minutes }: { minutes: number }): Promise<void> {
  const flowhook = await startFlowhook({ 'default/people.yaml': 'source: { type: push }\n' });
  const call = async (method: string, path: string, body: unknown) => {
    const response = await fetch(flowhook.url + path, {
      method,
      headers: { ...flowhook.headers, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    if (response.status !== 200) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    await response.text();
    return response.headers.get('x-webhook-id') ?? '';
  };
  const people = Array.from({ length: 200 }, (_, n) => ({
    id: n,
    name: `Person ${n}`,
    note: 'x'.repeat(60),
  }));
  await call('POST', '/v1/workflows/people/push', people);
  const ids: string[] = [];
  for (let n = 0; n < WEBHOOKS; n += 1) {
    const made = { workflowId: 'people', webhookUrl: `http://127.0.0.1:9/${n}`, events: ['workflow_failed'] };
    ids.push(await call('POST', '/v1/integrations/webhooks/subscribe', made));
  }
  const requests = wire(flowhook.url, flowhook.headers, ids);
  let seen = new Window();
  let next = 0;
  const loop = new OpenLoop({
    url: flowhook.url,
    next: () => requests[next++ % requests.length] as RawRequest,
    onResponse: (response) => seen.add(response),
    maxConnections: MAX_CONNECTIONS,
  });

  await loop.warm();
  await loop.closed(CONNECTIONS, FIND_MS);
  seen = new Window();
  await loop.closed(CONNECTIONS, FIND_MS);
  const atCapacity = seen;
  const capacity = (atCapacity.accepted.length * 1_000) / FIND_MS;
  const before = (await flowhook.memory()).nowMb;
  console.log(`capacity ${capacity.toFixed(0)}/s: ${atCapacity.words()}; memory ${before.toFixed(0)} MB`);
  await flowhook.resetPeak();

  const whole = new Window();
  const rows: Record<'overload' | 'rest', string[]> = { overload: [], rest: [] };
  for (let minute = 1; minute <= minutes; minute += 1) {
    for (const [what, times] of [
      ['overload', TIMES],
      ['rest', AT_REST],
    ] as const) {
      const all = new Window();
      for (let at = 0; at < MINUTE_MS; at += WINDOW_MS) {
        seen = new Window();
        await loop.at(capacity * times, WINDOW_MS);
        const { nowMb } = await flowhook.memory();
        const state = `memory ${nowMb.toFixed(0)} MB, ${loop.open} open, ${loop.broken} broken`;
        console.log(`minute ${minute}, ${what}, ${(at + WINDOW_MS) / 1_000} s: ${seen.words()}; ${state}`);
        all.join(seen);
      }
      loop.forget();
      await loop.drained();
      if (what === 'overload') whole.join(all);
      rows[what].push(`${all.words()}; memory ${(await flowhook.memory()).nowMb.toFixed(0)} MB`);
    }
  }
  for (const [what, lines] of Object.entries(rows)) {
    for (const [at, line] of lines.entries()) console.log(`${what}, minute ${at + 1}: ${line}`);
  }
  const { peakMb } = await flowhook.memory();
  seen = new Window();
  const from = performance.now();
  await loop.closed(CONNECTIONS, FIND_MS);
  const after = (seen.accepted.length * 1_000) / (performance.now() - from);
  loop.end();
  console.log(`in overload: ${whole.kinds()}; at capacity: ${atCapacity.kinds()}`);
  console.log(
    [
      `accepted in overload ÷ capacity ${(whole.accepted.length / (capacity * minutes * 60)).toFixed(2)}`,
      `p50 ÷ at capacity ${(whole.at(0.5) / atCapacity.at(0.5)).toFixed(2)}`,
      `p99 ÷ at capacity ${(whole.at(0.99) / atCapacity.at(0.99)).toFixed(2)}`,
      `peak memory ${peakMb.toFixed(0)} MB`,
      `refused without retry-after ${whole.mute}, other responses ${whole.others}, broken ${loop.broken}`,
      `afterwards ${after.toFixed(0)}/s, ${seen.refused} refused`,
    ].join('; '),
  );
  await flowhook.stop();
}

/** Of ten requests, four change a webhook, five read one object or a page, and one reads all records. */
function wire(url: string, headers: Record<string, string>, ids: readonly string[]): RawRequest[] {
  const { host } = new URL(url);
  const given = Object.entries({ host, ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
  const get = (kind: string, path: string): RawRequest => ({
    kind,
    bytes: Buffer.from(`GET ${path} HTTP/1.1\r\n${given.join('')}\r\n`),
  });
  return ids.flatMap((id, n) => {
    const body = JSON.stringify({ timeoutMs: 1_000 + n });
    const bytes = Buffer.from(
      `PATCH /v1/integrations/webhooks/${id} HTTP/1.1\r\n${given.join('')}content-type: application/json\r\n` +
        `content-length: ${body.length}\r\n\r\n${body}`,
    );
    const patch = { kind: 'write', bytes };
    const one = get('read', `/v1/integrations/webhooks/${id}`);
    const jobs = get('page', '/v1/jobs?limit=10');
    const whole = get('whole read', '/v1/workflows/people/data');
    return [patch, one, patch, jobs, patch, one, patch, jobs, one, whole];
  });
}

/** The responses of a period. */
class Window {
  /** Durations in milliseconds. */
  readonly accepted: number[] = [];
  readonly #byKind = new Map<string, number[]>();
  readonly #refused: number[] = [];
  mute = 0;
  others = 0;

  get refused(): number {
    return this.#refused.length;
  }

  add({ kind, status, hasRetryAfter, sentMs: ms }: TimedResponse): void {
    if (status === 200) this.#accept(kind, ms);
    else if (status === 503) this.#refused.push(ms);
    else this.others += 1;
    if (status === 503 && !hasRetryAfter) this.mute += 1;
  }

  join(other: Window): void {
    for (const [kind, all] of other.#byKind) for (const ms of all) this.#accept(kind, ms);
    for (const ms of other.#refused) this.#refused.push(ms);
    this.mute += other.mute;
    this.others += other.others;
  }

  at(share: number): number {
    return quantile(this.accepted, share);
  }

  /** The accepted requests of each kind. */
  kinds(): string {
    return [...this.#byKind]
      .map(([kind, took]) => `${kind} ${took.length}, p99 ${quantile(took, 0.99).toFixed(0)} ms`)
      .join('; ');
  }

  #accept(kind: string, ms: number): void {
    this.accepted.push(ms);
    const ofKind = this.#byKind.get(kind) ?? [];
    this.#byKind.set(kind, ofKind);
    ofKind.push(ms);
  }

  words(): string {
    const ms = (took: readonly number[]) =>
      `p50 ${quantile(took, 0.5).toFixed(1)}, p99 ${quantile(took, 0.99).toFixed(1)} ms`;
    const { refused, others } = this;
    return `accepted ${this.accepted.length} (${ms(this.accepted)}), refused ${refused} (${ms(this.#refused)}), others ${others}`;
  }
}

function quantile(took: readonly number[], share: number): number {
  const sorted = Float64Array.from(took).sort();
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}
