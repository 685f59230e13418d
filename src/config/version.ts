/** Which version this is. */
import { readFileSync } from 'node:fs';

/** Of `package.json`, which stands in the same place from `src/config/` and from what is built of it. */
export const VERSION: string = JSON.parse(
  readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
).version;
