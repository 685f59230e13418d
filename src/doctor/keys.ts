/** API keys: those that expire soon, and those that are no longer used. */

import { type ApiKey, keyConcern } from '../model/team.ts';
import { everyRow } from '../store/page.ts';
import { type Check, ofStore, ok, type Result, warning } from './check.ts';
import { listed } from './listed.ts';

export const keys: Check = ofStore('work', 'keys', async (store) =>
  keysResult(await Array.fromAsync(everyRow(store.keys.list, {})), store.now()),
);

export function keysResult(all: readonly ApiKey[], now: number): Result {
  const of = (concern: ReturnType<typeof keyConcern>) =>
    all
      .filter((key) => keyConcern(key, now) === concern)
      .map(({ id, name }) => (name === '' ? id : `${id} (${name})`));
  const [ending, unused] = [of('expires_soon'), of('unused')];
  const words = [
    ...(ending.length === 0 ? [] : [`expiring soon: ${listed(ending)}`]),
    ...(unused.length === 0 ? [] : [`long unused: ${listed(unused)}`]),
  ];
  if (words.length === 0) return ok('No API key expires soon or is long unused');
  return warning({
    what: `API keys ${words.join('; ')}`,
    why: 'Requests with an expired key are refused; an unused key can only be misused',
    fix: '`flowhook keys create` makes a new one, `flowhook keys revoke ID` removes one; `flowhook keys list` shows all',
  });
}
