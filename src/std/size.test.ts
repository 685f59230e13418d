/** Parsing and formatting of sizes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatSize, parseSize } from './amounts.ts';

test('parses sizes with a unit', () => {
  assert.equal(parseSize('512MB'), 512_000_000);
  assert.equal(parseSize('2 GB'), 2_000_000_000);
  assert.equal(parseSize('1.5GiB'), 1.5 * 2 ** 30);
  assert.equal(parseSize('16KiB'), 16_384);
  for (const wrong of ['512', '512mb', '512M', '-1MB', 'MB', '1e3MB', '', 512, null]) {
    assert.equal(parseSize(wrong), undefined, String(wrong));
  }
});

test('formats sizes in a suitable unit', () => {
  const written = [512_000_000, 2 ** 30, 1_500_000_000, 612_345_678, 999, 1_000_000_000_000, 0].map(
    formatSize,
  );
  assert.deepEqual(written, ['512 MB', '1 GiB', '1500 MB', '612.3 MB', '999 bytes', '1 TB', '0 bytes']);
});
