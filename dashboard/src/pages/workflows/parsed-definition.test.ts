/** Definitions that are typed: what is read of them, and what is wrong with the others. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parsedDefinition } from './parsed-definition.ts';

test('a definition is an object of JSON, and a mistake is told with its line', () => {
  assert.deepEqual(parsedDefinition('{ "source": { "type": "push" } }'), {
    definition: { source: { type: 'push' } },
  });
  assert.match(JSON.stringify(parsedDefinition('{\n  "a": 1,\n}')), /not JSON.*line 3/);
  assert.match(JSON.stringify(parsedDefinition('[1]')), /an object/);
});
