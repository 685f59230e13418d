/** The cost of ending an entry of a quarantine does not depend on the number of entries. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openEmptyDatabase } from '../../../test/support/store/empty-database.ts';
import { RELEASE } from '../operations/quarantine/staged.ts';

test('finds the entry that a record ends by its id', async (t) => {
  const db = await openEmptyDatabase(t);
  const steps = db.all<{ detail: string }>(`explain query plan ${RELEASE.sqlite}`, 't', 'w', 1, 1, 'key');
  assert.deepEqual(
    steps.map(({ detail }) => detail),
    ['SEARCH quarantined USING INDEX quarantined_record (team_id=? AND workflow_id=? AND record_key=?)'],
  );
});
