/** Where the time of an attempt went, phase by phase. */
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
