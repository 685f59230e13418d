/** The document as operations in groups. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { type OpenApi, withSharedAnswers } from './openapi.ts';
import { canBeTried, groupsOf } from './operations.ts';
import { requestOf } from './request.ts';
import { fieldsOf, typeOf } from './schema-fields.ts';

const document = withSharedAnswers(
  JSON.parse(await readFile(new URL('../../../../openapi.json', import.meta.url), 'utf8')) as OpenApi,
);
const operations = groupsOf(document).flatMap((group) => group.operations);
const named = (id: string) =>
  operations.find(({ operationId }) => operationId === id) ?? assert.fail(`there is no ${id}`);

test('every operation of the service stands in one group', () => {
  const all = Object.values(document.paths).flatMap((methods) => Object.values(methods));
  assert.equal(operations.length, all.length);
  assert.equal(new Set(operations.map(({ operationId }) => operationId)).size, all.length);
});

test('a search finds the operations that have every word, wherever it stands', () => {
  const found = groupsOf(document, 'rotate KEYID').flatMap((group) => group.operations);
  assert.deepEqual(
    found.map(({ operationId }) => operationId),
    ['rotateKey'],
  );
  assert.deepEqual(groupsOf(document, 'nothing is called so'), []);
});

test('only what reads, and ends, can be tried', () => {
  assert.ok(canBeTried(named('readWorkflowData')));
  assert.ok(!canBeTried(named('queueWorkflowJob')));
  assert.ok(!canBeTried(named('openStream')));
});

test('parameters go into the path, the query and the headers, and what is missing is named', () => {
  const data = named('readWorkflowData');
  assert.deepEqual(requestOf(data, {}), {
    path: '/v1/workflows/{workflowId}/data',
    headers: {},
    missing: ['workflowId'],
  });
  assert.deepEqual(requestOf(data, { workflowId: 'a b', q: 'ada & co', limit: ' ' }), {
    path: '/v1/workflows/a%20b/data?q=ada+%26+co',
    headers: {},
    missing: [],
  });
  const { headers } = requestOf(named('queueWorkflowJob'), { workflowId: 'people', 'idempotency-key': 'k' });
  assert.deepEqual(headers, { 'idempotency-key': 'k' });
});

test('a schema is told field by field, with what it refers to', () => {
  const { schemas } = document.components;
  const subscribe = named('subscribeWebhook').requestBody?.content['application/json']?.schema ?? {};
  assert.deepEqual(
    fieldsOf(subscribe, schemas).map(({ path, type, isRequired }) => [path, type, isRequired]),
    [
      ['workflowId', 'string', true],
      ['webhookUrl', 'string', true],
      ['events', 'string[]', true],
    ],
  );
  const job = fieldsOf({ $ref: '#/components/schemas/Job' }, schemas);
  assert.ok(job.some(({ path }) => path === 'progress.records'));
  assert.equal(typeOf({ type: ['integer', 'null'] }), 'integer | null');
  assert.equal(typeOf({ enum: ['active', 'paused'] }), '"active" | "paused"');
});

test('every answer of an operation has its sentence, those that all operations share as well', () => {
  for (const { operationId, responses } of operations) {
    for (const [status, { description }] of Object.entries(responses)) {
      assert.ok(description?.length > 0, `${operationId} ${status}`);
    }
    assert.ok('503' in responses, operationId);
  }
});
