/** Names of events, and what their bodies say. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { canonicalEvent, canonicalEvents, pausedData } from './event.ts';

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

test('tells the URL of a paused webhook as it was subscribed, but for user and password', () => {
  const urlOf = (url: string) => pausedData({ id: 'wh_1', url, pausedAt: 0, reason: 'It fails' }).url;
  assert.equal(urlOf('HTTPS://A.test:443?x=%7e'), 'HTTPS://A.test:443?x=%7e');
  assert.equal(urlOf('https://ada:secret@a.test:8443/x?y'), 'https://a.test:8443/x?y');
  assert.equal(urlOf('https://token@a.test/'), 'https://a.test/');
});
