/** Running checks: a check that throws or hangs does not stop the others. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Problem } from '../model/error.ts';
import { type Check, examine, ofSettings, ofStore, ok, type Subject } from './check.ts';
import { Doctor } from './doctor.ts';

const SUBJECT: Subject = {
  settings: undefined,
  mistakes: [],
  doubts: [],
  database: { store: undefined, schema: undefined, mistake: undefined, without: undefined },
  isServed: null,
  node: undefined,
  online: null,
  isFull: false,
  clock: () => 1_000,
};

function check(name: string, run: Check['run'], limitMs?: number): Check {
  return { group: 'machine', name, run, ...(limitMs === undefined ? {} : { limitMs }) };
}

test('a check that throws or hangs is an error, and the others still run', async () => {
  let ended: AbortSignal | undefined;
  const begun: string[] = [];
  const { examinedAt, findings } = await examine(
    SUBJECT,
    [
      check('breaks', () => {
        throw new Error('It is broken');
      }),
      check('rejects', () => Promise.reject(new Problem('database_unavailable'))),
      check(
        'hangs',
        (_, signal) => {
          ended = signal;
          return new Promise(() => undefined);
        },
        10,
      ),
      check('works', () => ok('All is well')),
    ],
    { onBegin: ({ name }) => begun.push(name) },
  );
  assert.equal(examinedAt, 1_000);
  assert.deepEqual(
    findings.map(({ check: name, status }) => [name, status]),
    [
      ['breaks', 'error'],
      ['rejects', 'error'],
      ['hangs', 'error'],
      ['works', 'ok'],
    ],
  );
  assert.match(findings[0]?.what ?? '', /It is broken/);
  assert.match(findings[1]?.what ?? '', /The database did not respond/);
  assert.match(findings[2]?.what ?? '', /within 0\.01 s/);
  assert.equal(ended?.aborted, true);
  assert.deepEqual(begun, ['breaks', 'rejects', 'hangs', 'works']);
});

test('checks without valid settings or a database are skipped, with the reason', async () => {
  const never = () => assert.fail('the check has no subject');
  const { findings } = await examine(SUBJECT, [
    ofSettings('files', 'files', never),
    ofStore('work', 'work', never),
  ]);
  assert.deepEqual(
    findings.map(({ status, why }) => [status, why]),
    Array(2).fill(['skipped', 'The settings are invalid. Fix them first']),
  );
});

test('a node runs one examination at a time, caches it for 30 s, and aborts it when it stops', async () => {
  const asked = Promise.withResolvers<Subject>();
  let times = 0;
  let nowMs = 0;
  const doctor = new Doctor(
    () => {
      times += 1;
      return asked.promise;
    },
    () => nowMs,
  );
  const both = [doctor.examine(), doctor.examine()];
  asked.resolve(SUBJECT);
  const [one, other] = await Promise.all(both);
  assert.equal(one, other);
  nowMs = 29_999;
  assert.equal(await doctor.examine(), one);
  assert.equal(times, 1);
  nowMs = 30_000;
  const next = doctor.examine();
  const refused = assert.rejects(next, { code: 'stopping' });
  await doctor.stop();
  await refused;
  assert.equal(times, 2);
});
