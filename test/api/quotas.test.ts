/** Quotas of teams: the errors when a quota is reached, and how operators change the quotas of one team. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { type Ended, runCommand } from '../support/cli/commands.ts';
import { startService, type TestService } from '../support/service.ts';

const PUSH = { source: { type: 'push' } };
const FILE = 'source: { type: push }\n';

let service: TestService;

before(async () => {
  service = await startService({
    workflows: { 'default/a.yaml': FILE, 'acme/a.yaml': FILE, 'acme/b.yaml': FILE, 'acme/c.yaml': FILE },
    settings: {
      FLOWHOOK_MAX_WORKFLOWS_PER_TEAM: '2',
      FLOWHOOK_MAX_WEBHOOKS_PER_TEAM: '2',
      FLOWHOOK_MAX_RECORDS_PER_TEAM: '3',
      FLOWHOOK_MAX_STORED_BYTES_PER_TEAM: '1KB',
      FLOWHOOK_MAX_RUNNING_JOBS_PER_TEAM: '1',
    },
  });
});
after(() => service.stop());

const errorOf = ({ body }: { body: unknown }) => (body as { error: string }).error;

/** Runs `flowhook …` on the database of the server. */
function cli(...args: string[]): Promise<Ended> {
  const environment = {
    FLOWHOOK_DATA: join(service.directory, 'data'),
    FLOWHOOK_MAX_WORKFLOWS_PER_TEAM: '2',
    ...service.database.settings,
  };
  return runCommand(args, { directory: service.directory, environment });
}

test('reports workflow files beyond the quota as mistakes, and applies the others', () => {
  const { created = [], mistakes = [] } = service.workflows ?? {};
  assert.equal(created.filter((name) => name.startsWith('acme/')).length, 2);
  assert.equal(mistakes.length, 1);
  assert.match(mistakes[0]?.file ?? '', /^acme\/[abc]\.yaml$/);
  assert.match(mistakes[0]?.message ?? '', /quota of 2 workflows/);
});

test('the error names the quota and its limit', async () => {
  assert.equal((await service.call('PUT', '/v1/workflows/b', PUSH)).status, 200);
  const workflow = await service.call('PUT', '/v1/workflows/c', PUSH);
  assert.deepEqual([workflow.status, workflow.headers.get('x-error-code')], [400, 'quota_reached']);
  assert.match(errorOf(workflow), /quota of 2 workflows/);

  const subscribe = (n: number) =>
    service.call('POST', '/v1/integrations/webhooks/subscribe', {
      workflowId: n === 2 ? 'b' : 'a',
      webhookUrl: `https://a.test/${n}`,
      events: ['workflow_finished'],
    });
  for (const n of [1, 2]) {
    const made = await subscribe(n);
    assert.equal(made.status, 200, JSON.stringify(made.body));
  }
  const webhook = await subscribe(3);
  assert.deepEqual([webhook.status, webhook.headers.get('x-error-code')], [400, 'quota_reached']);
  assert.match(errorOf(webhook), /quota of 2 webhooks/);

  const push = (id: string, count: number) =>
    service.call(
      'POST',
      `/v1/workflows/${id}/push`,
      Array.from({ length: count }, (_, n) => ({ id: `r${n}` })),
    );
  assert.equal((await push('a', 2)).status, 200);
  const refused = await push('b', 2);
  assert.equal(refused.status, 422);
  assert.match(errorOf(refused), /would have 4, .* of 3 records/);
  const long = await service.call('POST', '/v1/workflows/b/push', [{ id: 'long', text: 'ä'.repeat(500) }]);
  assert.equal(long.status, 422);
  assert.match(errorOf(long), /would have 1045, .* quota `storedBytes` of 1000 bytes of records \(1 kB\)\./);
  const { body: left } = await service.call('GET', '/v1/workflows/b/data');
  assert.deepEqual(left, []);
  const { body: jobs } = await service.call('GET', '/v1/jobs?state=failed');
  const [job] = (jobs as { jobs: { reason: string; error: string }[] }).jobs;
  assert.equal(job?.reason, 'guard');
  assert.match(job?.error ?? '', /quota `storedBytes`/);
});

test('a team can read its quotas, and the command line changes them', async () => {
  const limits = async () => {
    const { body } = await service.call('GET', '/v1/me');
    const { maxWorkflows, maxWebhooks, maxRecords, maxStoredBytes, maxRunningJobs } = (
      body as { limits: Record<string, unknown> }
    ).limits;
    return [maxWorkflows, maxWebhooks, maxRecords, maxStoredBytes, maxRunningJobs];
  };
  assert.deepEqual(await limits(), [2, 2, 3, 1_000, 1]);
  const set = await cli('teams', 'set-quota', 'default', 'workflows', '3', '--json');
  assert.equal(set.code, 0, set.stderr);
  assert.deepEqual(JSON.parse(set.stdout), { team: 'default', quotas: { workflows: 3 } });
  const { id: teamId } = service.team;
  await service.store.teams.setQuotas({ teamId, quotas: { workflows: 3, records: null } });
  assert.deepEqual(await limits(), [3, 2, null, 1_000, 1]);
  assert.equal((await service.call('PUT', '/v1/workflows/c', PUSH)).status, 200);
  assert.equal((await service.call('PUT', '/v1/workflows/d', PUSH)).status, 400);

  const shown = await cli('teams', 'quotas', 'default', '--json');
  const rows = JSON.parse(shown.stdout) as {
    quota: string;
    has: number;
    most: number | null;
    own: boolean;
  }[];
  assert.deepEqual(rows[0], { team: 'default', quota: 'workflows', has: 3, most: 3, own: true });
  assert.equal(rows.find(({ quota }) => quota === 'records')?.most, null);
  assert.equal(rows.find(({ quota }) => quota === 'storedBytes')?.has, '{"id":"r0"}{"id":"r1"}'.length);
  const bytes = await cli('teams', 'set-quota', 'default', 'storedBytes', '1.5GB', '--json');
  assert.deepEqual(JSON.parse(bytes.stdout).quotas.storedBytes, 1_500_000_000, bytes.stderr);
  assert.deepEqual(await limits(), [3, 2, null, 1_500_000_000, 1]);
  assert.equal((await cli('teams', 'set-quota', 'default', 'records', '1GB')).code, 2);
  assert.equal((await cli('teams', 'set-quota', 'default', 'runningJobs', 'off')).code, 2);
  const audit = await service.store.audit.list({ limit: 100 } as Parameters<
    typeof service.store.audit.list
  >[0]);
  assert.ok(JSON.stringify(audit).includes('"teams.setQuotas"'));
});
