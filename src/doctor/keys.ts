/** API keys: those that expire soon, and those that are no longer used. */
import { type ApiKey, keyConcern } from '../model/team.ts';
import { type Check, ofStore, ok, type Result, warning } from './check.ts';
import { listed } from './listed.ts';

export const keys: Check = ofStore('work', 'keys', async (store) =>
  keysResult(await store.keys.list({}), store.now()),
);

export function keysResult(all: readonly ApiKey[], now: number): Result {
  const of = (concern: ReturnType<typeof keyConcern>) =>
    all
      .filter((key) => keyConcern(key, now) === concern)
      .map(({ id, name }) => (name === '' ? id : `${id} (${name})`));
  const [ending, unused] = [of('expires_soon'), of('unused')];
  const words = [
    ...(ending.length === 0 ? [] : [`these end soon: ${listed(ending)}`]),
    ...(unused.length === 0 ? [] : [`these nobody has used for long: ${listed(unused)}`]),
  ];
  if (words.length === 0) return ok('No key ends soon, and none that may be used lies about');
  return warning({
    what: `Of the API keys ${words.join('; ')}`,
    why: 'Whoever calls with one that ends is refused then; one that nobody uses can only be misused',
    fix: '`flowhook keys create` makes another one, `flowhook keys revoke ID` ends one; `flowhook keys list` shows all',
  });
}
