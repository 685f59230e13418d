/** The package: small, and without anything that only Node has. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { build } from 'vite';
import { compiled } from './compiled.ts';

const client = join(import.meta.dirname, '..');
const BUDGET_BYTES = 8_000;

test('the client imports nothing but itself', () => {
  for (const name of readdirSync(join(client, 'src'))) {
    const text = readFileSync(join(client, 'src', name), 'utf8');
    for (const [, from] of text.matchAll(/\bfrom '([^']+)'|\bimport\('([^']+)'\)/g)) {
      assert.match(from ?? '', /^\.\/[\w-]+\.ts$/, `${name} imports ${from}`);
    }
  }
});

test('it fits its budget, minified and compressed', async (t) => {
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

/** What browsers do not have. Not `Buffer`, which Node's own Response needs: that one the compiler would not find. */
const OF_NODE = ['process', 'global', 'setImmediate', 'clearImmediate', 'require', 'module'];
const PAGE = `
  const print = globalThis.process.stdout.write.bind(globalThis.process.stdout);
  for (const name of ${JSON.stringify(OF_NODE)}) delete globalThis[name];
  const { Flowhook, verifyWebhook } = await import('./flowhook-client.js');
  const answer = async (url) => new Response(url.includes('/data') ? '{"id":"1"}\\n' : '{"message":"Job queued"}');
  const flowhook = new Flowhook({ url: 'https://flowhook.test', key: 'k', fetch: answer });
  await flowhook.workflows.queue('people');
  const secret = 'whsec_' + btoa('a secret of some length');
  const refused = await verifyWebhook('{}', {
    'webhook-id': 'evt_1', 'webhook-timestamp': '1000', 'webhook-signature': 'v1,AAAA',
  }, { secrets: [secret], nowMs: 1000000 }).catch((error) => error.name);
  print(JSON.stringify([await flowhook.workflows.readAll('people'), refused]));
`;

test('it runs where there is nothing but what browsers have', (t) => {
  const directory = compiled(t);
  writeFileSync(join(directory, 'page.js'), PAGE);
  const printed = execFileSync(process.execPath, [join(directory, 'page.js')], { encoding: 'utf8' });
  assert.deepEqual(JSON.parse(printed), [[{ id: '1' }], 'NotVerified']);
});
