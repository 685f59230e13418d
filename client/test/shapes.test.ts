/** The types of the client match those of the service. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type {
  DataOptions,
  Flowhook,
  InspectorAnswer,
  JobCounts,
  PushedBytes,
} from '../src/flowhook-client.ts';
import { resourceTypes } from '../write-resources.ts';

/** Compiles only if the types are assignable to each other. */
function same<Ours, Theirs>(
  ..._: [Ours] extends [Theirs] ? ([Theirs] extends [Ours] ? [] : [never]) : [never]
) {}

test('`resources.ts` is generated from openapi.json', () => {
  const written = readFileSync(join(import.meta.dirname, '../src/resources.ts'), 'utf8');
  assert.equal(written, resourceTypes(), 'run `npm run reference`');
});

test('parameter and result types of methods are exported', () => {
  same<Parameters<Flowhook['workflows']['readAll']>[1], DataOptions | undefined>();
  same<Extract<Parameters<Flowhook['workflows']['push']>[1], { contentType: string }>, PushedBytes>();
  same<Awaited<ReturnType<Flowhook['jobs']['counts']>>, JobCounts>();
  same<Parameters<Flowhook['inspectors']['create']>[0], InspectorAnswer | undefined>();
});
