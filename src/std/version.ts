/** The version of flowhook. */
import { readFileSync } from 'node:fs';

/** From `package.json`; the path is the same from `src/std/` and from the built `dist/std/`. */
export const VERSION: string = JSON.parse(
  readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
).version;

/** The `User-Agent` of what is sent. */
export const USER_AGENT = `flowhook/${VERSION}`;
