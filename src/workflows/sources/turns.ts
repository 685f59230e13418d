/** The turns at hosts of all jobs of this process: a host is one host for every source that asks it. */
import type { Duplex } from 'node:stream';
import { createHostTurns } from '../../net/host-turns.ts';
import { serveTurns } from '../../net/host-turns-channel.ts';

const turns = createHostTurns();

/** Lets a child take part, over its channel. */
export function shareTurns(channel: Duplex): void {
  serveTurns(channel, turns);
}
