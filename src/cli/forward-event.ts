/** Posts one event to a local receiver, signed as a delivery is. */
import { VERSION } from '../config/version.ts';
import { signatureHeaders } from '../webhooks/sign.ts';
import type { WireEvent } from './follow-events.ts';

/** The longest timeout that a webhook may have. */
const TIMEOUT_MS = 30_000;

export interface Forwarded {
  isDelivered: boolean;
  status: number | null;
  /** Why there was no answer; null when there was one, whatever it said. */
  error: string | null;
  durationMs: number;
}

/** Never rejects: a failure is a result, and so is a redirect, as for a delivery. */
export async function forwardEvent(
  { fields, body }: WireEvent,
  { url, key }: { url: string; key: Uint8Array },
): Promise<Forwarded> {
  const startMs = performance.now();
  const timestamp = Math.floor(Date.now() / 1_000);
  try {
    const response = await fetch(withoutUser(url), {
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
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    await response.body?.cancel();
    const durationMs = performance.now() - startMs;
    return { isDelivered: response.ok, status: response.status, error: null, durationMs };
  } catch (error) {
    const durationMs = performance.now() - startMs;
    return { isDelivered: false, status: null, error: sentenceOf(error), durationMs };
  }
}

function sentenceOf(error: unknown): string {
  const { name, message, cause } = error as Error;
  if (name === 'TimeoutError') return `no answer within ${TIMEOUT_MS / 1_000} s`;
  const { code } = (cause ?? {}) as NodeJS.ErrnoException;
  if (code === 'ECONNREFUSED') return 'nothing listens there: start your receiver';
  return code ?? (cause instanceof Error ? cause.message : message);
}

function withoutUser(url: string): URL {
  const plain = new URL(url);
  plain.username = plain.password = '';
  return plain;
}

/** A user and password in the URL become a header, as they do for a delivery. */
function basic(url: string): Record<string, string> {
  const { username, password } = new URL(url);
  if (username === '' && password === '') return {};
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return { authorization: `Basic ${Buffer.from(pair).toString('base64')}` };
}
