/** The bundle loads a module when it is first used. */
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { keepCode } from '../../src/std/own-files.ts';
import { withLazyRequires } from '../../toolchain/lazy-requires.ts';

/** Runs a chunk as Node does. Returns its exports, and a list of the modules that it has loaded so far. */
function run(code: string, modules: Record<string, unknown> = {}) {
  const loaded: string[] = [];
  const require = (name: string) => {
    loaded.push(name);
    return modules[name];
  };
  const exports: Record<string, (...args: unknown[]) => unknown> = {};
  new Function('require', 'exports', withLazyRequires(code))(require, exports);
  return { exports, loaded };
}

test('a module is loaded once, when it is first used', () => {
  const { exports, loaded } = run(
    '"use strict"; let node_fs = require("node:fs"); exports.size = () => node_fs.size("a") + node_fs.size("b");',
    { 'node:fs': { size: (text: string) => text.length } },
  );
  assert.deepEqual(loaded, []);
  assert.equal(exports.size?.(), 2);
  assert.equal(exports.size?.(), 2);
  assert.deepEqual(loaded, ['node:fs']);
});

for (const [when, isLoaded] of [
  ['', false],
  [', even if a request loads some of it while the rest is being read', true],
] as const) {
  test(`a server has its code in memory after its files were replaced${when}`, async (t) => {
    const directory = await mkdtemp(join(tmpdir(), 'flowhook-lazy-'));
    t.after(() => rm(directory, { recursive: true }));
    const chunks = {
      'main.cjs':
        'let require_a = require("./a.cjs"); exports.a = () => require_a.b(); exports.load = () => require_a.load();',
      'a.cjs':
        'let require_b = require("./b.cjs"); exports.b = () => require_b.name; exports.load = () => {};',
      'b.cjs': 'exports.name = "b";',
    };
    for (const [name, code] of Object.entries(chunks))
      await writeFile(join(directory, name), withLazyRequires(code));
    const main = createRequire(import.meta.url)(join(directory, 'main.cjs'));
    const keeping = keepCode(pathToFileURL(join(directory, 'main.cjs')).href);
    if (isLoaded) main.load();
    await keeping;
    for (const name of Object.keys(chunks)) await rm(join(directory, name));
    assert.equal(main.a(), 'b');
  });
}

test('strict mode, classes, default imports and properties of the same name keep working', () => {
  const { exports } = run(
    `"use strict";
    const require_a = require("./a.cjs");
    let node_path = require("node:path");
    node_path = require_runtime(node_path, 1);
    function require_runtime(module) { return { default: module }; }
    exports.all = function () {
      const found = { node_path: 1, require_a };
      return [new require_a.Thing("x").name, node_path.default.sep, found.node_path, found.require_a, this];
    };`,
    {
      './a.cjs': {
        Thing: class {
          name = 'thing';
        },
      },
      'node:path': { sep: '/' },
    },
  );
  const all = exports.all as () => unknown[];
  const [name, sep, one, a, self] = all();
  assert.deepEqual([name, sep, one, self], ['thing', '/', 1, undefined]);
  assert.ok((a as { Thing: unknown }).Thing);
});

test('a module that is imported only for its effects, and a file of the machine, are loaded immediately', () => {
  const { loaded } = run('require("./effects.cjs"); let path = require("path"); path.join;', { path: {} });
  assert.deepEqual(loaded, ['./effects.cjs', 'path']);
});
