/** The client is small and has no dependencies. test/package/client.test.ts runs the package in every runtime. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { build } from 'vite';
import { VERSION } from '../src/transport.ts';

const client = join(import.meta.dirname, '..');
const BUDGET_BYTES = 8_940;

test('the client imports only its own files', () => {
  for (const name of readdirSync(join(client, 'src'))) {
    const text = readFileSync(join(client, 'src', name), 'utf8');
    for (const [, from] of text.matchAll(/\bfrom '([^']+)'|\bimport\('([^']+)'\)/g)) {
      assert.match(from ?? '', /^\.\/[\w-]+\.ts$/, `${name} imports ${from}`);
    }
  }
});

test('the client fits its budget, minified and compressed', async (t) => {
  const made = await build({
    root: client,
    logLevel: 'silent',
    configFile: false,
    build: { write: false, minify: true, lib: { entry: 'src/flowhook-client.ts', formats: ['es'] } },
  });
  const [bundle] = made as { output: { code: string }[] }[];
  const { length } = gzipSync(bundle?.output[0]?.code ?? assert.fail('nothing was built'), { level: 9 });
  t.diagnostic(`${length} bytes`);
  assert.ok(length > 1_000 && length <= BUDGET_BYTES, `${length} bytes, at most ${BUDGET_BYTES}`);
});

test('`VERSION` is the version in package.json', () => {
  const { version } = JSON.parse(readFileSync(join(client, 'package.json'), 'utf8')) as { version: string };
  assert.equal(VERSION, version);
});
