/** Sources that get stuck: each of the ten is reported once, a day later, and once more when records come again. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { freshnessChecking } from '../../src/jobs/freshness.ts';
import { silentLogger } from '../../src/observe/log.ts';
import { Population } from '../support/quality/population.ts';
import { expectOf, SOURCES } from '../support/quality/sources.ts';
import { startWorld } from '../support/quality/world.ts';

const HOUR_MS = 3_600_000;
const world = await startWorld({ '': expectOf });
after(() => world.stop());
const { service, site } = world;
const checking = freshnessChecking({
  store: service.store,
  log: silentLogger,
  random: () => 0,
  nodeId: 'another',
});

const sources = SOURCES.map((source) => ({ source, population: new Population(source, 1) }));
const inAll = <Result>(act: (of: (typeof sources)[number]) => Promise<Result>) =>
  Promise.all(sources.map(act));

/** How many events of these types each source has. */
const counts = () =>
  inAll(async ({ source: { id } }) => {
    const events = await world.events(id);
    const count = (type: string) => events.filter((event) => event.type === type).length;
    return [id, count('workflow_stale'), count('workflow_recovered')];
  });
const each = (stale: number, recovered: number) => SOURCES.map(({ id }) => [id, stale, recovered]);
const publish = () =>
  inAll(async ({ source, population }) => {
    const { state, error } = await world.run(source, '', population.nextDay());
    assert.deepEqual([source.id, state, error], [source.id, 'finished', null]);
  });

test('a source that hangs, or pushes nothing, is stale after its time, once, and recovers once', async () => {
  await publish();
  world.advance(25 * HOUR_MS);
  await inAll(async ({ source: { id, settings } }) => {
    if (settings === undefined) return;
    const asked = site.hang(id);
    const jobId = await world.queue(id);
    await asked;
    await service.call('POST', `/v1/jobs/${jobId}/cancel`);
    assert.equal((await world.ended(jobId)).state, 'canceled');
  });
  await checking.tick();
  assert.deepEqual(await counts(), each(0, 0));

  world.advance(2 * HOUR_MS);
  await checking.tick();
  assert.deepEqual(await counts(), each(1, 0));
  world.advance(48 * HOUR_MS);
  await checking.tick();
  assert.deepEqual(await counts(), each(1, 0));

  for (const { id } of SOURCES) site.answer(id);
  await publish();
  await publish();
  assert.deepEqual(await counts(), each(1, 1));
});
