/** The profiles of versions. */
import assert from 'node:assert/strict';
import type { Profile } from '../../model/quality/profile.ts';
import type { Mode } from '../../model/workflow.ts';
import { KEPT_PROFILES } from '../operations/quality/profiles.ts';
import type { Store } from '../store.ts';
import { caseWith, makeRunning, makeWorkflow, type Open, people, publish, stageRecords } from './setup.ts';

/** A profile with a number by which the test recognizes it. */
export function profileOf(records: number, name = 'email'): Profile {
  const field = { name, present: records, filled: records, kinds: { text: records } };
  return { records, duplicates: 0, fields: [field], omitted: 0 };
}

export function testProfiles(open: Open): void {
  const it = caseWith(open);

  it('keeps the profile of each version, newest first', async ({ store }) => {
    const at = await makeWorkflow(store);
    await run(store, at, { email: 1 });
    const { teamId, jobId } = await run(store, at, { email: 2, mode: 'upsert' });
    assert.deepEqual(await store.profiles.list({ ...at, limit: 1 }), [
      { version: 2, jobId, mode: 'upsert', createdAt: store.now(), ...profileOf(2) },
    ]);
    const older = await store.profiles.list({ ...at, limit: 9, before: 2 });
    assert.deepEqual(
      older.map(({ version, records }) => [version, records]),
      [[1, 1]],
    );
    assert.deepEqual(await store.profiles.list({ teamId, workflowId: 'other', limit: 9 }), []);
  });

  it('keeps no profile of a run that changes nothing', async ({ store }) => {
    const at = await makeWorkflow(store);
    await run(store, at, { email: 1 });
    const held = await makeRunning(store, at);
    await stageRecords(store, held, 'replace', people({ 1: 'Ada' }));
    const unchanged = await publish(store, held, { observed: { profile: profileOf(9) } });
    assert.equal(unchanged.outcome, 'unchanged');
    assert.equal((await store.profiles.list({ ...at, limit: 9 })).length, 1);
  });

  it('compares runs that emit everything, and runs that emit changes, only with their own kind', async ({
    store,
  }) => {
    const at = await makeWorkflow(store);
    const modes: Mode[] = ['replace', 'upsert', 'append', 'replace', 'upsert'];
    for (const [index, mode] of modes.entries()) await run(store, at, { email: index + 1, mode });
    const held = await makeRunning(store, at);
    const earlier = async (mode: Mode, limit = 9) =>
      (await store.profiles.earlier({ held, mode, limit })).map(({ records }) => records);
    assert.deepEqual(await earlier('replace'), [4, 1]);
    assert.deepEqual(await earlier('upsert'), [5, 3, 2]);
    assert.deepEqual(await earlier('append', 2), [5, 3]);
  });

  it(`keeps ${KEPT_PROFILES} profiles`, async ({ store }) => {
    const at = await makeWorkflow(store);
    for (let count = 1; count <= KEPT_PROFILES + 2; count += 1) await run(store, at, { email: count });
    const kept = await store.profiles.list({ ...at, limit: 1_000 });
    assert.deepEqual([kept.length, kept.at(-1)?.version], [KEPT_PROFILES, 3]);
  });

  it('finds a person in the names of fields', async ({ store }) => {
    const at = await makeWorkflow(store);
    await run(store, at, { email: 1 }, 'ada@x.test');
    const place = 'profile' as const;
    const find = (workflowId: string | null) =>
      store.erasure.scanTexts({ teamId: at.teamId, workflowId, place, needles: ['ada@'], after: null });
    assert.deepEqual((await find('other')).texts, []);
    const [held] = (await find('people')).texts;
    assert.ok(held);
    const text = held.text.replace('ada@x.test', '[erased]');
    const texts = [{ key: held.key, was: held.text, text }];
    assert.equal(await store.erasure.rewrite({ teamId: at.teamId, place, texts }), 1);
    const [profile] = await store.profiles.list({ ...at, limit: 1 });
    assert.equal(profile?.fields[0]?.name, '[erased]');
  });

  it('finds profiles by the names of their properties', async ({ store }) => {
    const at = await makeWorkflow(store);
    await run(store, at, { email: 1 });
    const find = (name: string) =>
      store.erasure.scanTexts({ ...at, place: 'profile', needles: [`"${name}":`], after: null });
    assert.equal((await find('filled')).texts.length, 1);
    assert.deepEqual((await find('min')).texts, []);
  });
}

/** A run that adds a record, and whose profile has as many records as `email`. */
async function run(
  store: Store,
  at: { teamId: string; workflowId: string },
  { email, mode = 'replace' }: { email: number; mode?: Mode },
  field?: string,
) {
  const held = await makeRunning(store, at);
  await stageRecords(store, held, mode, people({ [email]: 'Ada' }));
  await publish(store, held, { mode, observed: { profile: profileOf(email, field) } });
  return held;
}
