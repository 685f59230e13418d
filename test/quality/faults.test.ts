/**
 * Faults that are planted into ten sources: each is found and named in one run, and refused where the workflow asks
 * for it. The published records stay, and the next good run is published. The short form has three of the sources,
 * QUALITY_SOURCES=all has all ten.
 */
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { Population, type Row } from '../support/quality/population.ts';
import {
  expectOf,
  FAULTS,
  type FaultName,
  isFilled,
  type QualitySource,
  SOURCES,
} from '../support/quality/sources.ts';
import { type QualityJob, startWorld } from '../support/quality/world.ts';

/** Read over HTTP, from a tap, and pushed. */
const SHORT = ['weather', 'people', 'departures'];
const sources =
  process.env.QUALITY_SOURCES === 'all' ? SOURCES : SOURCES.filter(({ id }) => SHORT.includes(id));
const world = await startWorld(
  {
    '': expectOf,
    '-warn': (source) => expectOf(source, 'warn'),
    '-quarantine': (source) => expectOf(source, 'quarantine'),
    // Expects nothing.
    '-plain': () => '',
  },
  sources,
);
after(() => world.stop());

/** The findings that each fault causes: the expectation, and its field. */
const FOUND: Readonly<Record<FaultName, (of: QualitySource) => string[]>> = {
  'half empty': ({ number }) => [`filled ${number.field}`],
  'type flip': ({ flip }) => [`type ${flip.field}`],
  few: () => ['records.min null', 'records.drop null'],
  duplicates: () => ['records.duplicates null'],
};

describe('a run with a fault is refused', { concurrency: 4 }, () => {
  for (const source of sources) {
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
        assert.deepEqual(asked(job), FOUND[name as FaultName](source));
        assert.match(job.error ?? '', /^Nothing was published: /);
        assert.deepEqual(await versionOf(source.id), before);
      }
      const job = await good();
      assert.deepEqual([job.state, job.error], ['finished', null]);
    });
  }
});

/** The rows with three faults: all but the one that leaves too few rows for the others. */
function broken(population: Population, source: QualitySource): Row[] {
  const faults: FaultName[] = ['half empty', 'type flip', 'duplicates'];
  return faults.reduce((rows, name) => FAULTS[name](rows, source), [...population.nextDay()]);
}

describe('a workflow that only warns publishes a run with faults, and names all of them', {
  concurrency: 4,
}, () => {
  for (const source of sources) {
    test(source.id, async () => {
      const population = new Population(source, 1);
      await world.run(source, '-warn', population.nextDay());
      const job = await world.run(source, '-warn', broken(population, source));
      assert.deepEqual([job.state, job.version], ['finished', 2]);
      const expected = ['duplicates', 'half empty', 'type flip'] as const;
      assert.deepEqual(asked(job).sort(), expected.flatMap((name) => FOUND[name](source)).sort());
      const types = (await world.events(`${source.id}-warn`)).map(({ type }) => type);
      assert.equal(types.filter((type) => type === 'workflow_expectation_failed').length, 1);
    });
  }
});

describe('a workflow with a quarantine publishes all but the bad records', { concurrency: 4 }, () => {
  for (const source of sources) {
    test(source.id, async () => {
      const population = new Population(source, 1);
      const { field, to } = source.flip;
      await world.run(source, '-quarantine', population.nextDay());
      const rows = population.nextDay();
      const bad = rows.filter((row, at) => at % 10 === 0 && isFilled(row[field]));
      const job = await world.run(
        source,
        '-quarantine',
        rows.map((row) => (bad.includes(row) ? { ...row, [field]: to(row[field]) } : row)),
      );
      assert.deepEqual([job.state, job.quarantined], ['finished', bad.length], job.error ?? '');
      assert.deepEqual(asked(job), [`type ${field}`]);
      const { body, headers } = await world.service.call(
        'GET',
        `/v1/workflows/${source.id}-quarantine/quarantine?limit=1`,
      );
      assert.equal(headers.get('x-total-count'), String(bad.length));
      const [first] = (body as { records: { reasons: { field: string }[] }[] }).records;
      assert.deepEqual(
        first?.reasons.map((reason) => reason.field),
        [field],
      );
      const data = await world.service.call('GET', `/v1/workflows/${source.id}-quarantine/data`);
      // A bad record is missing, or still has the state that the day before published.
      const values = new Map(bad.map((row) => [row.id, to(row[field])]));
      const isBad = (row: Row) => values.has(row.id) && row[field] === values.get(row.id);
      assert.deepEqual((data.body as Row[]).filter(isBad), []);
    });
  }
});

describe('a workflow that expects nothing publishes a run with faults, and reports the drift', {
  concurrency: 4,
}, () => {
  for (const source of sources) {
    test(source.id, async () => {
      const population = new Population(source, 1);
      for (let day = 0; day < 6; day += 1) {
        const job = await world.run(source, '-plain', population.nextDay());
        assert.deepEqual([job.state, job.findings], ['finished', null]);
      }
      const job = await world.run(source, '-plain', broken(population, source));
      assert.equal(job.state, 'finished');
      assert.deepEqual(drifts(job).sort(), [
        'duplicates null',
        `filled ${source.number.field}`,
        `type ${source.flip.field}`,
      ]);
      const few = await world.run(source, '-plain', FAULTS.few(population.nextDay(), source));
      assert.ok(drifts(few).includes('records null'), JSON.stringify(few.findings));
      const types = (await world.events(`${source.id}-plain`)).map(({ type }) => type);
      assert.equal(types.filter((type) => type === 'workflow_schema_changed').length, 1);
    });
  }
});

/** The findings of expectations. */
function asked({ findings }: QualityJob): string[] {
  return (findings ?? []).flatMap(({ expectation, field, drift }) =>
    drift ? [] : [`${expectation} ${field}`],
  );
}

function drifts({ findings }: QualityJob): string[] {
  return (findings ?? []).flatMap(({ expectation, field, drift }) =>
    drift ? [`${expectation} ${field}`] : [],
  );
}

async function versionOf(workflowId: string): Promise<unknown> {
  const { body } = await world.service.call('GET', `/v1/workflows/${workflowId}`);
  const { version, records } = body as { version: number; records: number };
  return { version, records };
}
