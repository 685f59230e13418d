/** Headers that a webhook's requests carry of their own, sealed: they often hold credentials of the receiver. */
import type { Sealer } from '../std/seal.ts';

/** @param headers checked by `headersMistake` */
export function sealHeaders(sealer: Sealer, teamId: string, headers: Record<string, string>): string {
  return sealer.seal(JSON.stringify(headers), contextOf(teamId));
}

/** @param input.sealed as the store holds them; null: there are none */
export function openHeaders(
  sealer: Sealer,
  input: { teamId: string; sealed: string | null },
): Record<string, string> {
  if (input.sealed === null) return {};
  return JSON.parse(sealer.open(input.sealed, contextOf(input.teamId)).toString('utf8'));
}

function contextOf(teamId: string): string {
  return `webhook-headers/${teamId}`;
}
