/** Records that a push removes: removing nearly all requires `allowDrop`, and removing more than half causes a warning. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { runCommand } from '../support/cli/commands.ts';
import { startService } from '../support/service.ts';

const PUSHED = 'source: { type: push }\n';
const service = await startService({
  workflows: {
    'default/many.yaml': PUSHED,
    'default/few.yaml': PUSHED,
    'default/turned.yaml': PUSHED,
    'default/strict.yaml': `${PUSHED}expect: { records: { drop: 10% } }\n`,
    'default/open.yaml': `${PUSHED}expect: { records: { drop: 100% } }\n`,
    'default/file.yaml': PUSHED,
  },
});
after(() => service.stop());

interface Pushed {
  records: { removed: number; total: number };
  warning?: string;
  error: string;
}

const people = (from: number, count: number) =>
  Array.from({ length: count }, (_, n) => ({ id: `p${from + n}` }));

async function push(
  workflow: string,
  records: object[],
  query = '',
): Promise<{ status: number; body: Pushed }> {
  const { status, body } = await service.call('POST', `/v1/workflows/${workflow}/push${query}`, records);
  return { status, body: body as Pushed };
}

test('a push of one record does not remove 50 others without `allowDrop`', async () => {
  await push('many', people(0, 50));
  const refused = await push('many', people(0, 1));
  assert.equal(refused.status, 422);
  assert.match(refused.body.error, /has 1 of 50 records.*mode=upsert.*allowDrop=true.*expect\.records\.drop/);
  assert.equal((await push('many', people(0, 1), '?mode=upsert')).body.records.total, 50);
  const allowed = await push('many', people(0, 1), '?allowDrop=true');
  assert.deepEqual([allowed.status, allowed.body.records.removed], [200, 49]);
  assert.match(allowed.body.warning ?? '', /removed 49 of 50 records/);
});

test('a push that removes more than half of the records returns a warning', async () => {
  await push('turned', people(0, 20));
  assert.equal((await push('turned', people(0, 10))).body.warning, undefined, 'half');
  await push('turned', people(0, 20));
  assert.match((await push('turned', people(100, 20))).body.warning ?? '', /removed 20 of 20 .*mode=upsert/);
  assert.match(
    (await push('turned', people(100, 2))).body.warning ?? '',
    /removed 18 of 20/,
    'a tenth is left',
  );
});

test('a few records are replaced without a warning', async () => {
  await push('few', people(0, 19));
  const { status, body } = await push('few', people(100, 1));
  assert.deepEqual([status, body.warning], [200, undefined]);
});

test('the guard of a workflow replaces the default, even if the push allows more', async () => {
  await push('strict', people(0, 50));
  for (const query of ['', '?allowDrop=true']) {
    const { status, body } = await push('strict', people(0, 40), query);
    assert.equal(status, 422);
    assert.match(body.error, /expect\.records\.drop` \(10%\)/);
  }
  await push('open', people(0, 50));
  assert.equal((await push('open', people(0, 1))).status, 200);
});

test('the command has the same warning and option', async () => {
  await push('file', people(0, 50));
  await writeFile(join(service.directory, 'one.csv'), 'id\np0\n');
  const load = (...args: string[]) =>
    runCommand(['data', 'import', 'one.csv', '--workflow', 'file', ...args], {
      directory: service.directory,
      environment: { FLOWHOOK_DATA: join(service.directory, 'data'), ...service.database.settings },
    });
  const refused = await load();
  assert.notEqual(refused.code, 0);
  assert.match(refused.stderr, /has 1 of 50 records/);
  const allowed = await load('--allow-drop');
  assert.equal(allowed.code, 0, allowed.stderr);
  assert.match(allowed.stderr, /removed 49 of 50 records/);
});
