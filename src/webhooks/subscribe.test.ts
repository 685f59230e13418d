/** Messages of subscribing, and the storage of secrets and signing keys, with a real store. */
import assert from 'node:assert/strict';
import { createPublicKey, randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { parseAllowNetworks } from '../net/address-policy.ts';
import { createResolver, ResolveError } from '../net/resolver.ts';
import { silentLogger } from '../observe/log.ts';
import { createSealer } from '../std/seal.ts';
import { definition } from '../store/conformance/setup.ts';
import { openStore } from '../store/open.ts';
import { type WebhookDeps, webhookSecret } from './sealed.ts';
import { openSigningKey, publicSigningKeys } from './signing-keys.ts';
import { subscribeWebhook } from './subscribe.ts';

let directory: string;
let deps: WebhookDeps;
let teamId: string;

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'flowhook-subscribe-'));
  const store = await openStore(`sqlite:${join(directory, 'flowhook.db')}`, {
    publicUrl: () => 'http://127.0.0.1',
    log: silentLogger,
    synchronous: 'OFF',
  });
  const sealer = createSealer(randomBytes(32));
  deps = {
    store,
    sealer,
    policy: parseAllowNetworks('none'),
    resolver: {
      async resolve(hostname) {
        if (hostname === 'receiver.example') return ['8.8.8.8', '2606:4700::1'];
        if (hostname === 'inside.example') return ['8.8.8.8', '10.0.0.5'];
        if (hostname === 'missing.example') throw new ResolveError('no address');
        return createResolver().resolve(hostname);
      },
    },
    limit: 1_000,
  };
  teamId = (await store.teams.ensure({ slug: 'default' })).id;
  await store.workflows.apply({ teamId, id: 'people', definition: definition(), hash: '1', nextRunAt: null });
});

after(async () => {
  await deps.store.close();
  await rm(directory, { recursive: true });
});

function subscribe(url: string, events = ['workflow_finished'], changes: Partial<WebhookDeps> = {}) {
  return subscribeWebhook({ ...deps, ...changes }, { teamId, workflowId: 'people', url, events });
}

test('the message contains only the id of the new webhook if there are no warnings', async () => {
  const { webhook, message } = await subscribe('https://receiver.example/a');
  assert.equal(message, `Subscribed: webhook ${webhook.id}.`);
});

test('subscribing again reports that the webhook already exists', async () => {
  const first = await subscribe('https://receiver.example/again', ['a', 'workflow_failed']);
  const second = await subscribe('https://receiver.example/again', ['workflow_failed', 'a']);
  assert.equal(second.webhook.id, first.webhook.id);
  assert.match(second.message, new RegExp(`^Already subscribed: webhook ${first.webhook.id} `));
});

test('lists event names that never fire', async () => {
  const some = await subscribe('https://receiver.example/b', ['run.finished', 'nope', 'nope', 'say "hi"']);
  assert.match(some.message, /\. "nope" never fires here\. "say \\"hi\\"" never fires here\.$/);
  const misspelt = await subscribe('https://receiver.example/b', ['workflow_failed', 'job.finishd']);
  assert.match(misspelt.message, / "job\.finishd" never fires here; did you mean "job\.finished"\?$/);
  const none = await subscribe('https://receiver.example/b', ['nope']);
  assert.match(none.message, /"nope" never fires here\. Nothing will be sent\.$/);
  const many = await subscribe(
    'https://receiver.example/b',
    Array.from({ length: 100 }, (_, number) => `tea.${number}`),
  );
  assert.match(
    many.message,
    /"tea\.9" never fires here\. 90 more names never fire here\. Nothing will be sent\.$/,
  );
});

test('warns if the address policy will reject the URL, and names the setting', async () => {
  for (const [url, address] of [
    ['http://127.0.0.1:9/a', '127.0.0.1'],
    ['http://localhost:9/a', '127.0.0.1'],
    ['http://user:pass@[::1]/a', '::1'],
    ['http://2130706433/a', '127.0.0.1'],
    ['http://inside.example/a', '10.0.0.5'],
    ['http://169.254.169.254/latest', '169.254.169.254'],
  ] as const) {
    const { message } = await subscribe(url);
    assert.ok(message.includes(`Deliveries will be refused: ${address} is a `), message);
    assert.match(message, /FLOWHOOK_ALLOW_NETWORKS/);
  }
  const { message } = await subscribe('http://127.0.0.1:9/b', undefined, {
    policy: parseAllowNetworks('loopback'),
  });
  assert.doesNotMatch(message, /refused/);
});

test('an unresolvable name causes no warning', async () => {
  assert.doesNotMatch((await subscribe('http://missing.example/')).message, /missing|refused/);
});

test('rejects unknown workflows and too many webhooks', async () => {
  const input = { teamId, workflowId: 'unknown', url: 'https://receiver.example/', events: ['a'] };
  await assert.rejects(subscribeWebhook(deps, input), { code: 'workflow_not_found' });
  await assert.rejects(subscribe('https://receiver.example/full', ['a'], { limit: 1 }), {
    code: 'webhook_limit',
    message: /limit of webhooks \(1\).*FLOWHOOK_MAX_WEBHOOKS_PER_WORKFLOW/,
  });
});

test('each webhook has its own secret, encrypted in the store', async () => {
  const { webhook } = await subscribe('https://receiver.example/c');
  const { id } = webhook;
  const other = await subscribe('https://receiver.example/d');
  const secret = await webhookSecret(deps, { teamId, id });
  assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/);
  assert.notEqual(secret, await webhookSecret(deps, { teamId, id: other.webhook.id }));
  assert.match((await deps.store.webhooks.sealed({ teamId, id }))?.secret ?? '', /^sealed1\./);
  await assert.rejects(webhookSecret(deps, { teamId, id: 'wh_unknown' }), { code: 'webhook_not_found' });
  await assert.rejects(webhookSecret(deps, { teamId: 'team_other', id }), { code: 'webhook_not_found' });
});

test('a team has one signing key, created when its public key is first read', async () => {
  const privateKeyOf = async (team: string) => {
    const [key, ...others] = await deps.store.teams.signingKeys({ teamId: team });
    assert.equal(others.length, 0);
    return openSigningKey(deps.sealer, { teamId: team, sealed: key?.privateKey ?? '' });
  };
  const [[key], [again]] = await Promise.all([
    publicSigningKeys(deps, { teamId }),
    publicSigningKeys(deps, { teamId }),
  ]);
  assert.deepEqual(key, again);
  const mine = await privateKeyOf(teamId);
  const x = createPublicKey(mine).export({ format: 'jwk' }).x ?? '';
  assert.equal(key?.key, `whpk_${Buffer.from(x, 'base64url').toString('base64')}`);
  assert.equal(key?.type, 'ed25519');
  assert.match(key?.createdAt ?? '', /^\d{4}-.*Z$/);
  const { id: otherId } = await deps.store.teams.ensure({ slug: 'other' });
  assert.deepEqual(await deps.store.teams.signingKeys({ teamId: otherId }), []);
  await publicSigningKeys(deps, { teamId: otherId });
  assert.ok(!(await privateKeyOf(otherId)).equals(mine));
  await assert.rejects(publicSigningKeys(deps, { teamId: 'team_unknown' }), { code: 'team_not_found' });
});
