/** The per-host request limits that all jobs of this process share. */
import type { Duplex } from 'node:stream';
import { createHostTurns } from '../../net/host-turns.ts';
import { serveTurns } from '../../net/host-turns-channel.ts';

const turns = createHostTurns();

/** Serves them to a child over its channel. */
export function shareTurns(channel: Duplex): void {
  serveTurns(channel, turns);
}
