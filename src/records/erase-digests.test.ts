/** Erasing a person from digests: those that were sent, and those that are still open. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { setUpRules } from '../../test/support/webhooks/rules.ts';
import { createSealer } from '../std/seal.ts';
import { failAttempt, makeRunning } from '../store/conformance/setup.ts';
import { erase } from './erase.ts';
import { exportPerson } from './export-person.ts';

const EMAIL = 'ada@example.com';
const HOUR_MS = 3_600_000;
const sealer = createSealer(randomBytes(32));

for (const scope of ['team', 'workflow'] as const) {
  test(`a person is exported and erased from digests that were sent and are open, in a ${scope}`, async (t) => {
    const set = await setUpRules(t);
    const { store, teamId, at } = set;
    const engine = set.engine();
    const events = ['workflow_data_change', 'workflow_failed'];
    const digest = { everyMs: HOUR_MS };
    const all = { ...at, workflowId: null } as unknown as typeof at;
    const plain = await set.subscribe({ digest, firstVersion: 'send' }, events, all);
    const mailed = await set.subscribe({ digest, firstVersion: 'send', format: 'slack' }, events);
    const ada = { email: EMAIL, name: 'Lovelace', city: 'London' };
    await set.publish({ a: ada, b: { name: 'Bob', city: 'Rome' } });
    await engine.tick();
    set.advance(HOUR_MS);
    await engine.tick();
    await set.publish({ a: { ...ada, city: 'Paris' }, b: { name: 'Bob' } });
    await failAttempt(store, await makeRunning(store, at), { error: `no response about ${EMAIL}` });
    await engine.tick();
    const exported: string[] = [];
    for await (const one of exportPerson(store, { teamId, email: EMAIL })) exported.push(one);
    assert.match(exported.filter((one) => /webhook_digest/.test(one)).join(), /Lovelace/);
    assert.doesNotMatch(exported.join(), /Bob/);

    const workflowId = scope === 'team' ? null : at.workflowId;
    await erase(
      { store, sealer, directories: [], forget: async () => {} },
      { teamId, workflowId, email: EMAIL, id: null, dryRun: false, suppress: false, rewrite: false },
    );
    set.advance(HOUR_MS);
    await engine.tick();
    for (const webhookId of [plain, mailed]) {
      const texts = (await set.sent(webhookId)).map((one) => JSON.stringify(one));
      assert.equal(texts.length, 2);
      assert.doesNotMatch(texts.join(), /ada@|Lovelace|London|Paris/);
    }
    const digests = (await set.sent(plain)).map(({ data }) => data);
    assert.deepEqual(
      digests.map(({ matched }) => matched),
      [2, 2],
    );
  });
}
