/**
 * Faults that are planted into ten sources: each is found and named in one run, and refused where the workflow asks
 * for it. The published records stay, and the next good run is published.
 */
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { Population } from '../support/quality/population.ts';
import { expectOf, FAULTS, type FaultName, type QualitySource, SOURCES } from '../support/quality/sources.ts';
import { startWorld } from '../support/quality/world.ts';

const world = await startWorld({ '': expectOf });
after(() => world.stop());

/** The beginning of the error. */
const NAMED: Readonly<Record<FaultName, (of: QualitySource) => string>> = {
  'half empty': ({ number }) => `\`${number.field}\` is filled in [0-9.]+ % of the records, less than`,
  'type flip': ({ flip }) => `\`${flip.field}\` of [0-9,]+ records is not of the type ${flip.type}, such as`,
  few: () =>
    'there would be 3 records, fewer than `expect.records.min` \\(10\\); ' +
    'the number of records would drop by 9[0-9.]+ % to 3, more than `expect.records.drop`',
  duplicates: () => '[0-9,]+ records \\(16.[0-9] %\\) had an id that the run had already emitted',
};

describe('a run with a fault is refused', { concurrency: 4 }, () => {
  for (const source of SOURCES) {
    test(source.id, async () => {
      const population = new Population(source, 1);
      const good = () => world.run(source, '', population.nextDay());
      for (let day = 0; day < 2; day += 1) {
        const job = await good();
        assert.equal(job.state, 'finished', job.error ?? '');
      }
      for (const [name, plant] of Object.entries(FAULTS)) {
        const before = await versionOf(source.id);
        const job = await world.run(source, '', plant(population.nextDay(), source));
        assert.deepEqual([job.state, job.reason], ['failed', 'guard'], name);
        assert.match(
          job.error ?? '',
          new RegExp(`^Nothing was published: ${NAMED[name as FaultName](source)}`),
        );
        assert.deepEqual(await versionOf(source.id), before);
      }
      const job = await good();
      assert.deepEqual([job.state, job.error], ['finished', null]);
    });
  }
});

async function versionOf(workflowId: string): Promise<unknown> {
  const { body } = await world.service.call('GET', `/v1/workflows/${workflowId}`);
  const { version, records } = body as { version: number; records: number };
  return { version, records };
}
