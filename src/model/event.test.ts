/** Names of events, and what a change of data says. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { canonicalEvent, canonicalEvents, differences, MAX_DIFFERENCES_BYTES, pausedData } from './event.ts';

test('names of other products stand for ours, without regard to case', () => {
  for (const name of [
    'job.completed',
    'run.finished',
    'workflow.finished',
    'WORKFLOW_FINISHED',
    'Job.Succeeded',
  ]) {
    assert.equal(canonicalEvent(name), 'workflow_finished', name);
  }
  assert.equal(canonicalEvent('job.failed'), 'workflow_failed');
  assert.equal(canonicalEvent('data.changed'), 'workflow_data_change');
  assert.equal(canonicalEvent('job.cancelled'), 'workflow_canceled');
  assert.equal(canonicalEvent('all'), '*');
});

test('names that nothing stands for are told apart, those of every object included', () => {
  assert.deepEqual(canonicalEvents(['job.completed', 'tea.ready', 'constructor', '__proto__']), {
    known: ['workflow_finished'],
    unknown: ['tea.ready', 'constructor', '__proto__'],
  });
});

test('differences name the fields that were added, changed and removed', () => {
  assert.deepEqual(
    differences([
      { id: '1', before: undefined, after: '{"id":"1"}' },
      { id: '2', before: '{"id":"2","a":1,"b":[1]}', after: '{"id":"2","b":[1],"c":3}' },
      { id: '3', before: '{"id":"3"}', after: undefined },
    ]),
    {
      differences: [
        { type: 'added', id: '1', fields: [{ key: 'id', value: '1' }] },
        {
          type: 'changed',
          id: '2',
          fields: [
            { key: 'a', previousValue: 1 },
            { key: 'c', value: 3 },
          ],
        },
        { type: 'removed', id: '3', fields: [{ key: 'id', previousValue: '3' }] },
      ],
      truncated: false,
    },
  );
});

test('differences end before they outgrow an event body, and say so', () => {
  const records = Array.from({ length: 100 }, (_, i) => ({
    id: String(i),
    before: undefined,
    after: JSON.stringify({ id: String(i), text: 'x'.repeat(500) }),
  }));
  const found = differences(records);
  assert.equal(found.truncated, true);
  assert.ok(found.differences.length > 10);
  assert.ok(Buffer.byteLength(JSON.stringify(found.differences)) <= MAX_DIFFERENCES_BYTES);
});

test('lists a change in digits that a double would lose', () => {
  const { differences: list } = differences([
    { id: '1', before: '{"id":"1","n":9007199254740993123}', after: '{"id":"1","n":9007199254740993124}' },
  ]);
  assert.equal(
    JSON.stringify(list),
    '[{"type":"changed","id":"1","fields":[{"key":"n","value":9007199254740993124,"previousValue":9007199254740993123}]}]',
  );
});

test('tells the URL of a paused webhook as it was subscribed, but for user and password', () => {
  const urlOf = (url: string) => pausedData({ id: 'wh_1', url, pausedAt: 0, reason: 'It fails' }).url;
  assert.equal(urlOf('HTTPS://A.test:443?x=%7e'), 'HTTPS://A.test:443?x=%7e');
  assert.equal(urlOf('https://ada:secret@a.test:8443/x?y'), 'https://a.test:8443/x?y');
  assert.equal(urlOf('https://token@a.test/'), 'https://a.test/');
});
