/** Records that a run sets aside: who sees them, what ends them, and how they are deleted. */
import assert from 'node:assert/strict';
import { FencedError } from '../../model/error.ts';
import type { AttemptLease } from '../../model/job.ts';
import { MOST_QUARANTINED, type SetAside } from '../../model/quality/quarantine.ts';
import type { Store } from '../store.ts';
import {
  allSteps,
  caseWith,
  failAttempt,
  jobOf,
  makeRunning,
  makeWorkflow,
  type Open,
  people,
  publish,
  publishRun,
  stageRecords,
} from './setup.ts';

const DAY_MS = 86_400_000;
const PRICE = { field: 'price', expectation: 'min', found: -1, limit: 0 };

type Place = { teamId: string; workflowId: string };

export function testQuarantine(open: Open): void {
  const it = caseWith(open);

  it('shows what a run has set aside when the run is published', async ({ store }) => {
    const at = await makeWorkflow(store);
    const held = await makeRunning(store, at);
    const [first, second] = [bad('a', 3), bad('b', 7, 'town')];
    await stage(store, held, { added: [first, second] });
    assert.deepEqual(await idsOf(store, at), []);
    assert.equal(await store.quarantine.get({ ...at, id: 'a' }), undefined);
    await publish(store, held);
    const job = await jobOf(store, held);
    assert.equal(job.quarantined, 2);
    const whole = { jobId: job.id, setAsideAt: store.now() };
    const { entries, next } = await store.quarantine.list({ ...at, limit: 10 });
    assert.deepEqual(entries, [
      { ...second, ...whole },
      { ...first, ...whole },
    ]);
    assert.equal(next, null);
    assert.deepEqual(await store.quarantine.get({ ...at, id: 'a' }), { ...first, ...whole });
    assert.equal(await store.quarantine.count(at), 2);
    for (const other of [await makeWorkflow(store, { id: 'x' }), await makeWorkflow(store, { team: 'x' })]) {
      assert.deepEqual(await idsOf(store, other), []);
      assert.equal(await store.quarantine.get({ ...other, id: 'a' }), undefined);
      assert.equal((await store.quarantine.drop({ ...other, limit: 9 })).dropped, 0);
    }
  });

  it('forgets what an attempt has staged without publishing', async ({ store, rows }) => {
    const at = await makeWorkflow(store);
    await setAside(store, at, bad('a', 1));
    const before = (await rows()).quarantined;
    const held = await makeRunning(store, at);
    await stage(store, held, { added: [bad('b', 1)], first: 2, released: ['a'] });
    assert.deepEqual(await idsOf(store, at), ['a'], 'the entry stays until the run is published');
    assert.notEqual(await store.quarantine.get({ ...at, id: 'a' }), undefined);
    await failAttempt(store, held);
    assert.deepEqual(await idsOf(store, at), ['a']);
    const next = await makeRunning(store, at);
    assert.ok(await allSteps(store.records.sweep, { held: next, limit: 1 }));
    assert.equal((await rows()).quarantined, before);
    await publish(store, next);
    assert.equal((await jobOf(store, next)).quarantined, 0);
    assert.deepEqual(await idsOf(store, at), ['a']);
  });

  it('ends an entry when its id is published again, and replaces it by a newer one', async ({ store }) => {
    const at = await makeWorkflow(store);
    await setAside(store, at, bad('a', 1), bad('b', 2), bad('c', 3));
    const held = await makeRunning(store, at);
    assert.deepEqual(await store.quarantine.keys({ held, after: '', limit: 2 }), {
      keys: ['=a', '=b'],
      next: '=b',
    });
    assert.deepEqual(await store.quarantine.keys({ held, after: '=b', limit: 2 }), {
      keys: ['=c'],
      next: null,
    });
    const newer = bad('b', 5, 'town');
    await stage(store, held, {
      first: 4,
      released: ['a', 'b'],
      added: [newer],
    });
    assert.deepEqual(await idsOf(store, at), ['c', 'b', 'a']);
    const published = await publish(store, held);
    assert.equal(published.outcome, 'unchanged');
    assert.deepEqual(await idsOf(store, at), ['b', 'c']);
    assert.deepEqual((await store.quarantine.get({ ...at, id: 'b' }))?.reasons, newer.reasons);
    assert.equal((await jobOf(store, held)).quarantined, 1);
  });

  it('sets nothing aside that the same run delivered well later', async ({ store, rows }) => {
    const at = await makeWorkflow(store);
    const held = await makeRunning(store, at);
    await stage(store, held, { added: [bad('a', 1), bad('b', 2)] });
    await stage(store, held, { first: 2_001, released: ['a'] });
    await stage(store, held, { first: 2_002, released: ['b'], added: [bad('b', 2_002)] });
    await publish(store, held);
    const { entries } = await store.quarantine.list({ ...at, limit: 10 });
    assert.deepEqual(
      entries.map(({ id, position }) => [id, position]),
      [['b', 2_002]],
    );
    assert.equal((await jobOf(store, held)).quarantined, 1);
    assert.equal((await rows()).quarantined, 1);
    const again = await makeRunning(store, at);
    await stage(store, again, { added: [bad('c', 1)] });
    await stage(store, again, { first: 9, released: ['c'] });
    assert.equal((await publish(store, again)).outcome, 'unchanged');
    await setAside(store, at, bad('d', 1));
    assert.deepEqual(await idsOf(store, at), ['d', 'b']);
  });

  it('changes nothing when a batch is staged twice', async ({ store }) => {
    const at = await makeWorkflow(store);
    await setAside(store, at, bad('a', 1), bad('b', 2));
    const held = await makeRunning(store, at);
    const batch = { first: 3, released: ['a'], added: [bad('a', 3), bad('c', 4)] };
    for (let n = 0; n < 3; n++) await stage(store, held, batch);
    await publish(store, held);
    assert.equal((await jobOf(store, held)).quarantined, 2);
    assert.deepEqual(await idsOf(store, at), ['c', 'a', 'b']);
  });

  it('ends large entries in several transactions, and adds after the last', async ({ store }) => {
    const at = await makeWorkflow(store);
    const large = ['a', 'b', 'c'].map((id, n) => bad(id, n + 1, 'price', 'x'.repeat(700_000)));
    for (const one of large) await setAside(store, at, one);
    const held = await makeRunning(store, at);
    const batch = { first: 9, released: ['a', 'b', 'c'], added: [bad('a', 9)] };
    const step = await store.quarantine.stage({ held, ...batch });
    assert.equal(step.done, step.handled === 3);
    await stage(store, held, batch);
    await publish(store, held);
    assert.deepEqual(await idsOf(store, at), ['a']);
    assert.equal((await jobOf(store, held)).quarantined, 1);
  });

  it('refuses the writes of an attempt that no longer runs', async ({ store }) => {
    const at = await makeWorkflow(store);
    const held = await makeRunning(store, at);
    await failAttempt(store, held);
    await assert.rejects(stage(store, held, { added: [bad('a', 1)] }), FencedError);
    await assert.rejects(store.quarantine.keys({ held, after: '', limit: 9 }), FencedError);
  });

  it('lists entries in pages by job, field and id, newest first', async ({ store }) => {
    const at = await makeWorkflow(store);
    const jobs = [
      await setAside(store, at, bad('a', 1), bad('b', 2, 'town')),
      await setAside(store, at, bad('c', 1), bad('d', 2, 'to"wn'), bad('e', 3)),
    ];
    const read = async (selection: Partial<Parameters<Store['quarantine']['list']>[0]>) => {
      const found: string[] = [];
      for (let after: { run: number; position: number } | undefined; ; ) {
        const page = await store.quarantine.list({ ...at, ...selection, after, limit: 2 });
        assert.ok(page.entries.length <= 2);
        found.push(...page.entries.map(({ id }) => id));
        if (page.next === null) return found.join('');
        after = page.next;
      }
    };
    assert.equal(await read({}), 'edcba');
    assert.equal(await read({ jobId: jobs[0] }), 'ba');
    assert.equal(await read({ untilJobId: jobs[0] }), 'ba');
    assert.equal(await read({ field: 'price' }), 'eca');
    assert.equal(await read({ field: 'town' }), 'b');
    assert.equal(await read({ field: 'to"wn' }), 'd');
    assert.equal(await read({ ids: ['e', 'a', 'x'] }), 'ea');
    assert.equal(await read({ ids: [] }), '');
    assert.equal(await read({ ids: ['a', 'b', 'c'], field: 'price', jobId: jobs[1] }), 'c');
  });

  it('lists fewer entries per page if they are large', async ({ store }) => {
    const at = await makeWorkflow(store);
    for (let n = 0; n < 6; n++) await setAside(store, at, bad(`${n}`, 1, 'price', 'x'.repeat(250_000)));
    const { entries, next } = await store.quarantine.list({ ...at, limit: 10 });
    assert.deepEqual(
      entries.map(({ id }) => id),
      ['5', '4', '3', '2'],
    );
    assert.deepEqual(await idsOf(store, at, { after: next ?? undefined }), ['1', '0']);
  });

  it('finds records with the longest ids, and with any character', async ({ store }) => {
    const at = await makeWorkflow(store);
    const ids = ['é'.repeat(1_024), `${'é'.repeat(1_023)}x`, '\\"%_\u0001', '🙂'];
    await setAside(store, at, ...ids.map((id, n) => bad(id, n + 1)));
    for (const id of ids) assert.equal((await store.quarantine.get({ ...at, id }))?.id, id);
    assert.equal((await store.quarantine.list({ ...at, ids, limit: 9 })).entries.length, 4);
    const held = await makeRunning(store, at);
    await stage(store, held, { first: 9, released: ids.slice(1) });
    await publish(store, held);
    assert.deepEqual(await idsOf(store, at), [ids[0]]);
  });

  it('drops selected entries in steps', async ({ store }) => {
    const at = await makeWorkflow(store);
    await setAside(store, at, bad('a', 1), bad('b', 2, 'town'), bad('c', 3), bad('d', 4));
    assert.deepEqual(await store.quarantine.drop({ ...at, field: 'price', limit: 2 }), {
      dropped: 2,
      done: false,
    });
    assert.deepEqual(await idsOf(store, at), ['b', 'a']);
    assert.deepEqual(await store.quarantine.drop({ ...at, field: 'price', limit: 2 }), {
      dropped: 1,
      done: true,
    });
    assert.deepEqual(await store.quarantine.drop({ ...at, ids: ['a', 'b'], limit: 2 }), {
      dropped: 1,
      done: true,
    });
    assert.equal(await store.quarantine.count(at), 0);
  });

  it('publishes a run that ends entries which are dropped meanwhile', async ({ store }) => {
    const at = await makeWorkflow(store);
    await setAside(store, at, bad('a', 1), bad('b', 2));
    const held = await makeRunning(store, at);
    await stage(store, held, { released: ['a'], added: [bad('c', 2)] });
    assert.equal((await store.quarantine.drop({ ...at, limit: 9 })).dropped, 2);
    await publish(store, held);
    assert.deepEqual(await idsOf(store, at), ['c']);
  });

  it('finds the published record with an id, also while a run replaces it', async ({ store }) => {
    const at = await makeWorkflow(store);
    await publishRun(store, at, { a: 'Ada', b: 'Bob' });
    await publishRun(store, at, { a: 'Ada' });
    const find = (id: string) => store.quarantine.published({ ...at, id });
    const ada = JSON.stringify({ id: 'a', name: 'Ada' });
    assert.deepEqual(await Promise.all(['a', 'b', 'c'].map(find)), [ada, undefined, undefined]);
    const held = await makeRunning(store, at);
    await stageRecords(store, held, 'upsert', people({ a: 'Eve', c: 'Cid' }));
    assert.deepEqual(await Promise.all(['a', 'b', 'c'].map(find)), [ada, undefined, undefined]);
    const isThere = (id: string) => store.quarantine.isPublished({ ...at, id });
    assert.deepEqual(await Promise.all(['a', 'b', 'c'].map(isThere)), [true, false, false]);
    await publish(store, held);
    assert.equal(await find('a'), JSON.stringify({ id: 'a', name: 'Eve' }));
  });

  it('prunes entries that have ended or are old, and keeps the others', async ({ store, advance, rows }) => {
    const at = await makeWorkflow(store);
    const keepMs = 30 * DAY_MS;
    await setAside(store, at, bad('a', 1), bad('b', 2), bad('c', 3));
    advance(DAY_MS);
    await setAside(store, at, bad('d', 1));
    const held = await makeRunning(store, at);
    await stage(store, held, { released: ['b'] });
    await publish(store, held);
    assert.equal((await rows()).quarantined, 4);
    const { teamId } = at;
    assert.deepEqual(await store.quarantine.prune({ teamId, keepMs, limit: 10 }), {
      done: true,
      next: 'people',
      at: store.now() + keepMs - DAY_MS,
    });
    assert.equal((await rows()).quarantined, 3);
    advance(keepMs - DAY_MS);
    assert.ok((await allSteps(store.quarantine.prune, { teamId, keepMs, limit: 1 })) > 1);
    assert.deepEqual(await idsOf(store, at), ['d']);
    advance(DAY_MS);
    await allSteps(store.quarantine.prune, { teamId, keepMs, limit: 10 });
    assert.equal((await rows()).quarantined ?? 0, 0);
  });

  it('keeps only the newest entries of a large quarantine', async ({ store }) => {
    const at = await makeWorkflow(store);
    const other = await makeWorkflow(store, { id: 'zoo' });
    await setAside(store, other, bad('a', 1));
    const runs = MOST_QUARANTINED.records / 1_000 + 1;
    for (let run = 0; run < runs; run++) {
      const batch = Array.from({ length: 1_000 }, (_, n) => bad(`${run}-${n}`, n + 1));
      await setAside(store, at, ...batch);
    }
    assert.equal(await store.quarantine.count(at), MOST_QUARANTINED.records + 1_000);
    await allSteps(store.quarantine.prune, { teamId: at.teamId, keepMs: DAY_MS, limit: 400 });
    assert.equal(await store.quarantine.count(at), MOST_QUARANTINED.records);
    assert.equal(await store.quarantine.get({ ...at, id: '0-999' }), undefined);
    assert.notEqual(await store.quarantine.get({ ...at, id: '1-0' }), undefined);
    assert.equal(await store.quarantine.count(other), 1);
  });

  it('erases the records of a person, and what reasons quote', async ({ store }) => {
    const at = await makeWorkflow(store);
    const quoted = { ...PRICE, found: 'ada@x.test' };
    const ada = { ...bad('a', 1), body: '{"id":"a","email":"ada@x.test"}' };
    await setAside(store, at, ada, { ...bad('b', 2), reasons: [quoted] });
    const search = { ...at, needles: ['ada@'], after: null };
    const [held, ...others] = (await store.erasure.scanTexts({ ...search, place: 'quarantined' })).texts;
    assert.deepEqual([held?.text, held?.workflowId, others], [ada.body, at.workflowId, []]);
    const [reasons] = (await store.erasure.scanTexts({ ...search, place: 'quarantineReasons' })).texts;
    assert.deepEqual(JSON.parse(reasons?.text ?? ''), [quoted]);
    const { teamId } = at;
    const texts = [{ key: held?.key ?? '', was: held?.text ?? '', text: '' }];
    assert.equal(await store.erasure.rewrite({ teamId, place: 'quarantined', texts }), 1);
    assert.deepEqual(await idsOf(store, at), ['b']);
  });

  it('ends a job that may be accepting the record of a person who is erased', async ({ store }) => {
    const at = await makeWorkflow(store);
    await setAside(store, at, bad('a', 1));
    const held = await makeRunning(store, at);
    const { texts } = await store.erasure.scanTexts({
      ...at,
      place: 'quarantined',
      needles: ['a'],
      after: null,
    });
    const gone = texts.map(({ key, text }) => ({ key, was: text, text: '' }));
    assert.equal(await store.erasure.rewrite({ teamId: at.teamId, place: 'quarantined', texts: gone }), 1);
    await assert.rejects(stageRecords(store, held, 'upsert', people({ a: 'Ada' })), FencedError);
  });

  it('searches a few records at a time for a person if they are large', async ({ store }) => {
    const at = await makeWorkflow(store);
    for (let n = 0; n < 4; n++) await setAside(store, at, bad(`${n}`, 1, 'price', 'x'.repeat(1_048_000)));
    const found: number[] = [];
    for (let after: string | null = null; ; ) {
      const search = { ...at, place: 'quarantined', needles: ['xxx'], after } as const;
      const page: Awaited<ReturnType<Store['erasure']['scanTexts']>> = await store.erasure.scanTexts(search);
      if (page.next === null) break;
      found.push(page.texts.length);
      after = page.next;
    }
    assert.deepEqual(found, [3, 1]);
  });
}

function bad(id: string, position: number, field = 'price', name = 'bad'): SetAside {
  const body = JSON.stringify({ id, name });
  return { id, position, body, bytes: Buffer.byteLength(body), reasons: [{ ...PRICE, field }] };
}

type Batch = Partial<Omit<Parameters<Store['quarantine']['stage']>[0], 'held'>>;

/** Stages a batch, in as many transactions as it takes. */
async function stage(store: Store, held: AttemptLease, batch: Batch): Promise<void> {
  const { first = 1, released = [], added = [] } = batch;
  for (let from = 0; ; ) {
    const part = released.slice(from);
    const { handled, done } = await store.quarantine.stage({ held, first, released: part, added });
    if (done) return;
    assert.ok(handled > 0);
    from += handled;
  }
}

/** Publishes a run that has only bad records. Returns the id of its job. */
async function setAside(store: Store, at: Place, ...added: SetAside[]): Promise<string> {
  const held = await makeRunning(store, at);
  await stage(store, held, { added });
  await publish(store, held);
  return held.jobId;
}

async function idsOf(
  store: Store,
  at: Place,
  changes: Partial<Parameters<Store['quarantine']['list']>[0]> = {},
): Promise<string[]> {
  const { entries } = await store.quarantine.list({ ...at, limit: 100, ...changes });
  return entries.map(({ id }) => id);
}
