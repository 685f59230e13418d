/** The bundle loads a module when it is first used. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadAllCode } from '../../src/std/own-files.ts';
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

test('a server can load all chunks before it uses them', async () => {
  const { exports, loaded } = run(
    '"use strict"; let require_a = require("./a.cjs"); exports.a = () => require_a.a;',
    { './a.cjs': { a: 1 } },
  );
  assert.deepEqual(loaded, []);
  await loadAllCode();
  assert.deepEqual(loaded, ['./a.cjs']);
  assert.equal(exports.a?.(), 1);
  assert.deepEqual(loaded, ['./a.cjs']);
});

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
