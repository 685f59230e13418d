/** The printed commands work for every way to install the program. */
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { callFrom } from './how-called.ts';

test('a global installation is called by its name', () => {
  assert.equal(callFrom('/etc/flowhook', '/usr/bin/flowhook'), 'flowhook');
});

test('npx finds an installation in its own directory; elsewhere it is called by its path', () => {
  const script = '/srv/one/node_modules/.bin/flowhook';
  assert.equal(callFrom('/srv/one', script), 'npx flowhook');
  assert.equal(callFrom('/srv/one/below', script), 'npx flowhook');
  assert.equal(callFrom('/srv/one-more', script), script);
  assert.equal(
    callFrom('/srv', '/srv/o n e/node_modules/.bin/flowhook'),
    `'/srv/o n e/node_modules/.bin/flowhook'`,
  );
});

test('npx finds a clone in its directory', () => {
  assert.equal(callFrom('/srv/clone', '/srv/clone/bin/flowhook.js'), 'npx flowhook');
  assert.equal(callFrom('/srv/other', '/srv/clone/bin/flowhook.js'), '/srv/clone/bin/flowhook.js');
});

test('without an installation, npx is called with the same package', async (t) => {
  const cache = await mkdtemp(join(tmpdir(), 'flowhook-npx-'));
  t.after(() => rm(cache, { recursive: true }));
  const script = join(cache, 'node_modules/.bin/flowhook');
  const call = async (spec: string, directory: string) => {
    await writeFile(join(cache, 'package.json'), JSON.stringify({ _npx: { packages: [spec] } }));
    return callFrom(resolve(directory), script);
  };
  assert.equal(await call('flowhook@0.1.0', '/etc'), 'npx --yes flowhook@0.1.0');
  assert.equal(await call('./flowhook-0.1.0.tgz', '.'), 'npx --yes ./flowhook-0.1.0.tgz');
  assert.equal(await call('./flowhook-0.1.0.tgz', 'new/one'), script);
});
