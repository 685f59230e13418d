/**
 * Receives requests for inspectors: limits their number, stores them, explains their signatures, and returns a status.
 */

import { createHmac, createPublicKey, timingSafeEqual, verify } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { Problem } from '../model/error.ts';
import { type InspectedRequest, type InspectedSignature, MAX_INSPECTED } from '../model/inspector.ts';
import type { Clock } from '../std/clock.ts';
import { Shares } from '../std/fair-share.ts';
import { addressWarning } from './destination-words.ts';
import { openSecretKey, type WebhookDeps } from './sealed.ts';

/**
 * Maximum number of concurrent requests of all inspectors, shared by teams. Each request uses at most 64 KiB of memory.
 */
const MAX_CONCURRENT = 256;
/** The rate limit of one inspector, enforced by a token bucket. */
const BURST = 100;
const PER_SECOND = 50;
/** Maximum number of inspectors whose token buckets are kept in memory. */
const MAX_BUCKETS = 10_000;

/** A request whose body has not been read. */
interface Arrived {
  method: string;
  /** Path and query. */
  path: string;
  headers: Record<string, string>;
  /** Reads the first 64 KiB of the body. `size` is the size of the whole body in bytes. */
  read(): Promise<{ bytes: Buffer; size: number; truncated: boolean }>;
  /** Called when only the delay remains. */
  onWait?(): void;
  /** Aborted when the sender disconnects. */
  gone: AbortSignal;
}

export class Inspection {
  readonly #deps: Pick<WebhookDeps, 'store' | 'sealer' | 'policy' | 'resolver'>;
  readonly #publicUrl: () => string;
  readonly #elapsed: Clock;
  /** Running requests by team. */
  readonly #underWay = new Shares();
  /** Token buckets by inspector. The least recently used bucket comes first. */
  readonly #buckets = new Map<string, { tokens: number; atMs: number }>();
  readonly #waiting = new Set<AbortController>();
  #closed = false;

  /** @param options.elapsed a monotonic clock, in milliseconds */
  constructor(
    options: Pick<WebhookDeps, 'store' | 'sealer' | 'policy' | 'resolver'> & {
      publicUrl(): string;
      elapsed?: Clock;
    },
  ) {
    this.#deps = options;
    this.#publicUrl = options.publicUrl;
    this.#elapsed = options.elapsed ?? (() => performance.now());
  }

  /** The URL at which an inspector receives requests. */
  urlOf(id: string): string {
    return `${this.#publicUrl()}/inspect/${id}`;
  }

  /** Why the address policy will reject deliveries to inspectors, as a sentence; null if it will not. */
  async refusal(): Promise<string | null> {
    const remark = await addressWarning(this.#deps, this.#publicUrl());
    if (remark === '') return null;
    return `${remark} Inspectors use the address in FLOWHOOK_PUBLIC_URL, or by default the address on which the service listens`;
  }

  /**
   * Stores a request, and resolves with the response status after the delay configured for the inspector.
   *
   * @throws Problem `inspector_not_found`, `overloaded`
   */
  async receive(id: string, arrived: Arrived): Promise<number> {
    const { store } = this.#deps;
    const inspector = await store.inspectors.find({ id });
    if (inspector === undefined) throw new Problem('inspector_not_found');
    const { teamId } = inspector;
    this.#admit(id, teamId);
    try {
      const { request, workflowId } = await this.#judge(teamId, id, arrived);
      const kept = await store.inspectors.storeRequest({
        teamId,
        id,
        workflowId,
        request,
        most: MAX_INSPECTED,
      });
      if (kept === undefined) throw new Problem('inspector_not_found');
      if (inspector.delayMs > 0) arrived.onWait?.();
      await this.#wait(inspector.delayMs, arrived.gone);
      return inspector.status;
    } finally {
      this.#underWay.remove(teamId);
    }
  }

  /** Ends all delays. */
  close(): void {
    this.#closed = true;
    for (const one of this.#waiting) one.abort();
  }

  async #judge(
    teamId: string,
    id: string,
    { method, path, headers, read }: Arrived,
  ): Promise<{ request: InspectedRequest; workflowId: string | null }> {
    const { bytes, size, truncated } = await read();
    const message = { teamId, url: this.urlOf(id), headers, body: bytes, truncated };
    const signature = await inspectSignature(this.#deps, message);
    const body = bytes.toString('utf8');
    return {
      request: { method, path, headers, body, bodyBytes: size, truncated, signature },
      workflowId: workflowOf(body),
    };
  }

  #admit(id: string, teamId: string): void {
    const nowMs = this.#elapsed();
    const before = this.#buckets.get(id) ?? { tokens: BURST, atMs: nowMs };
    const tokens = Math.min(BURST, before.tokens + ((nowMs - before.atMs) / 1_000) * PER_SECOND);
    if (tokens < 1 || !this.#underWay.admits(teamId, MAX_CONCURRENT)) {
      throw new Problem('overloaded', {
        sentence: `Inspectors are overloaded: one inspector accepts ${PER_SECOND} requests per second, and all inspectors together accept ${MAX_CONCURRENT} concurrent requests. Try again shortly`,
        headers: { 'retry-after': '1' },
      });
    }
    this.#underWay.add(teamId);
    this.#buckets.delete(id);
    this.#buckets.set(id, { tokens: tokens - 1, atMs: nowMs });
    const [oldest] = this.#buckets.keys();
    if (this.#buckets.size > MAX_BUCKETS && oldest !== undefined) this.#buckets.delete(oldest);
  }

  async #wait(delayMs: number, gone: AbortSignal): Promise<void> {
    if (delayMs === 0 || this.#closed || gone.aborted) return;
    const cut = new AbortController();
    const leave = () => cut.abort();
    gone.addEventListener('abort', leave, { once: true });
    this.#waiting.add(cut);
    await pause(delayMs, undefined, { signal: cut.signal }).catch(() => undefined);
    this.#waiting.delete(cut);
    gone.removeEventListener('abort', leave);
  }
}

/** The workflow of the event in a request body, stored so that an erasure from this workflow finds the request. */
function workflowOf(body: string): string | null {
  try {
    const { workflowId } = JSON.parse(body) as { workflowId?: unknown };
    return typeof workflowId === 'string' && !workflowId.includes('\0') && workflowId.isWellFormed()
      ? workflowId
      : null;
  } catch {
    return null;
  }
}

/** Maximum difference between a timestamp and the receiver's clock in seconds, according to Standard Webhooks 1.0. */
const TOLERANCE_S = 300;
/** Maximum number of signatures checked per message. */
const MAX_SIGNATURES = 16;
/** Maximum number of webhooks whose secrets are tried. Trying a secret costs an HMAC of the body. */
const MAX_SIGNERS = 50;

interface InspectedMessage {
  teamId: string;
  /** The URL of the inspector. Webhooks with this URL may have signed the message. */
  url: string;
  headers: Readonly<Record<string, string>>;
  body: Uint8Array;
  /** Whether `body` is truncated. */
  truncated: boolean;
}

type Deps = Pick<WebhookDeps, 'store' | 'sealer'>;

/** Never throws because of the content of the message: anyone may send anything to an inspector. */
async function inspectSignature(deps: Deps, message: InspectedMessage): Promise<InspectedSignature> {
  const { headers, body } = message;
  const missing = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].filter((name) => !headers[name]);
  if (missing.length === 3)
    return judged('absent', 'The request is not signed: it has no header webhook-signature');
  if (missing.length > 0)
    return judged('invalid', `The request has no header ${missing.join(' and no header ')}`);
  if (message.truncated) {
    return judged(
      'invalid',
      'The body is larger than any body that this service sends, so this service did not sign it',
    );
  }
  const { 'webhook-id': id = '', 'webhook-timestamp': timestamp = '' } = headers;
  if (!/^\d{1,12}$/.test(timestamp)) {
    return judged('invalid', 'The header webhook-timestamp is not a number of seconds since 1970');
  }
  const content = Buffer.concat([Buffer.from(`${id}.${timestamp}.`), body]);
  const signatures = (headers['webhook-signature'] ?? '').split(' ').slice(0, MAX_SIGNATURES);
  const webhook = await signerOf(deps, message, { content, signatures: ofVersion(signatures, 'v1') });
  const isOfTeam = await isByTeam(deps, message, { content, signatures: ofVersion(signatures, 'v1a') });
  const by = [
    ...(webhook === undefined ? [] : [`the ${webhook.which} of webhook ${webhook.id} (v1)`]),
    ...(isOfTeam ? ['the key of the team (v1a)'] : []),
  ];
  if (by.length === 0) {
    const sentence =
      'The signature matches neither a webhook secret nor the key of this team: the body or a header was changed in ' +
      'transit, or someone else signed the request';
    return judged('invalid', sentence);
  }
  const webhookId = webhook?.id ?? null;
  const made = `Signed with ${by.join(' and ')}`;
  const ageS = Math.round(deps.store.now() / 1_000) - Number(timestamp);
  if (Math.abs(ageS) <= TOLERANCE_S) return { ...judged('valid', made), webhookId };
  const away = ageS > 0 ? `${ageS} s in the past` : `${-ageS} s in the future`;
  const limit = `receivers reject timestamps that differ from their clock by more than ${TOLERANCE_S} s`;
  return { ...judged('expired', `${made}, but the timestamp is ${away}: ${limit}`), webhookId };
}

function judged(verdict: InspectedSignature['verdict'], message: string): InspectedSignature {
  return { verdict, message, webhookId: null };
}

function ofVersion(signatures: readonly string[], version: string): Buffer[] {
  return signatures
    .filter((one) => one.startsWith(`${version},`))
    .map((one) => Buffer.from(one.slice(version.length + 1), 'base64'));
}

interface Signed {
  content: Buffer;
  signatures: readonly Buffer[];
}

async function signerOf(
  { store, sealer }: Deps,
  { teamId, url, headers }: InspectedMessage,
  { content, signatures }: Signed,
): Promise<{ id: string; which: string } | undefined> {
  if (signatures.length === 0) return undefined;
  const eventId = headers['webhook-id'] ?? '';
  for (const { webhookId, secrets } of await store.inspectors.signers({
    teamId,
    eventId,
    url,
    limit: MAX_SIGNERS,
  })) {
    for (const [age, sealed] of secrets.entries()) {
      let key: Buffer;
      try {
        key = openSecretKey(sealer, { teamId, sealed });
      } catch {
        // The secret was encrypted with another encryption key, so the service cannot sign with it.
        continue;
      }
      const expected = createHmac('sha256', key).update(content).digest();
      const isTheirs = signatures.some(
        (one) => one.length === expected.length && timingSafeEqual(one, expected),
      );
      if (isTheirs) return { id: webhookId, which: age === 0 ? 'secret' : 'secret before the last rotation' };
    }
  }
  return undefined;
}

async function isByTeam(
  { store }: Deps,
  { teamId }: InspectedMessage,
  { content, signatures }: Signed,
): Promise<boolean> {
  if (signatures.length === 0) return false;
  const keys = (await store.teams.signingKeys({ teamId })).map(({ publicKey }) =>
    createPublicKey({
      key: { kty: 'OKP', crv: 'Ed25519', x: Buffer.from(publicKey, 'base64').toString('base64url') },
      format: 'jwk',
    }),
  );
  return signatures.some((one) => one.length === 64 && keys.some((key) => verify(null, content, key, one)));
}
