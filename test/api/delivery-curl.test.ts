/** A delivery as a curl command, which receivers accept. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { after, test } from 'node:test';
import { promisify } from 'node:util';
import { Webhook } from 'standardwebhooks';
import { Flowhook, NotFound, verifyWebhook } from '../../client/src/flowhook-client.ts';
import { startReceiver } from '../support/receiver.ts';
import { startService } from '../support/service.ts';

const run = promisify(execFile);
const service = await startService({ workflows: { 'default/people.yaml': 'source: { type: push }\n' } });
const receiver = await startReceiver();
const flowhook = new Flowhook({ url: service.url, key: service.key });
after(async () => {
  await service.stop();
  await receiver.stop();
});

/** Sends a test event and waits until it has arrived. */
async function delivered(webhookId: string): Promise<string> {
  const { eventId, deliveryId } = await flowhook.webhooks.test(webhookId);
  await receiver.until((all) => all.some(({ event }) => event.id === eventId), 'the delivery');
  return deliveryId;
}

/** The arguments that a shell passes to `curl`, which not every machine has. */
async function argumentsOf(command: string): Promise<string[]> {
  const { stdout } = await run('sh', ['-c', `curl() { printf '%s\\0' "$@"; }\n${command}`]);
  return stdout.split('\0').slice(0, -1);
}

test('verifiers accept the request, with the secret and with the public key', async () => {
  // Deliveries have a `v1a` signature once somebody has read the public keys.
  const publicKeys = (await flowhook.signingKeys()).map(({ key }) => key);
  const url = `${receiver.url}/it's?[a]={1,2}&b=$HOME`;
  const { id } = await flowhook.webhooks.create({ url, events: ['workflow_finished'] });
  const { command, hidden, validUntil } = await flowhook.deliveries.curl(await delivered(id));
  assert.deepEqual(hidden, []);
  const left = Date.parse(validUntil) - Date.now();
  assert.ok(left > 200_000 && left <= 300_000, `${left}`);

  const called = await argumentsOf(command);
  const values = (flag: string) => called.flatMap((one, at) => (called[at - 1] === flag ? [one] : []));
  const [body = ''] = values('--data-binary');
  const headers = Object.fromEntries(values('-H').map((line) => line.split(': ', 2) as [string, string]));
  const { href } = new URL(url);
  assert.deepEqual(values('POST'), [href]);
  assert.ok(called.includes('--globoff'));
  const before = receiver.received.length;
  await fetch(href, { method: 'POST', headers, body });
  const last = receiver.received[before];
  assert.ok(last);
  const secret = await flowhook.webhooks.secret(id);
  assert.equal(
    (new Webhook(secret).verify(last.text, last.headers as never) as { id: string }).id,
    last.event.id,
  );
  for (const trust of [{ secrets: [secret] }, { publicKeys }]) {
    assert.equal((await verifyWebhook(last.text, last.headers, trust)).id, last.event.id);
  }
  assert.equal(last.headers['webhook-event'], 'webhook_test');
});

test('hides values of custom headers, and the password in the URL', async () => {
  const url = receiver.url.replace('http://', 'http://ada:hush-password@');
  const { id } = await flowhook.webhooks.create({
    url,
    events: ['workflow_finished'],
    settings: { headers: { 'X-Token': 'hush-token', Authorization: 'hush' } },
  });
  const deliveryId = await delivered(id);
  const { command, hidden } = await flowhook.deliveries.curl(deliveryId);
  assert.deepEqual(hidden, ['authorization', 'x-token']);
  // The body of a test names the webhook's URL nowhere.
  assert.doesNotMatch(command, /hush/);
  assert.ok((await argumentsOf(command)).includes('x-token: ***'));

  await flowhook.webhooks.unsubscribe(id);
  await assert.rejects(flowhook.deliveries.curl(deliveryId), NotFound);
  await assert.rejects(flowhook.deliveries.curl('dlv_0'), NotFound);
});
