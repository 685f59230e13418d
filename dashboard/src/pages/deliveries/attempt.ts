/** The phases of an attempt, and advice on what to do if it failed. */
import type { DeliveryDetail } from '../../../../client/src/flowhook-client.ts';
import { duration } from '../../parts/format.ts';

export type Attempt = DeliveryDetail['attempts'][number];

export interface Phase {
  name: string;
  /** Milliseconds since the attempt was due. */
  fromMs: number;
  toMs: number;
  /** Where the time was spent: in our queue, on the network, or at the receiver. */
  kind: 'queue' | 'network' | 'receiver';
}

/**
 * The phases of an attempt in order, without those that did not happen: a reused connection needs neither a lookup nor a
 * handshake, and a failed request has no response.
 */
export function phasesOf({ durationMs, timing }: Pick<Attempt, 'durationMs' | 'timing'>): Phase[] {
  if (timing === null) return [];
  const { queuedMs, dnsMs, connectMs, tlsMs, firstByteMs } = timing;
  const phases: Phase[] = [];
  let at = 0;
  const add = (name: string, kind: Phase['kind'], toMs: number | null) => {
    if (toMs === null) return;
    const end = Math.max(at, queuedMs + toMs);
    phases.push({ name, kind, fromMs: at, toMs: end });
    at = end;
  };
  add('Queue', 'queue', 0);
  add('DNS lookup', 'network', dnsMs);
  add('Connection', 'network', connectMs);
  add('TLS handshake', 'network', tlsMs);
  add('First byte', 'receiver', firstByteMs);
  add(firstByteMs === null ? FAILURE : 'Response body', 'receiver', durationMs);
  return phases;
}

/** The last phase of an attempt without a response. */
export const FAILURE = 'Until failure';

/** `573 ms in the queue, 3 ms to respond`. */
export function timingWords({ durationMs, timing }: Pick<Attempt, 'durationMs' | 'timing'>): string {
  const took = `${duration(durationMs)} ${timing?.firstByteMs === null ? 'until it failed' : 'to respond'}`;
  return timing === null ? duration(durationMs) : `${duration(timing.queuedMs)} in the queue, ${took}`;
}

export function reusedConnection({ timing }: Pick<Attempt, 'timing'>): boolean {
  return timing !== null && timing.dnsMs === null && timing.connectMs === null && timing.firstByteMs !== null;
}

const HINTS: Record<Exclude<Attempt['outcome'], 'ok' | 'http'>, string> = {
  timeout:
    'Respond first and do the work afterwards, or raise the timeout in the settings of the webhook (at most 30 s).',
  dns: 'Check the spelling of the host name, and whether the machine that runs Flowhook can resolve it.',
  connect:
    'Check that the receiver is running, and that it accepts connections from other machines on this port.',
  tls: 'The TLS handshake failed. Check the certificate of the receiver.',
  blocked:
    'This instance blocks webhooks to private networks. Its operator can allow this address with `FLOWHOOK_ALLOW_NETWORKS`.',
  protocol:
    'The receiver, or a proxy in front of it, closed the connection or sent something other than HTTP.',
  smtp: 'The mail server did not take the mail. Its reply says why.',
};

/** What to do about a failed attempt; undefined if it succeeded. */
export function hintFor({ outcome, status }: Pick<Attempt, 'outcome' | 'status'>): string | undefined {
  if (outcome === 'ok') return undefined;
  if (outcome === 'smtp' && status !== null) return smtpHint(status);
  if (outcome !== 'http') return HINTS[outcome];
  if (status === null) return undefined;
  if (status >= 300 && status < 400) {
    return 'Redirects are not followed. Subscribe the address that the response points to.';
  }
  if (status === 401 || status === 403) {
    return 'The receiver rejected the signature, or it needs a header that this webhook does not send. Compare the secret, and check the custom headers in the settings.';
  }
  if (status === 404 || status === 405) return 'Nothing accepts POST requests at this path. Check the URL.';
  if (status === 410) return 'The receiver asked for no more requests, so the webhook was unsubscribed.';
  if (status === 413) return 'The receiver, or a proxy in front of it, does not accept a body of this size.';
  if (status === 429)
    return 'The receiver got too many requests. Set a rate limit in the settings of the webhook.';
  if (status >= 500) return 'The receiver failed. Its log, or the response body, should say why.';
  return 'The receiver rejected the request. The response body should say why.';
}

function smtpHint(status: number): string {
  if (status < 500) return 'The mail server asks to send it later, so it is retried.';
  if (status === 550 || status === 551 || status === 553) {
    return 'The mail server refuses this recipient permanently, so the mail is not sent again. Check the address.';
  }
  return 'The mail server refuses the mail permanently, so it is not sent again. Its reply says why.';
}
