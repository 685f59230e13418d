/** What a key with only the scope `read` sees of webhooks. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Scope } from '../../src/model/team.ts';
import { mintKey } from '../../src/teams/keys.ts';
import { startService, type TestService } from '../support/service.ts';

type Json = Record<string, unknown>;

const HOOKS = '/v1/integrations/webhooks';
const URL_WITH_SECRETS = 'https://ada:pass@example.com/hook?token=hush&debug#part';

let service: TestService;
let path: string;

before(async () => {
  service = await startService();
  const body = {
    webhookUrl: URL_WITH_SECRETS,
    events: ['job.failed'],
    format: 'template',
    template: { routing_key: 'hush' },
    settings: { headers: { 'x-token': 'hush' } },
  };
  const made = await service.call('POST', HOOKS, body);
  assert.equal(made.status, 200, JSON.stringify(made.body));
  path = `${HOOKS}/${(made.body as Json).id}`;
});
after(() => service.stop());

async function keyOf(...scopes: Scope[]): Promise<{ 'x-api-key': string }> {
  const { key } = await mintKey(service.store, {
    teamId: service.team.id,
    name: 'test',
    scopes,
    expiresAt: null,
  });
  return { 'x-api-key': key };
}

test('a reader sees webhooks without what may be secret in them', async () => {
  const reader = await keyOf('read');
  const one = await service.call('GET', path, undefined, reader);
  assert.equal(one.status, 200);
  const webhook = one.body as Json;
  assert.equal(webhook.url, 'https://***@example.com/hook?token=***&***#***');
  assert.equal(webhook.template, '***');
  assert.deepEqual((webhook.settings as Json).headers, ['x-token']);
  assert.doesNotMatch(JSON.stringify(webhook), /hush|pass|ada|debug|whsec/);
  const all = (await service.call('GET', HOOKS, undefined, reader)).body as { webhooks: Json[] };
  assert.deepEqual(all.webhooks, [webhook]);
  const tag = one.headers.get('etag') ?? '';
  const again = await service.call('GET', path, undefined, { ...reader, 'if-none-match': tag });
  assert.equal(again.status, 304);
});

test('a key that may manage webhooks sees them as they are, with or without `read`', async () => {
  for (const key of [await keyOf('webhooks'), await keyOf('read', 'webhooks'), await keyOf('admin')]) {
    const { status, body } = await service.call('GET', path, undefined, key);
    assert.deepEqual([status, (body as Json).url], [200, URL_WITH_SECRETS]);
    assert.deepEqual((body as Json).template, { routing_key: 'hush' });
  }
});

test('a reader changes nothing and sees no secret, and other keys see no webhooks', async () => {
  const reader = await keyOf('read');
  for (const [method, route, body] of [
    ['GET', `${path}/secret`],
    ['GET', `${path}/deliveries`],
    ['PATCH', path, { name: 'x' }],
    ['POST', `${path}/pause`],
    ['POST', HOOKS, { webhookUrl: 'https://a.test/', events: ['*'] }],
  ] as const) {
    const { status } = await service.call(method, route, body, reader);
    assert.equal(status, 403, `${method} ${route}`);
  }
  assert.equal(
    (await service.call('GET', `${HOOKS}/list`, undefined, reader)).status,
    401,
    'of the contract',
  );
  const refused = await service.call('GET', path, undefined, await keyOf('queue'));
  assert.equal(refused.status, 403);
  assert.match(String((refused.body as Json).error), /does not have the scope `read` or `webhooks`, which/);
});
