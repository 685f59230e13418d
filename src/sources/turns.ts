/** The per-host request limits that all jobs of this process share. */
import type { Duplex } from 'node:stream';
import { createHostTurns } from '../net/host-turns.ts';
import { serveTurns } from '../net/host-turns-channel.ts';

const turns = createHostTurns();

/**
 * Serves them, as a team meets them, to a child over its channel.
 *
 * @param options.bindsOthers false for a child that runs code of the team, which may write anything to its channel
 */
export function shareTurns(team: string, options: { bindsOthers: boolean }): (channel: Duplex) => void {
  return (channel) => serveTurns(channel, turns.of(team, options));
}
