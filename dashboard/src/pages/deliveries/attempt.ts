/** One attempt: where its time went, and what can be done where it failed. */
import type { DeliveryDetail } from 'flowhook-client';

export type Attempt = DeliveryDetail['attempts'][number];

export interface Phase {
  name: string;
  /** Milliseconds from the moment that the attempt was due. */
  fromMs: number;
  toMs: number;
  /** Who took the time: our queue, the network, or the receiver. */
  kind: 'queue' | 'network' | 'receiver';
}

/**
 * The phases of an attempt in order. Those that did not happen are left out: an open connection needs neither a lookup
 * nor a handshake, and a failed request has no answer.
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
  add('Waited for its turn', 'queue', 0);
  add('Name looked up', 'network', dnsMs);
  add('Connected', 'network', connectMs);
  add('TLS handshake', 'network', tlsMs);
  add('Answer began', 'receiver', firstByteMs);
  add(firstByteMs === null ? 'Then it failed' : 'Answer read', 'receiver', durationMs);
  return phases;
}

/** Neither a look-up nor a handshake was needed. */
export function usedOpenConnection({ timing }: Pick<Attempt, 'timing'>): boolean {
  return timing !== null && timing.dnsMs === null && timing.connectMs === null && timing.firstByteMs !== null;
}

const HINTS: Record<Exclude<Attempt['outcome'], 'ok' | 'http'>, string> = {
  timeout:
    'Answer at once and do the work afterwards, or give the webhook more time in its settings (30 s at most).',
  dns: 'Is the name spelled right, and known to the machine that Flowhook runs on?',
  connect: 'Is the receiver running, and does it listen on this port for connections from other machines?',
  tls: 'The TLS handshake failed. Check the certificate of the receiver.',
  blocked:
    'This instance does not send there: it keeps webhooks away from private networks. Whoever runs it can allow it with FLOWHOOK_ALLOW_NETWORKS.',
  protocol: 'The receiver, or a proxy before it, ended the connection or answered what is not HTTP.',
};

/** A sentence for those who have to mend it; undefined where the outcome says it all. */
export function hintFor({ outcome, status }: Pick<Attempt, 'outcome' | 'status'>): string | undefined {
  if (outcome === 'ok') return undefined;
  if (outcome !== 'http') return HINTS[outcome];
  if (status === null) return undefined;
  if (status >= 300 && status < 400) {
    return 'Redirects are not followed: subscribe the address that it points to.';
  }
  if (status === 401 || status === 403) {
    return 'The receiver did not accept the signature, or requires a header that the webhook does not send. Compare the secret, and see Settings for custom headers.';
  }
  if (status === 404 || status === 405) return 'Nothing accepts POST at this path: check the URL.';
  if (status === 410) return 'Gone: the receiver wants nothing more, so the webhook was unsubscribed.';
  if (status === 413) return 'The receiver, or a proxy before it, accepts no bodies as large as this one.';
  if (status === 429) return 'It received too much at once: limit the rate in the settings of the webhook.';
  if (status >= 500) return 'The receiver itself failed: what it answered, and its own log, say why.';
  return 'The receiver refused it: what it answered says why.';
}
