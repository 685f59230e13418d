/**
 * Normal days raise no alarm: ten sources that live as real ones do, and sources with one kind of noise each, judged as
 * runs are. The records are generated, so the same seed always has the same days; QUALITY_DAYS sets how many.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { driftSentence } from '../../src/model/quality/drift.ts';
import { Judge } from '../support/quality/judge.ts';
import { noisySources } from '../support/quality/noisy-sources.ts';
import { Population } from '../support/quality/population.ts';
import { FAULTS, type FaultName, SOURCES } from '../support/quality/sources.ts';

const DAYS = Number(process.env.QUALITY_DAYS ?? 60);
const SEED = Number(process.env.QUALITY_SEED ?? 1);

for (const source of SOURCES) {
  test(`${DAYS} days of ${source.id} are normal, and each fault on the last day is not`, () => {
    const population = new Population(source, SEED);
    const judge = new Judge();
    for (let day = 1; day <= DAYS; day += 1)
      assert.deepEqual(judge.add(population.nextDay()).map(driftSentence), [], `day ${day}`);
    const named = (fault: FaultName) =>
      judge
        .judge(FAULTS[fault](population.nextDay(), source))
        .map(({ expectation, field }) => `${expectation} ${field}`);
    assert.deepEqual(named('half empty'), [`filled ${source.number.field}`]);
    assert.deepEqual(named('type flip'), [`type ${source.flip.field}`]);
    assert.ok(named('few').includes('records null'));
    assert.deepEqual(named('duplicates'), ['duplicates null']);
  });
}

for (const { name, mode, next } of noisySources(SEED)) {
  test(`${DAYS} runs of ${name} are normal`, () => {
    const judge = new Judge(mode);
    for (let run = 1; run <= DAYS; run += 1)
      assert.deepEqual(judge.add(next()).map(driftSentence), [], `run ${run}`);
  });
}
