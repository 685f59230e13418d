/** Under overload, requests are refused immediately with 503 and `retry-after`, and accepted requests are not lost. */
import assert from 'node:assert/strict';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { INITIAL_LIMIT } from '../../src/model/load-limit.ts';
import { SCOPES } from '../../src/model/team.ts';
import { Database } from '../../src/store/sqlite/database.ts';
import { mintKey } from '../../src/teams/keys.ts';
import { bodyOf } from '../support/records/reading.ts';
import { startService, type TestService } from '../support/service.ts';

/** More requests than can be in progress. */
const REQUESTS = INITIAL_LIMIT + 200;
const LIST = '/v1/integrations/webhooks/list';

test('limits the requests that wait for the database, refuses the others, and recovers afterwards', async (t) => {
  const service = await startService({
    workflows: { 'default/people.yaml': 'source: { type: push }\n' },
    settings: { FLOWHOOK_MAX_WEBHOOKS_PER_WORKFLOW: '100000' },
  });
  t.after(() => service.stop());
  const agent = new Agent({ keepAlive: true });
  t.after(() => agent.destroy());
  const ask = asking(service, agent);
  const { id: teamId } = await service.store.teams.ensure({ slug: 'other' });
  const { key } = await mintKey(service.store, { teamId, name: 'test', scopes: SCOPES, expiresAt: null });
  const askOther = asking({ ...service, key }, agent);

  const all: Answer[] = [];
  // One round, unless this machine is so slow that some requests arrive after the database is unlocked.
  for (let round = 0; !all.some(isShed) && round < 20; round += 1) {
    const other = new Database(join(service.directory, 'data', 'flowhook.db'));
    other.exec('begin immediate');
    let done = 0;
    const some = Promise.withResolvers<void>();
    const sent = Array.from({ length: REQUESTS }, async (_, n) => {
      const webhookUrl = `https://example.com/${round}/${n}`;
      const answer = await ask('POST', '/v1/integrations/webhooks/subscribe', {
        workflowId: 'people',
        webhookUrl,
        events: ['job.finished'],
      });
      done += 1;
      if (done === 100) some.resolve();
      return answer;
    });
    await some.promise;
    // Health checks still work.
    assert.equal((await ask('GET', '/livez')).status, 200);
    // Refusals of one team do not affect another team.
    const ofOther = askOther('PUT', '/v1/workflows/mine', { source: { type: 'push' } });
    assert.equal((await askOther('GET', LIST)).status, 200);
    other.exec('rollback');
    other.close();
    assert.ok(!isShed(await ofOther));
    all.push(...(await Promise.all(sent)));
  }

  const accepted = all.filter(({ status }) => status === 200);
  const refused = all.filter(({ status }) => status === 503);
  assert.equal(accepted.length + refused.length, all.length);
  assert.ok(all.some(isShed), 'no request was refused as overloaded');
  for (const { headers, text } of refused) {
    assert.match(String(headers['retry-after']), /^\d+$/);
    assert.deepEqual(Object.keys(JSON.parse(text)), ['error']);
  }
  const listed = await ask('GET', LIST);
  assert.equal(listed.status, 200);
  assert.equal(JSON.parse(listed.text).webhooks.length, accepted.length);
  assert.ok(accepted.length > 0, 'no request was accepted');
});

interface Answer {
  status: number | undefined;
  headers: Record<string, unknown>;
  text: string;
}

function isShed({ headers }: Answer): boolean {
  return headers['x-error-code'] === 'overloaded';
}

function asking({ url, key }: TestService, agent: Agent) {
  return (method: string, path: string, body?: unknown): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const type = body === undefined ? {} : { 'content-type': 'application/json' };
      const sent = request(url + path, { method, headers: { 'x-api-key': key, ...type }, agent });
      sent.on('error', reject);
      sent.on('response', async (response) => {
        const { statusCode: status, headers } = response;
        resolve({ status, headers, text: (await bodyOf(response)).toString() });
      });
      sent.end(body === undefined ? undefined : JSON.stringify(body));
    });
}
