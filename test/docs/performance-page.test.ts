/** The tables and plots of docs/performance.md are those of the files that were measured. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { report } from '../../benchmarks/report.ts';

test('every table and plot of docs/performance.md shows what benchmarks/published holds', async () => {
  const files = await report();
  assert.ok(files.size > 1, 'the page has no place for a table');
  for (const [path, text] of files) {
    assert.equal(await readFile(path, 'utf8'), text, `${path} is stale: npm run performance`);
  }
});
