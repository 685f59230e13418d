/** Pages of lists: each has at most `limit` rows, and together they are complete while rows are added and removed. */
import assert from 'node:assert/strict';
import { everyRow, type Page } from '../page.ts';
import type { Store } from '../store.ts';
import { allSteps, caseWith, makeWorkflow, type Open, publishRun } from './setup.ts';

/** A list whose rows a case adds one after another, in the order of the list. */
interface List {
  name: string;
  make(place: World, n: number): Promise<string>;
  /** Removes a row from the list, if that is possible. */
  remove?(place: World, row: string): Promise<unknown>;
  read(place: World, page: Page<never>): Promise<{ rows: string[]; next: unknown }>;
}

interface World {
  store: Store;
  teamId: string;
}

const TEAM = 'acme';
const HOOK = { events: ['workflow_finished'], secret: 'sealed', limit: 100 };
const KEEP = { keepVersions: 1, keepMs: 0, graceMs: 0 };
const idsOf = (rows: { id: string }[]) => ({ rows: rows.map(({ id }) => id), next: rows.at(-1)?.id });

const makeWebhook = async (
  { store, teamId }: World,
  more: { workflowId: string | null; url: string },
): Promise<string> => {
  const made = await store.webhooks.subscribe({ ...HOOK, teamId, ...more });
  assert.ok('webhook' in made);
  return made.webhook.id;
};
const makeOwn = ({ store }: World, n: number) =>
  makeWorkflow(store, { team: TEAM, id: `w${n}` }).then(({ workflowId }) => workflowId);
const archive = ({ store, teamId }: World, id: string) => store.workflows.archive({ teamId, ids: [id] });
const unsubscribe = ({ store, teamId }: World, id: string) =>
  store.webhooks.unsubscribe({ teamId, ids: [id] });

const LISTS: List[] = [
  {
    name: 'teams',
    make: async ({ store }, n) => (await store.teams.ensure({ slug: `team-${n}` })).id,
    remove: ({ store }, teamId) => store.teams.retire({ teamId, force: false }),
    read: async ({ store, teamId }, { after = teamId, ...page }: Page) =>
      idsOf(await store.teams.list({ ...page, after })),
  },
  {
    name: 'retired teams',
    async make({ store }, n) {
      const { id: teamId } = await store.teams.ensure({ slug: `team-${n}` });
      await store.teams.retire({ teamId, force: false });
      return teamId;
    },
    remove: ({ store }, teamId) => store.teams.delete({ teamId, limit: 100 }),
    read: async ({ store }, page) => idsOf(await store.teams.retired(page)),
  },
  {
    name: 'keys',
    make: async ({ store, teamId }, n) =>
      (
        await store.keys.create({
          teamId,
          name: '',
          hash: `${n}`,
          prefix: 'fh',
          scopes: ['read'],
          expiresAt: null,
        })
      ).id,
    read: async ({ store, teamId }, page) => idsOf(await store.keys.list({ teamId, ...page })),
  },
  {
    name: 'workflows',
    make: makeOwn,
    remove: archive,
    read: async ({ store, teamId }, page) => idsOf(await store.workflows.list({ teamId, ...page })),
  },
  {
    name: 'applied workflows',
    make: makeOwn,
    remove: archive,
    async read({ store }, page) {
      const rows = await store.workflows.applied(page);
      return { rows: rows.map(({ id }) => id), next: rows.at(-1) };
    },
  },
  {
    name: 'workflows and archived ones',
    make: makeOwn,
    read: async ({ store, teamId }, page) =>
      idsOf(await store.workflows.list({ teamId, archived: true, ...page })),
  },
  {
    name: 'workflows with old versions',
    async make(world, n) {
      const workflowId = await makeOwn(world, n);
      const at = { teamId: world.teamId, workflowId };
      await publishRun(world.store, at, { a: 'one' });
      await publishRun(world.store, at, { a: 'two' });
      return workflowId;
    },
    async remove({ store, teamId }, workflowId) {
      await allSteps(store.records.prune, { teamId, workflowId, ...KEEP, limit: 10 });
    },
    async read({ store, teamId }, page) {
      const { found, next } = await store.records.prunable({ teamId, ...KEEP, ...page });
      return { rows: found.map(({ workflowId }) => workflowId), next };
    },
  },
  {
    name: 'webhooks',
    make: (world, n) => makeWebhook(world, { workflowId: null, url: `https://${n % 3}-${n}.test/` }),
    remove: unsubscribe,
    read: async ({ store, teamId }, page) => idsOf(await store.webhooks.list({ teamId, ...page })),
  },
  {
    name: 'webhooks of a workflow',
    async make(world, n) {
      await makeOwn(world, 1);
      await makeWebhook(world, { workflowId: null, url: `https://${n}.test/` });
      return makeWebhook(world, { workflowId: 'w1', url: `https://${n % 3}-${n}.test/` });
    },
    remove: unsubscribe,
    read: async ({ store, teamId }, page) =>
      idsOf(await store.webhooks.list({ teamId, workflowId: 'w1', ...page })),
  },
  {
    name: 'webhooks with a URL',
    async make(world, n) {
      // The workflows are not created in the order of their ids.
      const workflowId = await makeOwn(world, 9 - n);
      await makeWebhook(world, { workflowId, url: 'https://other.test/' });
      return makeWebhook(world, { workflowId, url: 'https://same.test/' });
    },
    remove: unsubscribe,
    read: async ({ store, teamId }, page) =>
      idsOf(await store.webhooks.list({ teamId, url: 'https://same.test/', ...page })),
  },
  {
    name: 'suppressed people',
    async make({ store, teamId }, n) {
      const kind = n < 3 ? ('email' as const) : ('id' as const);
      const entry = { kind, hash: `h${n}` };
      await store.erasure.suppress({
        teamId,
        entries: ['', 'elsewhere'].map((workflowId) => ({ ...entry, workflowId })),
      });
      return entry.hash;
    },
    async read({ store, teamId }, page) {
      const rows = await store.erasure.suppressed({ teamId, workflowId: '', ...page });
      return { rows: rows.map(({ hash }) => hash), next: rows.at(-1) };
    },
  },
];

export function testPages(open: Open): void {
  const it = caseWith(open);
  for (const { name, make, remove, read } of LISTS) {
    it(`returns ${name} in pages while rows are added and removed`, async ({ store }) => {
      const world = { store, teamId: (await store.teams.ensure({ slug: TEAM })).id };
      const made: string[] = [];
      for (let n = 1; n <= 5; n++) made.push(await make(world, n));
      const first = await read(world, { limit: 2 });
      assert.deepEqual(first.rows, made.slice(0, 2));
      const gone = remove === undefined ? [] : [made[1] as string, made[3] as string];
      for (const row of gone) await remove?.(world, row);
      made.push(await make(world, 6));
      const found = [...first.rows];
      for (let page = first; page.next !== null && page.next !== undefined; ) {
        page = await read(world, { after: page.next as never, limit: 2 });
        assert.ok(page.rows.length <= 2);
        found.push(...page.rows);
      }
      assert.deepEqual(
        found,
        made.filter((row, at) => at < 2 || !gone.includes(row)),
      );
    });
  }

  it('visits every row of a list after a place, in pages of a given size', async ({ store }) => {
    for (let n = 0; n < 5; n++) await makeWorkflow(store, { team: TEAM, id: `w${n}` });
    const { id: teamId } = await store.teams.ensure({ slug: TEAM });
    const sizes: number[] = [];
    const list = async (page: { teamId: string } & Page) => {
      const rows = await store.workflows.list(page);
      sizes.push(rows.length);
      return rows;
    };
    const ids = await Array.fromAsync(everyRow(list, { teamId, after: 'w0', limit: 2 }), ({ id }) => id);
    assert.deepEqual(
      [ids, sizes],
      [
        ['w1', 'w2', 'w3', 'w4'],
        [2, 2, 0],
      ],
    );
  });
}
