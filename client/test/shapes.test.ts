/** The client's types are those of the service. */
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

/** Compiles only when each can stand for the other. */
function same<Ours, Theirs>(
  ..._: [Ours] extends [Theirs] ? ([Theirs] extends [Ours] ? [] : [never]) : [never]
) {}

test('they are written from the document that describes the service', () => {
  const written = readFileSync(join(import.meta.dirname, '../src/resources.ts'), 'utf8');
  assert.equal(written, resourceTypes(), 'run `npm run reference`');
});

test('what methods take and return can be named', () => {
  same<Parameters<Flowhook['workflows']['readAll']>[1], DataOptions | undefined>();
  same<Extract<Parameters<Flowhook['workflows']['push']>[1], { contentType: string }>, PushedBytes>();
  same<Awaited<ReturnType<Flowhook['jobs']['counts']>>, JobCounts>();
  same<Parameters<Flowhook['inspectors']['create']>[0], InspectorAnswer | undefined>();
});
