/** The version of flowhook. */
import { readFileSync } from 'node:fs';

/** From `package.json`, whose relative path is the same for `src/std/` and the built `dist/std/`. */
export const VERSION: string = JSON.parse(
  readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
).version;

/** The `User-Agent` of outgoing requests. */
export const USER_AGENT = `flowhook/${VERSION}`;
