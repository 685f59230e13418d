/** docs/performance.md, docs/performance-tables.md and their plots match the results in benchmarks/published. */
import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { test } from 'node:test';
import { report } from '../../benchmarks/report.ts';

const files = await report();

test('every table and plot shows the published results', async () => {
  assert.ok(files.size > 2, 'both pages and some plots');
  for (const [path, text] of files) {
    assert.equal(await readFile(path, 'utf8'), text, `${path} is stale: npm run performance`);
  }
});

test('every plot belongs to a page', async () => {
  const plots = [...files.keys()].filter((path) => path.endsWith('.svg')).map((path) => basename(path));
  assert.deepEqual((await readdir('docs/images/performance')).sort(), plots.sort());
});

test('no table of docs/performance.md has more than six columns', () => {
  const page = files.get('docs/performance.md') ?? '';
  const wide = page.split('\n').filter((line) => line.startsWith('|') && line.split('|').length > 6 + 2);
  assert.deepEqual(wide, []);
});
