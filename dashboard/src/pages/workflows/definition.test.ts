/** A definition that is being written. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type Draft,
  definitionFrom,
  isDue,
  lineDiff,
  mistakesIn,
  parsedDefinition,
  scheduleWords,
} from './definition.ts';

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

test('a definition is an object of JSON, and a mistake is told with its line', () => {
  assert.deepEqual(parsedDefinition('{ "source": { "type": "push" } }'), {
    definition: { source: { type: 'push' } },
  });
  assert.match(JSON.stringify(parsedDefinition('{\n  "a": 1,\n}')), /not JSON.*line 3/);
  assert.match(JSON.stringify(parsedDefinition('[1]')), /an object/);
});

const SIGNS = { same: ' ', added: '+', removed: '-' };
const diff = (before: string, after: string) =>
  lineDiff(before, after).map(({ kind, text }) => SIGNS[kind] + text);

test('a changed line is gone first, and new after it', () => {
  assert.deepEqual(diff('a\nb\nc\n', 'a\nx\nc\n'), [' a', '-b', '+x', ' c']);
});

test('of texts that begin or end alike, only what is between has changed', () => {
  assert.deepEqual(diff('a\nb\nc\nd', 'a\nx\nc\ny\nd'), [' a', '-b', '-c', '+x', '+c', '+y', ' d']);
  assert.deepEqual(diff('', 'a'), ['+a']);
  assert.deepEqual(diff('a', ''), ['-a']);
  assert.deepEqual(diff('a\na', 'a\na\na'), [' a', ' a', '+a']);
});

const source = { type: 'http' } as const;

test('a schedule is told in words, with its zone', () => {
  const missed = 'run' as const;
  const cron = { cron: '0 2 * * *', timezone: 'Europe/Berlin', missed };
  assert.equal(scheduleWords({ source, schedule: cron }), 'cron 0 2 * * *, Europe/Berlin');
  assert.equal(scheduleWords({ source, schedule: { everyMs: 600_000, missed } }), 'every 10 min');
  assert.equal(scheduleWords({ source, schedule: null }), 'on demand');
  assert.equal(scheduleWords({ source: { type: 'push' }, schedule: null }), 'when pushed to');
});

test('a run is due once its time has passed', () => {
  const nowMs = Date.parse('2026-11-21T02:00:00.000Z');
  assert.equal(isDue('2026-11-21T02:00:01.000Z', nowMs), false);
  assert.equal(isDue('2026-11-21T01:59:00.000Z', nowMs), true);
  assert.equal(isDue(null, nowMs), false);
});
