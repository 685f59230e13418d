/** Applying files to a real store: workflows are created, changed, archived and refused. */
import assert from 'node:assert/strict';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { directoryOf } from '../../test/support/jobs/sources.ts';
import { silentLogger } from '../observe/log.ts';
import { openStore } from '../store/open.ts';
import type { Store } from '../store/store.ts';
import { type ApplyReport, applyWorkflows } from './apply.ts';

const YAML = 'source: { type: command, command: ["true"] }\n';

interface Bench {
  store: Store;
  directory: string;
  apply(options?: { prune?: boolean; force?: boolean }): Promise<ApplyReport>;
  write(file: string, text: string): Promise<void>;
  remove(file: string): Promise<void>;
  /** The ids of the team's active workflows. */
  active(team: string): Promise<string[]>;
}

async function bench(t: TestContext, files: Record<string, string>): Promise<Bench> {
  const root = await directoryOf(t, {});
  const directory = join(root, 'workflows');
  await mkdir(directory);
  const store = await openStore(`sqlite:${join(root, 'flowhook.db')}`, {
    publicUrl: () => 'http://localhost',
    log: silentLogger,
    synchronous: 'OFF',
  });
  t.after(() => store.close());
  const made: Bench = {
    store,
    directory,
    apply: ({ prune = false, force = false } = {}) =>
      applyWorkflows(store, { directory, prune, force, runAs: undefined, log: silentLogger }),
    write: async (file, text) => {
      await mkdir(dirname(join(directory, file)), { recursive: true });
      await writeFile(join(directory, file), text);
    },
    remove: (file) => rm(join(directory, file)),
    active: async (slug) => {
      const team = await store.teams.bySlug({ slug });
      if (team === undefined) return [];
      return (await store.workflows.list({ teamId: team.id, limit: 100 })).map(({ id }) => id);
    },
  };
  for (const [file, text] of Object.entries(files)) await made.write(file, text);
  return made;
}

/** A report without empty lists and zeros. */
function short(report: ApplyReport): Record<string, unknown> {
  const { mistakes, ...names } = report;
  return Object.fromEntries(
    [...Object.entries(names), ['mistakes', mistakes.map(({ file }) => file)] as const].filter(([, value]) =>
      Array.isArray(value) ? value.length > 0 : value !== 0,
    ),
  );
}

test('creates teams and workflows, and writes only changed ones', async (t) => {
  const { apply, write, active, store } = await bench(t, {
    'acme/a.yaml': YAML,
    'acme/b.mts': 'export default () => [];',
    'other/a.yaml': YAML,
  });
  assert.deepEqual(short(await apply()), { created: ['acme/a', 'acme/b', 'other/a'] });
  assert.deepEqual(await active('acme'), ['a', 'b']);
  assert.deepEqual(short(await apply()), { unchanged: 3 });
  await write('acme/a.yaml', `${YAML}name: Changed\n`);
  assert.deepEqual(short(await apply()), { changed: ['acme/a'], unchanged: 2 });
  const team = await store.teams.bySlug({ slug: 'acme' });
  const workflow = await store.workflows.get({ teamId: team?.id ?? '', id: 'a' });
  assert.equal(workflow?.definition.name, 'Changed');
});

test('a broken file leaves the last valid definition active, and does not count as missing', async (t) => {
  const { apply, write, active } = await bench(t, { 'acme/a.yaml': YAML, 'acme/b.yaml': YAML });
  await apply();
  await write('acme/a.yaml', 'source: [');
  assert.deepEqual(short(await apply({ prune: true })), { unchanged: 1, mistakes: ['acme/a.yaml'] });
  assert.deepEqual(await active('acme'), ['a', 'b']);
  await write('acme/a.yaml', YAML);
  assert.deepEqual(short(await apply()), { unchanged: 2 });
});

test('a misplaced file is a mistake, and its workflow is not archived', async (t) => {
  const { apply, write, remove, active } = await bench(t, {
    'acme/a.yaml': YAML,
    'acme/b.yaml': YAML,
    'acme/c.yaml': YAML,
  });
  await apply();
  for (const moved of ['a.yaml', 'acme/sub/a.yaml', 'acme/a.yaml.txt']) {
    await remove('acme/a.yaml').catch(() => undefined);
    await write(moved, YAML);
    assert.deepEqual(short(await apply({ prune: true })), { unchanged: 2, mistakes: [moved] });
    assert.deepEqual(await active('acme'), ['a', 'b', 'c']);
    await remove(moved);
  }
  assert.deepEqual(short(await apply({ prune: true })), { unchanged: 2, archived: ['acme/a'] });
});

test('a missing file causes a warning; pruning archives its workflow, and the file restores it', async (t) => {
  const { apply, write, remove, active } = await bench(t, {
    'acme/a.yaml': YAML,
    'acme/b.yaml': YAML,
    'acme/c.yaml': YAML,
  });
  await apply();
  await remove('acme/b.yaml');
  assert.deepEqual(short(await apply()), { unchanged: 2, missing: ['acme/b'] });
  assert.deepEqual(await active('acme'), ['a', 'b', 'c']);
  assert.deepEqual(short(await apply({ prune: true })), { unchanged: 2, archived: ['acme/b'] });
  assert.deepEqual(await active('acme'), ['a', 'c']);
  assert.deepEqual(short(await apply({ prune: true })), { unchanged: 2 });
  await write('acme/b.yaml', YAML);
  assert.deepEqual(short(await apply()), { unchanged: 2, restored: ['acme/b'] });
  assert.deepEqual(await active('acme'), ['a', 'b', 'c']);
});

test('pruning refuses to archive more than half of the workflows, and then changes nothing', async (t) => {
  const { apply, write, remove, active } = await bench(t, {
    'acme/a.yaml': YAML,
    'acme/b.yaml': YAML,
    'acme/c.yaml': YAML,
  });
  await apply();
  await remove('acme/a.yaml');
  await remove('acme/b.yaml');
  await write('acme/d.yaml', YAML);
  await assert.rejects(apply({ prune: true }), {
    code: 'definition_invalid',
    message:
      /would archive 2 of 3 workflows, more than half \(acme\/a, acme\/b\), so nothing was changed.*--force/,
  });
  assert.deepEqual(await active('acme'), ['a', 'b', 'c']);
  assert.deepEqual(short(await apply({ prune: true, force: true })), {
    created: ['acme/d'],
    unchanged: 1,
    archived: ['acme/a', 'acme/b'],
  });
});

test('a missing directory changes nothing', async (t) => {
  const { apply, active, directory } = await bench(t, { 'acme/a.yaml': YAML });
  await apply();
  await rename(directory, `${directory}-elsewhere`);
  await assert.rejects(apply({ prune: true, force: true }), /does not exist/);
  assert.deepEqual(await active('acme'), ['a']);
});

test('applies more workflows than one batch', async (t) => {
  const files = Array.from({ length: 130 }, (_, n) => [`acme/w${n}.yaml`, YAML]);
  const { apply } = await bench(t, Object.fromEntries(files));
  assert.equal((await apply()).created.length, 130);
  assert.equal((await apply()).unchanged, 130);
});

test('a new schedule is first due after it is applied, and a workflow without a schedule never', async (t) => {
  const { store, apply } = await bench(t, {
    'acme/daily.yaml': `${YAML}schedule: { every: 1d }\n`,
    'acme/never.yaml': YAML,
  });
  await apply();
  const team = await store.teams.bySlug({ slug: 'acme' });
  const next = async (id: string) => (await store.workflows.get({ teamId: team?.id ?? '', id }))?.nextRunAt;
  const dayMs = 86_400_000;
  assert.equal(await next('daily'), (Math.floor(store.now() / dayMs) + 1) * dayMs);
  assert.equal(await next('never'), null);
});
