/** Names of events, and their bodies. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { canonicalEvent, canonicalEvents, eventNameMistake, eventNamesMistake, pausedData } from './event.ts';

test('maps names of other products to event types, regardless of case', () => {
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

test('separates unknown names, including properties that every object inherits', () => {
  assert.deepEqual(canonicalEvents(['job.completed', 'tea.ready', 'constructor', '__proto__']), {
    known: ['workflow_finished'],
    unknown: ['tea.ready', 'constructor', '__proto__'],
  });
});

test('suggests the most similar name for one that never fires', () => {
  for (const fires of ['workflow_finished', 'Job.Finished', '*', 'all', 'data.changed']) {
    assert.equal(eventNameMistake(fires), undefined, fires);
  }
  const mistake = '"job.finishd" never fires here; did you mean "job.finished"?';
  assert.equal(eventNameMistake('job.finishd'), mistake);
  assert.equal(eventNamesMistake(['workflow_failed', 'job.finishd', 'tea.ready']), mistake);
  assert.equal(
    eventNameMistake('workflow-data-chnage'),
    '"workflow-data-chnage" never fires here; did you mean "workflow_data_change"?',
  );
  assert.equal(eventNameMistake('__proto__'), '"__proto__" never fires here');
  assert.match(
    String(eventNamesMistake(['tea.ready'])),
    /^"tea\.ready" never fires here; the events are workflow_queued, .*, and \* for all$/,
  );
});

test('reports the URL of a paused webhook as subscribed, without user and password', () => {
  const urlOf = (url: string) => pausedData({ id: 'wh_1', url, pausedAt: 0, reason: 'It fails' }).url;
  assert.equal(urlOf('HTTPS://A.test:443?x=%7e'), 'HTTPS://A.test:443?x=%7e');
  assert.equal(urlOf('https://ada:secret@a.test:8443/x?y'), 'https://a.test:8443/x?y');
  assert.equal(urlOf('https://token@a.test/'), 'https://a.test/');
});
