/** The version of flowhook. */
import { readFileSync } from 'node:fs';

/** From `package.json`; the path is the same from `src/config/` and from the built `dist/config/`. */
export const VERSION: string = JSON.parse(
  readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
).version;
