/** Which of the first steps are done. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { countDone, type StepWorkflow, stepsOf } from './steps.ts';

const workflow = (id: string, rest: Partial<StepWorkflow> = {}): StepWorkflow => ({
  id,
  name: id,
  paused: false,
  version: 0,
  records: 0,
  source: { type: 'http' },
  ...rest,
});

test('offers the first runnable workflow of a new team, where no step is done', () => {
  const steps = stepsOf(
    [workflow('inbox', { source: { type: 'push' } }), workflow('held', { paused: true }), workflow('people')],
    0,
  );
  assert.equal(countDone(steps), 0);
  assert.equal(steps.toRun?.id, 'people');
  assert.equal(steps.toRead, undefined);
});

test('keeps the chosen workflow, unless it cannot be run', () => {
  const workflows = [workflow('a'), workflow('b'), workflow('c', { paused: true })];
  assert.equal(stepsOf(workflows, 0, 'b').toRun?.id, 'b');
  assert.equal(stepsOf(workflows, 0, 'c').toRun?.id, 'a');
});

test('counts a run without records as a run, but not as data', () => {
  const steps = stepsOf([workflow('a', { version: 1 })], 0);
  assert.deepEqual([steps.hasRun, steps.hasData, steps.hasWebhook], [true, false, false]);
});

test('is complete with records and a webhook', () => {
  const steps = stepsOf([workflow('a'), workflow('b', { version: 2, records: 5 })], 1);
  assert.equal(countDone(steps), 3);
  assert.equal(steps.toRead?.id, 'b');
});
