/** Searching everything of a team over HTTP. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { mintKey } from '../../src/teams/keys.ts';
import { startService, type TestService } from '../support/service.ts';

interface Found {
  hits: { type: string; id: string; title: string; text: string; path: string }[];
  incomplete: string[];
}

let service: TestService;
before(async () => {
  service = await startService({
    workflows: {
      'default/acme-people.yaml': 'source: { type: push }\n',
      'default/broken.yaml': `source: { type: command, command: [sh, -c, 'echo cannot reach ACME >&2; exit 1'] }\nretries: { max: 0 }\n`,
    },
  });
});
after(() => service.stop());

const search = async (query: string, headers?: Record<string, string>) =>
  (await service.call('GET', `/v1/search?${query}`, undefined, headers)).body as unknown as Found;

test('finds a text and ids in everything, and names the pages of the dashboard', async () => {
  const record = { id: 'r "1"', name: 'The Acme Company' };
  await service.call('POST', '/v1/workflows/acme-people/push', [record, { id: '2', name: 'Other' }]);
  const made = await service.call('POST', '/v1/integrations/webhooks', {
    webhookUrl: 'http://127.0.0.1:9/hook?token=acme-secret',
    events: ['*'],
    name: 'ACME orders',
  });
  const webhookId = String((made.body as { id: string }).id);
  const sent = await service.call('POST', `/v1/integrations/webhooks/${webhookId}/test`);
  const { deliveryId, eventId } = sent.body as Record<string, string>;
  const { hits, incomplete } = await search('q=acME');
  assert.deepEqual(incomplete, []);
  const of = (type: string) => hits.filter((hit) => hit.type === type);
  assert.deepEqual(of('workflows')[0], {
    type: 'workflows',
    id: 'acme-people',
    title: of('workflows')[0]?.title,
    text: 'acme-people',
    path: '/ui/workflows/acme-people',
  });
  assert.deepEqual(of('webhooks'), [
    {
      type: 'webhooks',
      id: webhookId,
      title: 'ACME orders',
      text: 'ACME orders',
      path: `/ui/webhooks/${webhookId}`,
    },
  ]);
  assert.ok(of('deliveries').some(({ id }) => id === deliveryId));
  assert.deepEqual(
    of('records').map(({ id, title }) => [id, title]),
    [['r "1"', 'acme-people']],
  );
  assert.match(of('records')[0]?.text ?? '', /The Acme Company/);
  assert.deepEqual((await search(`q=${encodeURIComponent('r "1"')}&types=records`)).hits.length, 1);

  assert.deepEqual(
    (await search(`q=${eventId}&types=events`)).hits.map(({ path }) => path),
    [`/ui/events/${eventId}`],
  );
  assert.deepEqual(
    (await search(`q=${deliveryId}&types=deliveries`)).hits.map(({ id }) => id),
    [deliveryId],
  );
  assert.equal((await search('q=acme&types=workflows,records&limit=1')).hits.length, 2);
  assert.deepEqual(await search('q=nowhere-at-all'), { hits: [], incomplete: [] });
  assert.equal((await service.call('GET', '/v1/search')).status, 400);

  const { key } = await mintKey(service.store, {
    teamId: service.team.id,
    name: 'x',
    scopes: ['read'],
    expiresAt: null,
  });
  const reader = { 'x-api-key': key };
  const seen = await search('q=acme', reader);
  assert.ok(seen.hits.length > 0 && seen.hits.every(({ type }) => type !== 'deliveries'));
  assert.deepEqual((await search('q=acme-secret', reader)).hits, []);
});

test('finds failed jobs by their error and any job by its id', async () => {
  const queued = await service.call('POST', '/v1/workflows/broken/queue');
  const jobId = queued.headers.get('x-job-id') ?? '';
  const state = async () =>
    ((await service.call('GET', `/v1/jobs/${jobId}`)).body as { state: string }).state;
  while ((await state()) !== 'failed');
  const byId = (await search(`q=${jobId}&types=jobs`)).hits;
  assert.deepEqual(
    byId.map(({ id, title, path }) => [id, title, path]),
    [[jobId, 'broken', `/ui/runs/${jobId}`]],
  );
  const word = byId[0]?.text.split(' ')[0] ?? '';
  assert.deepEqual(
    (await search(`q=${encodeURIComponent(word)}&types=jobs`)).hits.map(({ id }) => id),
    [jobId],
  );
});
