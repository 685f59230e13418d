/** Turns of a team, with decisions that the test makes up. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DEFAULT_RULE } from '../../model/rule.ts';
import type { PendingDecision } from '../../store/operations/rules/decisions.ts';
import { DifferencePages } from './compared-records.ts';
import { takeTurn } from './turn.ts';

function pending(webhookId: string, { body }: { body: string }): PendingDecision {
  return {
    webhookId,
    sequence: 1,
    eventId: 'evt_1',
    type: 'workflow_finished',
    workflowId: 'prices',
    jobId: null,
    body,
    createdAt: 0,
    revision: 1,
    rule: { ...DEFAULT_RULE, filter: 'event.type == "workflow_finished"' },
    isTest: false,
    progress: null,
    hasQuiet: false,
    turn: 0,
    rewrites: 0,
  };
}

const never = () => Promise.reject(new Error('This must not be read'));
const watched = { enter() {}, begin() {}, pause() {} };

test('a decision that fails keeps no other webhook from its step', async () => {
  const decisions = [pending('wh_a', { body: 'not JSON' }), pending('wh_b', { body: '{"data":{}}' })];
  const reader = {
    records: { changes: never, compare: never, page: never, version: never },
    decisions: {
      pending: async () => ({ decisions, ended: [] }),
      quiet: never,
      ended: never,
      forPeople: never,
      digest: never,
      endedDigest: never,
    },
  };
  const turn = { teamId: 'team', now: 0, publicUrl: '', last: null, except: [], slow: [] };
  const { decided, failed } = await takeTurn(turn, { reader, pages: new DifferencePages(reader), watched });
  assert.deepEqual(
    decided.map(({ step, outcome }) => [step.webhookId, outcome]),
    [['wh_b', 'sent']],
  );
  assert.deepEqual(
    failed.map(({ webhookId }) => webhookId),
    ['wh_a'],
  );
});
