/** The Python mirror: its table equals the published records. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, test } from 'node:test';
import { inPath } from '../../../test/support/in-path.ts';
import { KEY, PEOPLE, program, type Service, startService } from '../service.ts';

const missing = ['python3'].filter((name) => inPath(name) === undefined);
const options = { skip: missing.length > 0 && `not installed here: ${missing.join(', ')}` };
let service: Service;
before(async () => {
  service = await startService();
});
after(() => service?.stop());

test(
  'a mirror follows what is added, changed and removed, and starts over when its version is unknown',
  options,
  async () => {
    const path = join(service.directory, 'mirror.db');
    const mirror = async (workflow = 'people', key = KEY) =>
      program(['python3', join(import.meta.dirname, 'mirror.py'), workflow, path], service, {
        FLOWHOOK_KEY: key,
      });
    const [ada, grace] = PEOPLE;
    assert.ok(ada && grace);
    const look = (sql: string) => {
      const database = new DatabaseSync(path);
      const rows = database.prepare(sql).all();
      database.close();
      return rows;
    };
    const mirrored = () =>
      look('SELECT body FROM record ORDER BY id').map(({ body }) => JSON.parse(String(body)));

    await service.run();
    assert.equal((await mirror()).output, 'people: version 1, 3 changes\n');
    assert.deepEqual(mirrored(), PEOPLE);
    assert.equal((await mirror()).output, 'people: version 1, 0 changes\n');

    const { email: _, ...withoutEmail } = ada;
    const next = [{ ...withoutEmail, name: 'Ada King' }, grace, { id: '4', name: 'Mary Somerville' }];
    await service.publishNext(next);
    await service.run();
    assert.equal((await mirror()).output, 'people: version 2, 3 changes\n');
    assert.deepEqual(mirrored(), next);

    look('UPDATE mirrored SET version = 99 RETURNING 1');
    assert.equal((await mirror()).output, 'people: version 2, 3 changes\n');
    assert.deepEqual(mirrored(), next);

    const refused = await mirror('people', 'no-such-key');
    assert.equal(refused.status, 1);
    assert.match(refused.errors, /Flowhook returned 401/);
    assert.deepEqual(mirrored(), next);
  },
);
