/** A workflow that sets `fresh`, over HTTP: becomes stale when no run succeeds, and recovers with the next success. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { freshnessChecking } from '../../src/jobs/freshness.ts';
import { silentLogger } from '../../src/observe/log.ts';
import { runCommand } from '../support/cli/commands.ts';
import { startReceiver } from '../support/receiver.ts';
import { startService } from '../support/service.ts';

const HOUR_MS = 3_600_000;
let aheadMs = 0;
const service = await startService({
  clock: () => Date.now() + aheadMs,
  settings: { FLOWHOOK_METRICS: 'on' },
  workflows: {
    'default/prices.yaml': 'source: { type: push }\nexpect: { fresh: 26h }\n',
    'default/broken.yaml':
      'retries: { max: 0 }\nexpect: { fresh: 2h }\nsource: { type: command, command: [sh, -c, "exit 7"] }\n',
  },
});
const receiver = await startReceiver();
after(async () => {
  await service.stop();
  await receiver.stop();
});

/** Another node that looks for stale workflows, as the service itself does once a minute. */
const checking = freshnessChecking({
  store: service.store,
  log: silentLogger,
  random: () => 0,
  nodeId: 'another',
});

interface Shown {
  freshUntil: string | null;
  staleSince: string | null;
}
const show = async (id: string) => (await service.call('GET', `/v1/workflows/${id}`)).body as Shown;
const push = async (id: string, records: object[]) => {
  const { status, body } = await service.call('POST', `/v1/workflows/${id}/push`, records);
  assert.equal(status, 200, JSON.stringify(body));
};
/** The events of this type that the receiver has got, once there are this many. */
const received = async (type: string, count: number) => {
  const ofType = () => receiver.received.filter(({ event }) => event.type === type);
  await receiver.until(() => ofType().length >= count, `${count} × ${type}`);
  return ofType().map(({ text }) => JSON.parse(text).data);
};
const msUntil = (iso: string | null) => Date.parse(iso ?? '') - service.store.now();

test('a webhook receives once that a workflow is stale, and that it has recovered', async () => {
  await service.call('POST', '/v1/integrations/webhooks', {
    webhookUrl: receiver.url,
    events: ['workflow.stale', 'workflow.recovered', 'workflow.failed'],
  });
  await push('prices', [{ id: 1, price: 5 }]);
  const { freshUntil, staleSince } = await show('prices');
  assert.equal(staleSince, null);
  assert.ok(msUntil(freshUntil) > 25 * HOUR_MS && msUntil(freshUntil) <= 26 * HOUR_MS, String(freshUntil));

  aheadMs = 27 * HOUR_MS;
  await checking.tick();
  await checking.tick();
  const [first, second] = await received('workflow_stale', 2);
  assert.deepEqual([first.workflowId, second.workflowId].sort(), ['broken', 'prices']);
  const prices = first.workflowId === 'prices' ? first : second;
  assert.equal(prices.reason, 'No run has succeeded for 1 day 3 h');
  assert.equal(prices.dueAt, freshUntil);
  const stale = await show('prices');
  assert.equal(stale.freshUntil, freshUntil);
  assert.ok(msUntil(stale.staleSince) <= 0 && msUntil(stale.staleSince) > -HOUR_MS);

  // The same records again: nothing changes, but something has come.
  await push('prices', [{ id: 1, price: 5 }]);
  const [recovered] = await received('workflow_recovered', 1);
  assert.deepEqual([recovered.workflowId, recovered.staleSince], ['prices', stale.staleSince]);
  assert.equal((await show('prices')).staleSince, null);
  assert.equal((await received('workflow_stale', 2)).length, 2, 'each once');
});

test('a run that fails leaves a workflow stale, and a pause hides when it is due', async () => {
  await service.call('POST', '/v1/workflows/broken/queue');
  await received('workflow_failed', 1);
  assert.notEqual((await show('broken')).staleSince, null);
  const paused = (await service.call('POST', '/v1/workflows/broken/pause')).body as { workflow: Shown };
  assert.equal(paused.workflow.freshUntil, null);
  assert.notEqual(paused.workflow.staleSince, null);
  assert.equal(await service.store.freshness.countStale({ most: 9 }), 0);
  await service.call('POST', '/v1/workflows/broken/resume');
  assert.equal(await service.store.freshness.countStale({ most: 9 }), 1);
});

test('the command line marks stale workflows', async () => {
  const at = {
    directory: service.directory,
    environment: { FLOWHOOK_URL: service.url, FLOWHOOK_KEY: service.key },
  };
  const list = await runCommand(['workflows', 'list'], at);
  assert.match(list.stdout, /default\/broken .*no records yet, stale/);
  assert.match(list.stdout, /default\/prices .*version 1, 1 record {2}/);
  const shown = await runCommand(['workflows', 'show', 'broken'], at);
  assert.match(shown.stdout, /fresh +stale for .*: no run has succeeded/);
  const fresh = await runCommand(['workflows', 'show', 'prices'], at);
  assert.match(fresh.stdout, /fresh +until .* UTC \(in /);
});

test('the number of stale workflows is a metric', async () => {
  const response = await fetch(`${service.url}/metrics`);
  assert.match(await response.text(), /^flowhook_workflows_stale 1$/m);
});
