/** Generates docs/reference from the code: `npm run reference`. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { references } from './references.ts';

for (const [page, text] of Object.entries(await references())) {
  writeFileSync(join(import.meta.dirname, '..', '..', 'docs', 'reference', page), text);
}
