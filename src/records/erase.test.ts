/** Erasing from a real store: interruptions, and how long it blocks the event loop. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { createSealer } from '../std/seal.ts';
import { openEmptyStore } from '../store/conformance/empty-store.ts';
import {
  allEvents,
  failAttempt,
  makeRunning,
  makeWorkflow,
  readVersion,
  stageRecords,
} from '../store/conformance/setup.ts';
import type { Store } from '../store/store.ts';
import { type ErasureReport, erase } from './erase.ts';
import { exportPerson } from './export-person.ts';

const EMAIL = 'ada@example.com';
const sealer = createSealer(randomBytes(32));

async function publish(
  store: Store,
  at: { teamId: string; workflowId: string },
  records: readonly { id: string }[],
): Promise<void> {
  const held = await makeRunning(store, at);
  const bodies = records.map((record) => ({ id: record.id, body: JSON.stringify(record) }));
  const seqs: number[] = [];
  for (let start = 0; start < bodies.length; start += 500) {
    seqs.push(...(await stageRecords(store, held, 'replace', bodies.slice(start, start + 500))));
  }
  const seen = new Set(seqs);
  const current = await store.records.currentSeqs({ held, afterSeq: 0, rows: 1_000_000 });
  const unseen = current.seqs.filter((seq) => !seen.has(seq));
  if (unseen.length > 0) await store.records.remove({ held, seqs: unseen });
  const state = JSON.stringify({ last: EMAIL });
  await store.records.publish({ held, mode: 'replace', fields: ['id'], state });
}

/** Two records of the person in two workflows, one with an earlier address; an error, and a state. */
async function plant(store: Store) {
  const people = await makeWorkflow(store);
  const crm = await makeWorkflow(store, { id: 'crm' });
  const bob = { id: 'b', email: 'bob@example.com' };
  await publish(store, people, [{ id: 'a', name: 'Ada' } as { id: string }, bob]);
  await publish(store, people, [{ id: 'a', email: EMAIL } as { id: string }, bob]);
  await publish(store, people, [{ id: 'a', email: 'king@example.com' } as { id: string }, bob]);
  await publish(store, crm, [{ id: '0042-of-ada', email: EMAIL } as { id: string }, bob]);
  await failAttempt(store, await makeRunning(store, crm), { error: `no ${EMAIL}\nthere` });
  return { people, crm };
}

const request = (teamId: string) => ({
  teamId,
  workflowId: null,
  email: EMAIL,
  id: null,
  dryRun: false,
  suppress: false,
});
const depsOf = (store: Store) => ({ store, sealer, directories: [], forget: async () => {} });

/** A store whose erasure fails at one write, as if the process had been killed before this write. */
function failingAt(store: Store, count: number): Store {
  let writes = 0;
  const failing = <Operation extends (input: never) => Promise<unknown>>(operation: Operation) =>
    (async (input: never) => {
      if (writes++ === count) throw new Error('killed');
      return operation(input);
    }) as unknown as Operation;
  const { rewrite, remove, scrub } = store.erasure;
  const erasure = {
    ...store.erasure,
    rewrite: failing(rewrite),
    remove: failing(remove),
    scrub: failing(scrub),
  };
  return { ...store, erasure, audit: { ...store.audit, add: failing(store.audit.add) } };
}

test('an erasure that was interrupted at any write is completed by the next one', async (t) => {
  for (let count = 0; ; count += 1) {
    const { store } = await openEmptyStore(t);
    const { people, crm } = await plant(store);
    const failed = await erase(depsOf(failingAt(store, count)), request(people.teamId)).then(
      () => false,
      (error: Error) => error.message === 'killed',
    );
    const report = await erase(depsOf(store), request(people.teamId));
    assert.deepEqual(report.left, []);
    assert.equal(report.disk?.tracesLeft, false);
    for (const version of [1, 2, 3]) {
      assert.deepEqual(await readVersion(store, { ...people, version }), [
        { id: 'b', email: 'bob@example.com' },
      ]);
    }
    assert.equal((await store.records.version(crm))?.total, 1);
    const events = JSON.stringify(await allEvents(store, people.teamId));
    assert.doesNotMatch(events, /ada@|of-ada|king@|Ada/);
    assert.match(events, /bob@example.com/);
    const again = await erase(depsOf(store), { ...request(people.teamId), dryRun: true });
    assert.deepEqual(again.found, []);
    if (!failed) {
      assert.ok(count >= 5, `${count} writes`);
      return;
    }
  }
});

test('an erasure removes the extremes from the profiles of workflows that have records of the person', async (t) => {
  const { store } = await openEmptyStore(t);
  const age = { name: 'age', present: 2, filled: 2, kinds: { integer: 2 }, min: 3, max: 99 };
  const born = {
    name: 'born',
    present: 1,
    filled: 1,
    kinds: { date: 1 },
    earliest: '1815-12-10',
    latest: '1815-12-10',
  };
  const name = { name: 'name', present: 2, filled: 2, kinds: { text: 2 }, shortest: 3, longest: 300 };
  const profile = { records: 2, duplicates: 0, fields: [age, born, name], omitted: 0 };
  const run = async (id: string, records: readonly object[], asides: readonly object[] = []) => {
    const at = await makeWorkflow(store, { id });
    const held = await makeRunning(store, at);
    const bodies = records.map((record, n) => ({
      id: String(n),
      body: JSON.stringify({ id: String(n), ...record }),
    }));
    await stageRecords(store, held, 'replace', bodies);
    const added = asides.map((one) => {
      const body = JSON.stringify({ id: 'z', ...one });
      return { id: 'z', position: 3, body, bytes: body.length, reasons: [] };
    });
    if (added.length > 0) await store.quarantine.stage({ held, first: 1, released: [], added });
    await store.records.publish({ held, fields: ['id'], state: undefined, observed: { profile } });
    return at;
  };
  const theirs = await run('theirs', [
    { email: EMAIL, age: 99 },
    { email: 'bob@example.com', age: 3 },
  ]);
  const aside = await run('aside', [{ email: 'bob@example.com' }], [{ email: EMAIL }]);
  const others = await run('others', [{ email: 'bob@example.com' }]);

  const would = await erase(depsOf(store), { ...request(theirs.teamId), dryRun: true });
  const { found } = await erase(depsOf(store), request(theirs.teamId));
  assert.deepEqual(would.found, found);
  assert.deepEqual(
    found.filter(({ place }) => place === 'profile').map(({ workflowId, count }) => [workflowId, count]),
    [
      ['theirs', 1],
      ['aside', 1],
    ],
  );
  const without = [
    { name: 'age', present: 2, filled: 2, kinds: { integer: 2 } },
    { name: 'born', present: 1, filled: 1, kinds: { date: 1 } },
    { name: 'name', present: 2, filled: 2, kinds: { text: 2 } },
  ];
  for (const [at, fields] of [
    [theirs, without],
    [aside, without],
    [others, profile.fields],
  ] as const) {
    assert.deepEqual(
      (await store.profiles.list({ ...at, limit: 9 })).map((one) => one.fields),
      [fields],
    );
  }
});

test('an erasure whose scrubbing fails, as on a full disk, is in the audit log', async (t) => {
  const { store } = await openEmptyStore(t);
  const { people } = await plant(store);
  const scrub = () => Promise.reject(new Error('the disk is full'));
  const failing = { ...store, erasure: { ...store.erasure, scrub } };
  await assert.rejects(erase(depsOf(failing), request(people.teamId)), /the disk is full/);
  const { lines } = await store.audit.list({ teamId: people.teamId, limit: 10 });
  assert.deepEqual(
    lines.map(({ action, details }) => [action, (details as ErasureReport).disk]),
    [['records.erase', null]],
  );
});

test('a person in the log and progress of a run is found, exported and erased', async (t) => {
  const { store } = await openEmptyStore(t);
  const at = await makeWorkflow(store);
  const held = await makeRunning(store, at);
  const said = ['Started', `Read "${EMAIL}", 42 years old`, 'Read bob@example.com'];
  const lines = said.map((text, n) => ({ seq: n + 1, at: 1_000, level: 'info' as const, text }));
  const progress = { records: 12345678, bytes: 5, pages: null, message: `At ${EMAIL}` };
  await store.jobs.report({ held, lines, progress });

  const exported: string[] = [];
  for await (const entry of exportPerson(store, { teamId: at.teamId, email: EMAIL })) exported.push(entry);
  assert.deepEqual(
    exported.map((entry) => (JSON.parse(entry) as { place: string }).place),
    ['jobLog', 'jobProgress'],
  );
  assert.match(exported[0] ?? '', /42 years/);
  assert.doesNotMatch(exported.join(), /bob@/);

  const report = await erase(depsOf(store), request(at.teamId));
  const found = report.found.map(({ workflowId, place, count }) => [workflowId, place, count]);
  assert.deepEqual(found, [
    ['people', 'jobLog', 1],
    ['people', 'jobProgress', 1],
  ]);
  assert.equal(report.disk?.tracesLeft, false);
  const log = await store.jobs.log({ ...held, afterSeq: 0, limit: 10 });
  assert.deepEqual(log, [lines[0], { ...lines[1], text: '[erased]' }, lines[2]]);
  const job = await store.jobs.get({ teamId: at.teamId, id: held.jobId });
  assert.deepEqual(job?.progress, { ...progress, message: '[erased]' });
});

test('a person in what rules have sent, found out and kept is exported and erased', async (t) => {
  const { store } = await openEmptyStore(t);
  const at = await makeWorkflow(store);
  const { teamId, workflowId } = at;
  const rule = {
    filter: 'record.x',
    format: 'template',
    template: {},
    firstVersion: null,
    cooldownMs: 9_000,
    digest: null,
    timeZone: null,
  } as const;
  const made = await store.webhooks.subscribe({
    ...at,
    url: 'https://a.example',
    events: ['workflow_data_change'],
    secret: '',
    limit: 9,
    rule,
  });
  assert.ok('webhook' in made);
  const webhookId = made.webhook.id;
  const bob = { id: 'b', name: 'Bob' };
  const bodies = [JSON.stringify(`Ada, ${EMAIL}, and Bob`), '{"text":"Lovelace and Bob"}', null];
  for (const [n, body] of bodies.entries()) {
    await publish(store, at, [
      { id: 'a', email: EMAIL, n } as { id: string },
      { ...bob, n } as { id: string },
    ]);
    const { decisions } = await store.decisions.pending({ teamId, limit: 9, now: store.now() });
    assert.ok(decisions[0]);
    const { turn, rewrites, sequence, revision } = decisions[0];
    const row = (id: string, text: object) => {
      const newest = JSON.stringify({ id, ...text });
      return {
        workflowId,
        id,
        until: store.now() + 9_000,
        sent: null,
        newest,
        sequence,
        revision,
        matches: null,
      };
    };
    const quiet = { set: [row('a', {}), row('c', { email: EMAIL }), row('b', { friend: EMAIL })] };
    const step = { webhookId, workflowId, sequence, turn, rewrites, quiet };
    const mistake = { at: 1, eventId: 'evt_1', recordId: 'a', message: 'Lovelace is not a number' };
    const outcome = { state: 'sent', body, messageId: null } as const;
    await store.decisions.step({
      teamId,
      steps: [
        body === null
          ? { ...step, mistake, progress: { differences: [{ id: 'a', value: 'Lovelace' }] } }
          : { ...step, outcome, matched: 1, examined: 2, reason: null },
      ],
    });
  }
  const [before] = (await store.decisions.pending({ teamId, limit: 9, now: store.now() })).decisions;

  const exported: string[] = [];
  for await (const entry of exportPerson(store, { teamId, email: EMAIL })) exported.push(entry);
  assert.doesNotMatch(exported.join(), /Bob/);
  const places = new Set(exported.map((entry) => (JSON.parse(entry) as { place: string }).place));
  assert.deepEqual(
    places,
    new Set([
      'record',
      'state',
      'deliveryBody',
      'decisionProgress',
      'ruleMistake',
      'quietRecord',
      'quietNewest',
      'event',
    ]),
  );

  await erase(depsOf(store), request(teamId));
  const deliveries = await store.deliveries.list({ teamId, webhookId, limit: 9 });
  for (const { id } of deliveries) {
    assert.equal((await store.deliveries.get({ teamId, id }))?.body, '"[erased]"');
  }
  const [after] = (await store.decisions.pending({ teamId, limit: 9, now: store.now() })).decisions;
  assert.ok(before && after);
  assert.deepEqual(after.progress, {});
  assert.ok(after.rewrites > before.rewrites, 'steps that were computed before it do not count');
  const rows = await store.decisions.quiet({ teamId, webhookId, workflowId, ids: ['a', 'b', 'c'] });
  assert.deepEqual(
    rows.map(({ id }) => id),
    ['b'],
    'other people keep their cooldowns',
  );
  const mistake = (await store.webhooks.get({ teamId, id: webhookId }))?.ruleMistake;
  assert.deepEqual([mistake?.recordId, mistake?.message], [null, '[erased]']);
  const again = await erase(depsOf(store), { ...request(teamId), dryRun: true });
  assert.deepEqual(again.found, []);
});

test('an export contains no data of other people, although events concern several people', async (t) => {
  const { store } = await openEmptyStore(t);
  const at = await makeWorkflow(store);
  const ada = { id: 'a', email: EMAIL, plan: 'gold' };
  await publish(store, at, [ada, { id: 'b', email: 'bob@example.com', friend: EMAIL } as { id: string }]);
  const events = await allEvents(store, at.teamId);
  const body = events.find(({ type }) => type === 'workflow_data_change')?.body ?? '';
  assert.match(body, /gold.*bob@/);
  const of = { teamId: at.teamId, id: 'insp_0' };
  await store.inspectors.create({ ...of, status: 204, delayMs: 0, forMs: 60_000, most: 1 });
  for (const sent of [body, `{"data":{"differences":5},"to":"${EMAIL}"}`]) {
    const { length: bodyBytes } = sent;
    const signature = { verdict: 'absent', message: '', webhookId: null } as const;
    const request = {
      method: 'POST',
      path: '/',
      headers: {},
      body: sent,
      bodyBytes,
      truncated: false,
      signature,
    };
    await store.inspectors.storeRequest({ ...of, workflowId: at.workflowId, request, most: 10 });
  }
  const found: Record<string, unknown>[] = [];
  for await (const entry of exportPerson(store, { teamId: at.teamId, email: EMAIL })) {
    assert.doesNotMatch(entry, /bob@/);
    found.push(JSON.parse(entry));
  }
  const placed = (place: string) => found.filter((one) => one.place === place);
  const [{ differences }, forged] = placed('inspectedBody') as [{ differences: { id: string }[] }, object];
  assert.deepEqual(
    differences.map(({ id }) => id),
    ['a'],
  );
  assert.ok(JSON.stringify(forged).includes(EMAIL));
  const [{ id: eventId } = {}] = events.filter((one) => one.body === body);
  assert.ok(placed('event').some((one) => one.id === eventId && JSON.stringify(one).includes('gold')));
});

test('an id is erased in all workflows by default', async (t) => {
  const { store } = await openEmptyStore(t);
  const { people, crm } = await plant(store);
  const byId = { ...request(people.teamId), email: null, id: 'b' };
  await erase(depsOf(store), { ...byId, workflowId: 'crm' });
  assert.equal((await store.records.version(people))?.total, 2);
  assert.equal((await store.records.version(crm))?.total, 1);
  await erase(depsOf(store), byId);
  assert.equal((await store.records.version(people))?.total, 1);
  assert.equal((await store.records.version(crm))?.total, 1);
});

test('does not block the event loop while it searches', async (t) => {
  const { store } = await openEmptyStore(t);
  const at = await makeWorkflow(store);
  const records = Array.from({ length: 20_000 }, (_, n) => ({
    id: String(n),
    email: `person${n}@example.com`,
  }));
  await publish(store, at, records);
  let turns = 0;
  let turn = setImmediate(function next() {
    turns += 1;
    turn = setImmediate(next);
  });
  const report = await erase(depsOf(store), { ...request(at.teamId), dryRun: true });
  clearImmediate(turn);
  assert.deepEqual(
    report.found.map(({ place }) => place),
    ['state'],
  );
  assert.ok(turns >= 10, `others had ${turns} turns`);
});
