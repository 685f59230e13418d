/** The receiver for Slack, between a real service and a fake Slack. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { until } from '../../../test/support/until.ts';
import { type Service, startService } from '../service.ts';

let service: Service;
before(async () => {
  service = await startService();
});
after(() => service?.stop());

test('failures and changes are posted once, even if Slack refuses at first', async (t) => {
  // A set, because on a slow machine Slack may have accepted a message although its response was late.
  const posted = new Set<string>();
  let refusals = 1;
  const slack = createServer(async (request, response) => {
    const body = await text(request);
    if (refusals-- > 0) return response.writeHead(429, { 'retry-after': '1' }).end();
    posted.add(JSON.parse(body).text);
    response.end('ok');
  });
  await once(slack.listen(0, '127.0.0.1'), 'listening');
  t.after(() => {
    slack.close();
    slack.closeAllConnections();
  });

  // The receiver needs the secret at startup, and there is one only after its address was subscribed.
  let receiverUrl = '';
  const front = createServer(async (request, response) => {
    const headers = Object.entries(request.headers).filter(([name]) => name.startsWith('webhook-'));
    const answer = await fetch(receiverUrl, {
      method: 'POST',
      headers: headers.map(([name, value]) => [name, String(value)]),
      body: await text(request),
    });
    const after = answer.headers.get('retry-after');
    response
      .writeHead(answer.status, after === null ? {} : { 'retry-after': after })
      .end(await answer.text());
  });
  await once(front.listen(0, '127.0.0.1'), 'listening');
  t.after(() => {
    front.close();
    front.closeAllConnections();
  });
  const webhookId = await subscribe(`http://127.0.0.1:${(front.address() as AddressInfo).port}/`);
  const { secret } = await service.ask('GET', `/v1/integrations/webhooks/${webhookId}/secret`);

  const receiver = spawn(process.execPath, [join(import.meta.dirname, 'receiver.mts')], {
    env: {
      SLACK_URL: `http://127.0.0.1:${(slack.address() as AddressInfo).port}/`,
      WEBHOOK_SECRET: secret,
      PORT: '0',
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(async () => {
    const ended = once(receiver, 'exit');
    if (receiver.kill()) await ended;
  });
  const [line] = await once(createInterface({ input: receiver.stdout }), 'line');
  receiverUrl = /http:\S+/.exec(line)?.[0] ?? assert.fail(line);

  const forged = await fetch(receiverUrl, { method: 'POST', body: '{}', headers: { 'webhook-id': 'evt_1' } });
  assert.equal(forged.status, 401);

  await service.ask('POST', '/v1/workflows/broken/queue');
  await service.ask('POST', '/v1/workflows/people/queue');
  await until('both lines are posted', () => posted.size >= 3);
  const lines = [...posted].map((line) => line.replace(/failed: .*\n/, 'failed: '));
  assert.deepEqual(lines.sort(), [
    ':arrows_counterclockwise: *people*: 3 added, 0 changed, 0 removed, 3 in all',
    ':white_check_mark: *people* finished',
    ':x: *broken* failed: the disk is full',
  ]);

  await service.ask('DELETE', `/v1/integrations/webhooks/unsubscribe/${webhookId}`);
  assert.deepEqual(await service.webhooks(), []);
});

/** To all workflows of the team. */
async function subscribe(webhookUrl: string): Promise<string> {
  const events = ['workflow_failed', 'workflow_finished', 'workflow_data_change'];
  await service.ask('POST', '/v1/integrations/webhooks', { webhookUrl, events });
  const { webhooks } = await service.ask('GET', '/v1/integrations/webhooks/list');
  const { id } = webhooks.find(({ url }: { url: string }) => url === webhookUrl);
  return id;
}
