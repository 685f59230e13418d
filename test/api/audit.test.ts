/** The audit log of the whole service: every change leaves a line that says who changed what, and from where. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { routes } from '../../src/http/routes.ts';
import { UNAUDITED } from '../../src/http/server/caller.ts';
import { SessionRoutes } from '../../src/http/ui/session.ts';
import type { AuditLine } from '../../src/model/audit.ts';
import type { Scope } from '../../src/model/team.ts';
import { mintKey } from '../../src/teams/keys.ts';
import { makeLink } from '../../src/teams/sessions.ts';
import { runCommand } from '../support/cli/commands.ts';
import { type SmtpReceiver, smtpReceiver } from '../support/mail/smtp-receiver.ts';
import { startService, type TestService } from '../support/service.ts';

type Json = Record<string, unknown>;

/** Texts that no line may contain. */
const EMAIL = 'ada.lovelace@example.com';
const SECRETS = ['hook-password', 'query-token', 'header-token', EMAIL];
const URL_WITH_SECRETS = 'http://user:hook-password@127.0.0.1:9/hook?token=query-token';

let service: TestService;
let smtp: SmtpReceiver;
let admin: { key: string; id: string };
let root: string;

before(async () => {
  root = await mkdtemp(join(tmpdir(), 'flowhook-audit-'));
  smtp = await smtpReceiver();
  service = await startService({
    settings: {
      FLOWHOOK_SMTP_URL: `smtp://127.0.0.1:${smtp.port}`,
      FLOWHOOK_MAIL_FROM: 'flowhook@example.org',
    },
    dashboard: { root },
    // The longest pause before another attempt.
    random: () => 0.99,
    workflows: {
      'default/failing.yaml':
        'source: { type: command, command: ["false"] }\nretries: { max: 9, backoff: 10m }\n',
      'default/people.yaml': 'source: { type: push }\n',
      'default/checked.yaml':
        'source: { type: push }\nexpect: { fields: { price: { min: 0 } }, otherwise: quarantine }\n',
      'default/endless.yaml': 'source: { type: command, command: [sleep, "600"] }\n',
    },
  });
  admin = await keyOf('default', ['admin']);
  // The files may still be read when it is ready: their lines come first.
  while ((await newest(1_000)).filter(({ author }) => author.kind === 'file').length < 3) {
    await service.call('GET', '/v1/me');
  }
});
after(async () => {
  await service.stop();
  await smtp.close();
  await rm(root, { recursive: true, force: true });
});

async function keyOf(slug: string, scopes: Scope[]): Promise<{ key: string; id: string }> {
  const { id: teamId } = await service.store.teams.ensure({ slug });
  const made = await mintKey(service.store, { teamId, name: 'laptop', scopes, expiresAt: null });
  return { key: made.key, id: made.record.id };
}

async function call(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
  const answer = await service.call(method, path, body, { 'x-api-key': admin.key, ...headers });
  assert.equal(answer.status, 200, `${method} ${path}: ${JSON.stringify(answer.body)}`);
  return answer.body as Json;
}

const newest = async (count: number): Promise<AuditLine[]> =>
  (await service.store.audit.list({ limit: count })).lines;

/** The lines with a larger ID. */
async function linesAfter(id: string | undefined): Promise<AuditLine[]> {
  return (await newest(1_000)).filter((line) => id === undefined || line.id > id);
}

async function makeWebhook(): Promise<string> {
  const hook = { webhookUrl: `${URL_WITH_SECRETS}&n=${Math.random()}`, events: ['*'] };
  const made = await call('POST', '/v1/integrations/webhooks', hook);
  return String(made.id);
}
/** Makes a webhook that sends mail. Returns its ID and the link that confirms its address. */
async function makeMailWebhook(): Promise<{ id: string; link: string }> {
  const count = smtp.mails.length;
  const { id } = await call('POST', hooks, { webhookUrl: `mailto:a${count}@example.com`, events: ['*'] });
  const { mail } = await smtp.mail(count + 1);
  return { id: String(id), link: /http:\S+\/mail\/verify\/\S+/.exec(mail.text ?? '')?.[0] ?? '' };
}
async function click(link: string): Promise<void> {
  assert.equal((await fetch(link, { method: 'POST' })).status, 200);
}
const makeInspector = async () => String((await call('POST', '/v1/inspectors', {})).id);
const feeds = '/v1/workflows/people/feeds';
const makeFeed = async () => String((await call('POST', feeds, { title: EMAIL })).id);
const makeKey = async () => ((await call('POST', '/v1/keys', {})).key as Json).id;
const makeJob = async (workflow = 'endless') =>
  String((await service.call('POST', `/v1/workflows/${workflow}/queue`)).headers.get('x-job-id'));
const setAside = () =>
  call('POST', '/v1/workflows/checked/push', [{ id: 'bad', price: -1, email: EMAIL }, { id: 'good' }]);
const makeWorkflow = () => call('PUT', '/v1/workflows/of-api', { source: { type: 'push' } });

const hooks = '/v1/integrations/webhooks';

/** By operation: the expected action, and a function that prepares a call which changes something. */
const CASES: Record<string, [action: string, prepare: () => Promise<() => Promise<unknown>>]> = {
  subscribeWebhook: [
    'webhooks.subscribe',
    async () => () =>
      call('POST', `${hooks}/subscribe`, {
        workflowId: 'people',
        webhookUrl: URL_WITH_SECRETS,
        events: ['job.finished'],
      }),
  ],
  unsubscribeWebhook: [
    'webhooks.unsubscribe',
    async () => {
      const id = await makeWebhook();
      return () => call('DELETE', `${hooks}/unsubscribe?webhookId=${id}`);
    },
  ],
  unsubscribeWebhookByPath: [
    'webhooks.unsubscribe',
    async () => {
      const id = await makeWebhook();
      return () => call('DELETE', `${hooks}/unsubscribe/${id}`);
    },
  ],
  putWorkflow: ['workflows.apply', async () => makeWorkflow],
  deleteWorkflow: [
    'workflows.archive',
    async () => {
      await makeWorkflow();
      return () => call('DELETE', '/v1/workflows/of-api');
    },
  ],
  pauseWorkflow: ['workflows.pause', async () => () => call('POST', '/v1/workflows/people/pause')],
  resumeWorkflow: [
    'workflows.resume',
    async () => {
      await call('POST', '/v1/workflows/people/pause');
      return () => call('POST', '/v1/workflows/people/resume');
    },
  ],
  putWorkflowState: [
    'workflows.setState',
    async () => () => call('PUT', '/v1/workflows/failing/state', { state: { last: EMAIL } }),
  ],
  deleteWorkflowState: [
    'workflows.setState',
    async () => {
      await call('PUT', '/v1/workflows/failing/state', { state: { last: EMAIL } });
      return () => call('DELETE', '/v1/workflows/failing/state');
    },
  ],
  acceptQuarantine: [
    'quarantine.accept',
    async () => {
      await setAside();
      return () => call('POST', '/v1/workflows/checked/quarantine/accept', { all: true });
    },
  ],
  dropQuarantine: [
    'quarantine.drop',
    async () => {
      await setAside();
      return () => call('POST', '/v1/workflows/checked/quarantine/drop', { ids: ['bad'] });
    },
  ],
  erasePerson: [
    'records.erase',
    async () => {
      await call('POST', '/v1/workflows/people/push', [{ id: '1', email: EMAIL }]);
      await call('POST', '/v1/workflows/people/erase', { email: EMAIL, dryRun: true });
      return () => call('POST', '/v1/workflows/people/erase', { email: EMAIL, suppress: true });
    },
  ],
  createWebhook: ['webhooks.subscribe', async () => makeWebhook],
  updateWebhook: [
    'webhooks.change',
    async () => {
      const id = await makeWebhook();
      return () => call('PATCH', `${hooks}/${id}`, { ordered: true, headers: { 'x-token': 'header-token' } });
    },
  ],
  rotateWebhookSecret: [
    'webhooks.rotate',
    async () => {
      const id = await makeWebhook();
      return () => call('POST', `${hooks}/${id}/rotate`, {});
    },
  ],
  testWebhook: [
    'webhooks.test',
    async () => {
      const id = await makeWebhook();
      return () => call('POST', `${hooks}/${id}/test`);
    },
  ],
  pauseWebhook: [
    'webhooks.pause',
    async () => {
      const id = await makeWebhook();
      return () => call('POST', `${hooks}/${id}/pause`, { reason: `because of ${EMAIL}` });
    },
  ],
  resumeWebhook: [
    'webhooks.resume',
    async () => {
      const id = await makeWebhook();
      await call('POST', `${hooks}/${id}/pause`);
      return () => call('POST', `${hooks}/${id}/resume`);
    },
  ],
  verifyWebhook: [
    'webhooks.sendVerification',
    async () => {
      const { id } = await makeMailWebhook();
      return () => call('POST', `${hooks}/${id}/verify`);
    },
  ],
  confirmAddress: [
    'webhooks.verify',
    async () => {
      const { link } = await makeMailWebhook();
      return () => click(link);
    },
  ],
  endMails: [
    'webhooks.withdraw',
    async () => {
      const { id, link } = await makeMailWebhook();
      await click(link);
      const count = smtp.mails.length;
      await call('POST', `${hooks}/${id}/test`);
      const { headers } = await smtp.mail(count + 1);
      return () => click((headers['list-unsubscribe'] ?? '').slice(1, -1));
    },
  ],
  replayWebhookDeliveries: [
    'deliveries.startReplay',
    async () => {
      const id = await makeWebhook();
      return () => call('POST', `${hooks}/${id}/replay`, { since: '2026-01-01T00:00:00Z' });
    },
  ],
  retryDeliveries: [
    'deliveries.startRetry',
    async () => {
      const id = await makeWebhook();
      await call('POST', `${hooks}/${id}/test`);
      const states = ['waiting', 'dead', 'delivered'];
      return () => call('POST', '/v1/deliveries/retry', { webhookId: id, states });
    },
  ],
  replayDelivery: [
    'deliveries.replay',
    async () => {
      const id = await makeWebhook();
      const { deliveryId } = await call('POST', `${hooks}/${id}/test`);
      return () => call('POST', `/v1/deliveries/${deliveryId}/replay`);
    },
  ],
  createInspector: ['inspectors.create', async () => makeInspector],
  updateInspector: [
    'inspectors.change',
    async () => {
      const id = await makeInspector();
      return () => call('PATCH', `/v1/inspectors/${id}`, { status: 500 });
    },
  ],
  deleteInspector: [
    'inspectors.remove',
    async () => {
      const id = await makeInspector();
      return () => call('DELETE', `/v1/inspectors/${id}`);
    },
  ],
  createFeed: ['feeds.create', async () => makeFeed],
  updateFeed: [
    'feeds.change',
    async () => {
      const id = await makeFeed();
      return () => call('PATCH', `${feeds}/${id}`, { title: EMAIL });
    },
  ],
  rotateFeed: [
    'feeds.rotate',
    async () => {
      const id = await makeFeed();
      return () => call('POST', `${feeds}/${id}/rotate`);
    },
  ],
  revokeFeed: [
    'feeds.revoke',
    async () => {
      const id = await makeFeed();
      return () => call('DELETE', `${feeds}/${id}`);
    },
  ],
  cancelJob: [
    'jobs.cancel',
    async () => {
      const id = await makeJob();
      return () => call('POST', `/v1/jobs/${id}/cancel`);
    },
  ],
  runJobNow: [
    'jobs.runNow',
    async () => {
      const id = await makeWaitingJob();
      return () => call('POST', `/v1/jobs/${id}/run-now`);
    },
  ],
  exportPerson: [
    'records.export',
    async () => async () => {
      const answer = await fetch(`${service.url}/v1/export`, {
        method: 'POST',
        headers: { 'x-api-key': admin.key, 'content-type': 'application/json' },
        body: JSON.stringify({ email: EMAIL }),
      });
      assert.equal(answer.status, 200);
      await answer.text();
    },
  ],
  createKey: ['keys.create', async () => makeKey],
  rotateKey: [
    'keys.rotate',
    async () => {
      const id = await makeKey();
      return () => call('POST', `/v1/keys/${id}/rotate`, {});
    },
  ],
  revokeKey: [
    'keys.revoke',
    async () => {
      const id = await makeKey();
      return () => call('DELETE', `/v1/keys/${id}`);
    },
  ],
  beginSession: ['sessions.begin', async () => () => signIn({ key: admin.key })],
};

/** Operations that leave no line, with the reason. */
const NOT_OURS: Readonly<Record<string, string>> = {
  ...UNAUDITED,
  tryWebhook: 'only reads',
  endSession: 'ends only the session of the caller',
};

/** Creates a job that has failed once and waits several minutes for its next attempt. */
async function makeWaitingJob(): Promise<string> {
  const id = await makeJob('failing');
  const end = Date.now() + 300_000;
  while ((await call('GET', `/v1/jobs/${id}`)).state !== 'retrying') assert.ok(Date.now() < end);
  return id;
}

function signIn(body: unknown, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${service.url}/ui/api/session`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: service.url, ...headers },
    body: JSON.stringify(body),
  });
}

const changing = [...routes, ...new SessionRoutes({} as never).routes()].filter(
  ({ method, path, operation }) =>
    method !== 'GET' && !path.startsWith('/inspect/') && !(operation.id in NOT_OURS),
);

test('every route that changes something has a case, or a reason to leave no line', () => {
  assert.deepEqual(
    [...new Set(changing.map(({ operation }) => operation.id))].sort(),
    Object.keys(CASES).sort(),
  );
});

/** Readers of mails have no key. */
const WITHOUT_KEY = ['confirmAddress', 'endMails'];

for (const { operation } of changing) {
  test(`${operation.id} leaves a line with the caller and the address`, async () => {
    const [action, prepare] = CASES[operation.id] ?? [];
    const change = await prepare?.();
    const [last] = await newest(1);
    await change?.();
    const [line, ...others] = await linesAfter(last?.id);
    assert.equal(line?.action, action);
    assert.deepEqual(others, []);
    const isSignIn = operation.id === 'beginSession';
    assert.deepEqual(
      { ...line?.author, requestId: typeof line?.author.requestId },
      {
        ...(WITHOUT_KEY.includes(operation.id)
          ? { kind: 'unknown', id: null, name: null }
          : { kind: isSignIn ? 'session' : 'key', id: admin.id, name: 'laptop' }),
        address: '127.0.0.1',
        requestId: 'string',
      },
    );
    assert.equal(line?.team, 'default');
    assert.ok(operation.id === 'exportPerson' || typeof line?.target?.id === 'string');
  });
}

test('a change in the dashboard names the key that signed in', async () => {
  const cookie = (await signIn({ key: admin.key })).headers.get('set-cookie')?.split(';')[0] ?? '';
  const id = await makeWebhook();
  const answer = await fetch(`${service.url}/ui/api/v1/integrations/webhooks/${id}/pause`, {
    method: 'POST',
    headers: { cookie, origin: service.url, 'x-request-id': 'seen-in-the-log' },
  });
  assert.equal(answer.status, 200, await answer.text());
  const [line] = await newest(1);
  assert.deepEqual(
    [line?.action, line?.author.kind, line?.author.id],
    ['webhooks.pause', 'session', admin.id],
  );
  assert.equal(line?.author.requestId, 'seen-in-the-log');
});

test('repeated calls, dry runs and refused calls leave no line', async () => {
  const id = await makeWebhook();
  const again = { 'idempotency-key': 'once' };
  await call('POST', `${hooks}/${id}/test`, undefined, again);
  const [last] = await newest(1);
  await call('POST', `${hooks}/${id}/test`, undefined, again);
  await call('PUT', '/v1/workflows/dry?dryRun=true', { source: { type: 'push' } });
  await call('POST', '/v1/workflows/people/erase', { email: EMAIL, dryRun: true });
  await service.call('DELETE', '/v1/keys/key_01kadz8v3s7v0s8e1c3q5m2n4p', undefined, {
    'x-api-key': admin.key,
  });
  await service.call('PATCH', `${hooks}/${id}`, { ordered: 'perhaps' });
  assert.deepEqual(await linesAfter(last?.id), []);
});

test('records a limited number of refused sign-ins, without the key', async () => {
  const [last] = await newest(1);
  for (let count = 0; count < 3; count += 1) await signIn({ key: `wrong-${EMAIL}` });
  await signIn({ token: 'no link' });
  const lines = await linesAfter(last?.id);
  assert.deepEqual(
    lines.map(({ action, team, author }) => [action, team, author.kind, author.address]),
    [['sessions.refused', null, 'unknown', '127.0.0.1']],
  );
});

test('an admin reads the audit log of the own team, an operator that of all teams and the instance', async () => {
  const foreign = await keyOf('other', ['admin']);
  const ofForeign = { 'x-api-key': foreign.key };
  await call('POST', '/v1/keys', { name: 'theirs' }, ofForeign);
  const theirs = (await call('GET', '/v1/audit', undefined, ofForeign)).lines as Json[];
  assert.deepEqual(
    theirs.map(({ action, team, actor }) => [action, team, actor]),
    [['keys.create', 'other', { kind: 'key', id: foreign.id, name: 'laptop' }]],
  );
  for (const team of ['other', '*']) {
    const answer = await service.call('GET', `/v1/audit?team=${team}`, undefined, { 'x-api-key': admin.key });
    assert.equal(answer.status, 403, JSON.stringify(answer.body));
  }
  const { key: reader } = await keyOf('default', ['read', 'webhooks']);
  assert.equal((await service.call('GET', '/v1/audit', undefined, { 'x-api-key': reader })).status, 403);

  // The bootstrap key has the scope `operator`.
  const all = ((await service.call('GET', '/v1/audit?team=*&limit=1000')).body as { lines: Json[] }).lines;
  assert.deepEqual(new Set(all.map(({ team }) => team)), new Set(['default', 'other', null]));
  const other = (await service.call('GET', '/v1/audit?team=other')).body as { lines: Json[] };
  assert.deepEqual(other.lines, theirs);
  assert.equal((await service.call('GET', '/v1/audit?team=nobody')).status, 404);
});

test('filters lines by operation, key, target and time, page by page', async () => {
  const id = await makeWebhook();
  await call('POST', `${hooks}/${id}/pause`);
  await call('POST', `${hooks}/${id}/resume`);
  const actions = async (query: string) =>
    ((await call('GET', `/v1/audit?${query}`)).lines as Json[]).map(({ action }) => action);
  const all = ['webhooks.resume', 'webhooks.pause', 'webhooks.subscribe'];
  assert.deepEqual(await actions(`target=${id}`), all);
  assert.deepEqual(await actions(`target=${id}&action=webhooks.pause&actor=${admin.id}`), ['webhooks.pause']);
  assert.deepEqual(await actions(`target=${id}&since=2100-01-01T00:00:00Z`), []);
  const first = await service.call('GET', `/v1/audit?target=${id}&limit=2`, undefined, {
    'x-api-key': admin.key,
  });
  assert.deepEqual((first.body as { lines: Json[] }).lines.length, 2);
  const [, next = ''] = /<(.*)>/.exec(first.headers.get('link') ?? '') ?? [];
  assert.deepEqual(
    ((await call('GET', next)).lines as Json[]).map(({ action }) => action),
    ['webhooks.subscribe'],
  );
  for (const bad of ['limit=0', 'cursor=x', 'since=yesterday', 'action=']) {
    const answer = await service.call('GET', `/v1/audit?${bad}`);
    assert.equal(answer.status, 400, bad);
  }
});

test('changes by files, by the start and by commands have their own kinds of actors', async () => {
  const lines = await newest(1_000);
  const by = (kind: string) => lines.filter(({ author }) => author.kind === kind);
  assert.deepEqual(
    by('file')
      .map(({ action, target }) => `${action} ${target?.id}`)
      .sort(),
    [
      'workflows.apply checked',
      'workflows.apply endless',
      'workflows.apply failing',
      'workflows.apply people',
    ],
  );
  assert.deepEqual(
    by('service')
      .map(({ action }) => action)
      .sort(),
    ['keys.create', 'teams.create'],
  );
  const link = await makeLink(service.store, { keyId: admin.id });
  await signIn({ token: link?.token });
  const [line] = await newest(1);
  assert.deepEqual([line?.action, line?.summary, line?.author.id], ['sessions.begin', 'by a link', admin.id]);
});

test('a command is recorded with the system user, and the audit log can be read at a shell', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-audit-cli-'));
  const flowhook = async (...args: string[]) => {
    const done = await runCommand(args, { directory, environment: { SUDO_USER: 'grace' } });
    assert.equal(done.code, 0, done.stderr);
    return done.stdout;
  };
  try {
    await flowhook('teams', 'create', 'acme');
    const { id } = JSON.parse(await flowhook('keys', 'create', '--team', 'acme', '--json'));
    const listed = JSON.parse(await flowhook('audit', 'list', '--json', '--team', 'acme')) as Json[];
    assert.deepEqual(
      listed.map(({ action, actor, target, address }) => [
        action,
        (actor as Json).kind,
        (target as Json).kind === 'key' ? (target as Json).id : null,
        address,
      ]),
      [
        ['keys.create', 'command', id, null],
        ['teams.create', 'command', null, null],
      ],
    );
    assert.match(JSON.stringify(listed[0]), /\(sudo by grace\)"/);
    await flowhook('teams', 'delete', 'acme', '--yes', '--no-export', '--quiet');
    const text = await flowhook('audit', 'list');
    assert.match(text, /^\S+ {2}- +teams\.delete +team_\w+ +.*sudo by grace.* acme\n$/);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});

test('the audit log of a server can be read at a shell', async () => {
  const id = await makeWebhook();
  const args = ['audit', 'list', '--url', service.url, '--target', id, '--limit', '5', '--json'];
  const environment = { FLOWHOOK_KEY: admin.key };
  const { stdout } = await runCommand(args, { directory: service.directory, environment });
  const [line, ...others] = JSON.parse(stdout) as Json[];
  assert.equal(line?.action, 'webhooks.subscribe');
  assert.deepEqual(line?.actor, { kind: 'key', id: admin.id, name: 'laptop' });
  assert.deepEqual(others, []);
});

test('behind a trusted proxy, the address is the one that the proxy reports, without the port', async () => {
  const behind = await startService({ settings: { FLOWHOOK_TRUST_PROXY: 'loopback' } });
  try {
    const from = { 'x-forwarded-for': '198.51.100.9, 192.0.2.7:51234' };
    assert.equal((await behind.call('POST', '/v1/inspectors', {}, from)).status, 200);
    const { lines } = await behind.store.audit.list({ action: 'inspectors.create', limit: 1 });
    assert.equal(lines[0]?.author.address, '192.0.2.7');
  } finally {
    await behind.stop();
  }
});

test('no line contains a secret, an email address or the content of a record', async () => {
  const text = JSON.stringify(await newest(1_000));
  assert.ok(text.length > 5_000);
  for (const secret of [...SECRETS, admin.key, service.key]) assert.ok(!text.includes(secret), secret);
});
