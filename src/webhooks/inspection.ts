/** Receives requests for inspectors: limits them, explains their signatures, stores them, and answers as configured. */

import { createHmac, createPublicKey, timingSafeEqual, verify } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { Problem } from '../model/error.ts';
import { type InspectedRequest, type InspectedSignature, MAX_INSPECTED } from '../model/inspector.ts';
import type { Clock } from '../std/clock.ts';
import { Shares } from '../std/fair-share.ts';
import { openSecretKey, type WebhookDeps } from './sealed.ts';
import { addressWarning } from './subscribe.ts';

/** Concurrent requests of all inspectors, each with at most 64 KiB in memory: teams share them. */
const MAX_AT_ONCE = 256;
/** The rate limit of one inspector: a token bucket. */
const BURST = 100;
const PER_SECOND = 50;
/** Inspectors whose token bucket is remembered. */
const MAX_BUCKETS = 10_000;

/** A request whose body has not been read. */
interface Arrived {
  method: string;
  /** Path and query. */
  path: string;
  headers: Record<string, string>;
  /** Reads the body, at most 64 KiB of it. `size` is the size of the whole body in bytes. */
  read(): Promise<{ bytes: Buffer; size: number; truncated: boolean }>;
  /** Called when nothing is left to do but to wait for the delay. */
  onWait?(): void;
  /** Aborted when the sender disconnects. */
  gone: AbortSignal;
}

export class Inspection {
  readonly #deps: Pick<WebhookDeps, 'store' | 'sealer' | 'policy' | 'resolver'>;
  readonly #publicUrl: () => string;
  readonly #elapsed: Clock;
  /** Requests under way, by team. */
  readonly #underWay = new Shares();
  /** Token buckets by inspector, least recently used first. */
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

  /** A sentence that says why deliveries to inspectors will be refused; null when they will not. */
  async refusal(): Promise<string | null> {
    const remark = await addressWarning(this.#deps, this.#publicUrl());
    if (remark === '') return null;
    return `${remark} The address of inspectors is FLOWHOOK_PUBLIC_URL, or else where the service listens`;
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
    if (tokens < 1 || !this.#underWay.admits(teamId, MAX_AT_ONCE)) {
      throw new Problem('overloaded', {
        sentence: `An inspector takes ${PER_SECOND} requests a second, and all together ${MAX_AT_ONCE} at once, which teams share. Try again shortly`,
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

/** The workflow of the event in a body, so that erasing from that workflow finds it. */
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

/** How far from their clock receivers accept a timestamp: Standard Webhooks 1.0. */
const TOLERANCE_S = 300;
/** Signatures of a message that are checked; nobody sends as many. */
const MAX_SIGNATURES = 16;
/** Webhooks whose secrets are tried; each costs an HMAC of the body. */
const MAX_SIGNERS = 50;

interface InspectedMessage {
  teamId: string;
  /** The URL of the inspector: webhooks with this URL may have signed it. */
  url: string;
  headers: Readonly<Record<string, string>>;
  body: Uint8Array;
  /** Whether `body` is only the start of the body. */
  truncated: boolean;
}

type Deps = Pick<WebhookDeps, 'store' | 'sealer'>;

/** Never throws because of the message: anybody may send anything to an inspector. */
async function inspectSignature(deps: Deps, message: InspectedMessage): Promise<InspectedSignature> {
  const { headers, body } = message;
  const missing = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].filter((name) => !headers[name]);
  if (missing.length === 3) return judged('absent', 'It is not signed: it has no header webhook-signature');
  if (missing.length > 0) return judged('invalid', `It has no header ${missing.join(' and no header ')}`);
  if (message.truncated) {
    return judged(
      'invalid',
      'The body is longer than anything that is sent from here: nobody here signed it',
    );
  }
  const { 'webhook-id': id = '', 'webhook-timestamp': timestamp = '' } = headers;
  if (!/^\d{1,12}$/.test(timestamp)) {
    return judged('invalid', 'The header webhook-timestamp is no number of seconds since 1970');
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
      'No webhook of this team and no key of it made this signature: the body or a header was changed on the way, ' +
      'or somebody else signed it';
    return judged('invalid', sentence);
  }
  const webhookId = webhook?.id ?? null;
  const made = `Signed with ${by.join(' and ')}`;
  const ageS = Math.round(deps.store.now() / 1_000) - Number(timestamp);
  if (Math.abs(ageS) <= TOLERANCE_S) return { ...judged('valid', made), webhookId };
  const away = ageS > 0 ? `${ageS} s ago` : `for ${-ageS} s from now`;
  const refused = `receivers refuse what is more than ${TOLERANCE_S} s away from their clock`;
  return { ...judged('expired', `${made}, but ${away}: ${refused}`), webhookId };
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
        // Sealed with another encryption key, with which it signs nothing either.
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
