/** What history costs on SQLite, in statements and pages: with 500 versions not more than with 50. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { silentLogger } from '../../src/observe/log.ts';
import { makeWorkflow, publishRun } from '../../src/store/conformance/setup.ts';
import { openStore } from '../../src/store/open.ts';
import { changes } from '../../src/store/operations/history/changes.ts';
import { recordChanges } from '../../src/store/operations/history/record-history.ts';
import { summaries } from '../../src/store/operations/job-lists.ts';
import { prunable, versionAt } from '../../src/store/operations/versions.ts';
import { Counter, type Work } from '../support/store/count-work.ts';

/** Rows per step of a pruning, the most that `store/retention.ts` asks for. */
const LIMIT = 500;
/** Records that each version changes. */
const CHANGED = 20;

/** Maximum cost: statements, pages read, pages written. If you raise a number, explain why. */
const MOST: Record<string, [statements: number, read: number, written: number]> = {
  'the version of a time': [3, 40, 0],
  'a page of changes of the newest version': [2, 40, 0],
  'a page of the changes of a record': [4, 40, 0],
  'the history of a workflow in its summary': [3, 20, 0],
  'workflows are searched for old versions': [2, 12, 0],
  // SQLite deletes four rows per statement, because rows may be long.
  'a step of a pruning': [640, 240, 240],
};

test('reading history and a step of pruning cost the same with ten times the versions', {
  skip: process.platform === 'linux' ? false : 'pages are counted with /proc',
}, async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-history-'));
  t.after(() => rm(directory, { recursive: true, force: true }));
  const few = await countAll(join(directory, 'few.db'), 50);
  const many = await countAll(join(directory, 'many.db'), 500);
  const problems: string[] = [];
  for (const [name, [statements, read, written]] of Object.entries(MOST)) {
    const work = many.get(name) as Work;
    for (const [what, count, most] of [
      ['statements', work.statements, statements],
      ['pages read', work.read, read],
      ['pages written', work.written, written],
    ] as const) {
      if (count > most) problems.push(`${name}: ${count} ${what}, maximum: ${most}`);
    }
    const before = few.get(name) as Work;
    t.diagnostic(`${name}: ${JSON.stringify(before)}, with ten times the versions ${JSON.stringify(work)}`);
  }
  assert.deepEqual(problems, []);
});

async function countAll(path: string, versions: number): Promise<Map<string, Work>> {
  const works = new Map<string, Work>();
  const nowMs = Date.UTC(2026, 10, 20);
  const store = await openStore(`sqlite:${path}`, {
    clock: () => nowMs,
    publicUrl: () => '',
    log: silentLogger,
  });
  const at = await makeWorkflow(store, { keep: { versions: 500, days: 90 } });
  for (let version = 1; version <= versions; version++) {
    const names = Array.from({ length: 10 * CHANGED }, (_, n) => [
      `r${n}`,
      n < CHANGED ? `version ${version}` : 'Ada',
    ]);
    await publishRun(store, at, Object.fromEntries(names));
  }
  await makeWorkflow(store, { keep: { versions: 1, days: 90 } });
  await store.close();

  const counter = new Counter(path, () => nowMs);
  const { teamId, workflowId } = at;
  const note = async (name: string, done: Promise<{ work: Work }>) => works.set(name, (await done).work);
  await note(
    'the version of a time',
    counter.read((view) => versionAt(view, { ...at, at: nowMs })),
  );
  await note(
    'a page of changes of the newest version',
    counter.read((view) =>
      changes(view, { ...at, since: versions - 1, until: versions, after: null, limit: 20 }),
    ),
  );
  await note(
    'a page of the changes of a record',
    counter.read((view) => recordChanges(view, { ...at, recordId: 'r3', limit: 10 })),
  );
  await note(
    'the history of a workflow in its summary',
    counter.read((view) => summaries(view, { teamId, workflowIds: [workflowId] })),
  );
  const retention = { keepVersions: 10, keepMs: Number.MAX_SAFE_INTEGER, graceMs: 0 };
  await note(
    'workflows are searched for old versions',
    counter.read((view) => prunable(view, { teamId, ...retention, limit: 1_000 })),
  );
  await note('a step of a pruning', counter.write('records.prune', { ...at, ...retention, limit: LIMIT }));
  counter.close();
  return works;
}
