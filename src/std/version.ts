/** The version of flowhook. */
import { readFileSync } from 'node:fs';

/**
 * The version in `package.json`. The relative path to `package.json` is the same from `src/std/` and from the built
 * `dist/std/`.
 */
export const VERSION: string = JSON.parse(
  readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
).version;

/** The `User-Agent` of outgoing requests. */
export const USER_AGENT = `flowhook/${VERSION}`;
