/** A definition that is being written. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Draft, definitionFrom, mistakesIn } from './draft.ts';

const draft: Draft = {
  id: 'people',
  name: '',
  type: 'push',
  url: '',
  parse: '',
  records: '',
  fields: '',
  key: ' email, ',
  mode: 'upsert',
  every: '',
};

test('a workflow that is pushed to needs an id alone', () => {
  assert.deepEqual(mistakesIn(draft), {});
  assert.deepEqual(definitionFrom(draft), { key: ['email'], mode: 'upsert', source: { type: 'push' } });
  assert.deepEqual(Object.keys(mistakesIn({ ...draft, id: 'a/b' })), ['id']);
  assert.deepEqual(Object.keys(mistakesIn({ ...draft, id: ' ' })), ['id']);
});

test('one that is read over HTTP becomes what its file would hold', () => {
  const http: Draft = {
    ...draft,
    type: 'http',
    name: 'People',
    url: 'https://example.com/people.json',
    records: '$.items',
    fields: 'id = $.key, name={{$.first}}',
    every: '15m',
  };
  assert.deepEqual(mistakesIn(http), {});
  assert.deepEqual(definitionFrom(http), {
    name: 'People',
    key: ['email'],
    mode: 'upsert',
    source: { type: 'http', url: 'https://example.com/people.json', records: '$.items' },
    fields: { id: '$.key', name: '{{$.first}}' },
    schedule: { every: '15m' },
  });
});

test('each mistake is told at its input', () => {
  const wrong: Draft = {
    ...draft,
    type: 'http',
    id: '',
    url: 'javascript:alert(1)',
    fields: 'id',
    every: 'often',
  };
  assert.deepEqual(Object.keys(mistakesIn(wrong)).sort(), ['every', 'fields', 'id', 'url']);
});
