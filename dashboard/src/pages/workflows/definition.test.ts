/** Definitions from a form and from JSON, diffs, and schedules in words. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type Draft,
  definitionFrom,
  ID_PATTERN,
  isDue,
  lineDiff,
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

test('refuses ids that would change the path of a URL', () => {
  // Browsers match the whole value, and forms send it trimmed.
  const isAllowed = (id: string) => new RegExp(`^(?:${ID_PATTERN})$`, 'v').test(id);
  for (const id of ['', ' ', '.', '..', ' . ', '.. ', 'a/b', 'a\\b']) assert.equal(isAllowed(id), false, id);
  for (const id of ['people', '...', '.a', 'a.b', 'two words', ' people ', 'ä']) assert.ok(isAllowed(id), id);
});

test('defines a workflow that receives pushes', () => {
  assert.deepEqual(definitionFrom(draft), { key: ['email'], mode: 'upsert', source: { type: 'push' } });
});

test('defines a workflow that reads a URL', () => {
  const http: Draft = {
    ...draft,
    type: 'http',
    name: 'People',
    url: 'https://example.com/people.json',
    records: '$.items',
    fields: 'id = $.key, name={{$.first}}',
    every: '15m',
  };
  assert.deepEqual(definitionFrom(http), {
    name: 'People',
    key: ['email'],
    mode: 'upsert',
    source: { type: 'http', url: 'https://example.com/people.json', records: '$.items' },
    fields: { id: '$.key', name: '{{$.first}}' },
    schedule: { every: '15m' },
  });
});

test('names a field that cannot be parsed', () => {
  assert.throws(() => definitionFrom({ ...draft, type: 'http', fields: 'id' }), /the field “id”/);
});

test('parses a definition, and names the line of a JSON mistake', () => {
  assert.deepEqual(parsedDefinition('{ "source": { "type": "push" } }'), {
    definition: { source: { type: 'push' } },
  });
  assert.match(JSON.stringify(parsedDefinition('{\n  "a": 1,\n}')), /Not valid JSON.*line 3/);
  assert.match(JSON.stringify(parsedDefinition('[1]')), /JSON object/);
});

const SIGNS = { same: ' ', added: '+', removed: '-' };
const diff = (before: string, after: string) =>
  lineDiff(before, after).map(({ kind, text }) => SIGNS[kind] + text);

test('shows a changed line as removed, then added', () => {
  assert.deepEqual(diff('a\nb\nc\n', 'a\nx\nc\n'), [' a', '-b', '+x', ' c']);
});

test('keeps common lines at the start and the end of a diff', () => {
  assert.deepEqual(diff('a\nb\nc\nd', 'a\nx\nc\ny\nd'), [' a', '-b', '-c', '+x', '+c', '+y', ' d']);
  assert.deepEqual(diff('', 'a'), ['+a']);
  assert.deepEqual(diff('a', ''), ['-a']);
  assert.deepEqual(diff('a\na', 'a\na\na'), [' a', ' a', '+a']);
});

const source = { type: 'http' } as const;

test('describes a schedule with its time zone', () => {
  const missed = 'run' as const;
  const cron = { cron: '0 2 * * *', timezone: 'Europe/Berlin', missed };
  assert.equal(scheduleWords({ source, schedule: cron }), 'Cron 0 2 * * *, Europe/Berlin');
  assert.equal(scheduleWords({ source, schedule: { everyMs: 600_000, missed } }), 'Every 10 min');
  assert.equal(scheduleWords({ source, schedule: null }), 'On demand');
  assert.equal(scheduleWords({ source: { type: 'push' }, schedule: null }), 'When pushed');
});

test('is due when the time of the run has passed', () => {
  const nowMs = Date.parse('2026-11-21T02:00:00.000Z');
  assert.equal(isDue('2026-11-21T02:00:01.000Z', nowMs), false);
  assert.equal(isDue('2026-11-21T01:59:00.000Z', nowMs), true);
  assert.equal(isDue(null, nowMs), false);
});
