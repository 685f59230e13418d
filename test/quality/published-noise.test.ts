/**
 * Versions of ten sources on normal days, published by a service that expects something of each: no run is refused, and
 * nothing is reported. QUALITY_VERSIONS sets how many versions all sources have together.
 */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Population } from '../support/quality/population.ts';
import { expectOf, SOURCES } from '../support/quality/sources.ts';
import { startWorld } from '../support/quality/world.ts';

const VERSIONS = Number(process.env.QUALITY_VERSIONS ?? 80);

const sources = SOURCES.map((source) => ({ ...source, settings: undefined }));
const world = await startWorld({ '': expectOf }, sources);
after(() => world.stop());

for (const source of sources) {
  test(`normal days of ${source.id} cause no alarm`, async () => {
    const population = new Population(source, 2);
    // On some days nothing changes, so that there is no new version.
    for (let version = 0; version < VERSIONS / sources.length; ) {
      const job = await world.run(source, '', population.nextDay());
      assert.deepEqual([job.state, job.error], ['finished', null]);
      version = job.version ?? 0;
      assert.deepEqual(job.findings ?? [], [], `version ${version}`);
    }
    const types = (await world.events(source.id)).map(({ type }) => type);
    assert.deepEqual(
      types.filter((type) => !/^workflow_(queued|started|data_change|finished)$/.test(type)),
      [],
    );
  });
}
