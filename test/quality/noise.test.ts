/**
 * Normal days raise no alarm: the profiles of ten sources that live for a thousand days, judged as runs are. The
 * rows are generated, so the same seed always has the same days; QUALITY_DAYS sets how many.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { COMPARED_PROFILES, driftSentence, judgeDrift } from '../../src/model/quality/drift.ts';
import type { Profile } from '../../src/model/quality/profile.ts';
import { RunProfile } from '../../src/records/quality/run-profile.ts';
import { Population, type Row } from '../support/quality/population.ts';
import { FAULTS, type FaultName, SOURCES } from '../support/quality/sources.ts';

const DAYS = Number(process.env.QUALITY_DAYS ?? 60);
const SEED = Number(process.env.QUALITY_SEED ?? 1);

function profileOf(rows: readonly Row[]): Profile {
  const profile = new RunProfile();
  const seen = new Set<string>();
  for (const row of rows) {
    seen.add(row.id);
    profile.add(row);
  }
  return profile.result({ duplicates: rows.length - seen.size });
}

for (const source of SOURCES) {
  test(`${DAYS} days of ${source.id} are normal, and each fault on the last day is not`, () => {
    const population = new Population(source, SEED);
    const earlier: Profile[] = [];
    for (let day = 1; day <= DAYS; day += 1) {
      const profile = profileOf(population.nextDay());
      const drifts = judgeDrift({ mode: 'replace', profile, earlier });
      assert.deepEqual(drifts.map(driftSentence), [], `day ${day}`);
      earlier.unshift(profile);
      earlier.splice(COMPARED_PROFILES);
    }
    const named = (fault: FaultName) =>
      judgeDrift({
        mode: 'replace',
        profile: profileOf(FAULTS[fault](population.nextDay(), source)),
        earlier,
      }).map(({ expectation, field }) => `${expectation} ${field}`);
    assert.deepEqual(named('half empty'), [`filled ${source.number.field}`]);
    assert.deepEqual(named('type flip'), [`type ${source.flip.field}`]);
    assert.ok(named('few').includes('records null'));
    assert.deepEqual(named('duplicates'), ['duplicates null']);
  });
}
