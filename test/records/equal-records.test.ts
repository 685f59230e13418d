/** Records with the same values in another notation: nothing has changed. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { startService } from '../support/service.ts';

const service = await startService({ workflows: { 'default/people.yaml': 'source: { type: push }\n' } });
after(() => service.stop());

const DIGITS = '"digits":"1234567890123456"';
const FIRST = `{"id":"a","name":"Ada",${DIGITS},"n":1.0,"large":9007199254740993,"in":{"x":1,"y":[{"p":1e3,"q":2}]}}`;
const push = async (text: string) => {
  const answer = await fetch(`${service.url}/v1/workflows/people/push`, {
    method: 'POST',
    headers: { 'x-api-key': service.key, 'content-type': 'application/x-ndjson' },
    body: text,
  });
  assert.equal(answer.status, 200);
  return (await answer.json()) as { version: number; records: { changed: number } };
};
const read = (path: string) =>
  fetch(`${service.url}/v1/workflows/people/${path}`, { headers: { 'x-api-key': service.key } });

test('a record with the same values in another notation publishes no version', async () => {
  const { version } = await push(FIRST);
  const before = await read('data');
  const body = await before.text();
  for (const same of [
    `{"in":{"y":[{"q":2,"p":1000.00}],"x":1},"large":9007199254740993,"n":1,${DIGITS},"name":"\\u0041da","id":"a"}`,
    FIRST.replace('1.0', '10e-1'),
    FIRST.replace('9007199254740993', '9007199254740993.0'),
  ]) {
    assert.equal((await push(same)).version, version, same);
  }
  const now = await read('data');
  assert.deepEqual([now.headers.get('etag'), await now.text()], [before.headers.get('etag'), body]);
});

test('a change lists only the fields whose values differ', async () => {
  const { version } = await push(FIRST);
  const changed = FIRST.replace('"n":1.0', '"n":1.0000000000000001')
    .replace('{"p":1e3,"q":2}', '{"q":2,"p":1000}')
    .replace('9007199254740993', '9007199254740992');
  const next = await push(changed);
  assert.deepEqual([next.version, next.records.changed], [version + 1, 1]);
  const [change] = (await (await read(`changes?since=${version}`)).json()) as { fields: { key: string }[] }[];
  assert.deepEqual(
    change?.fields.map(({ key }) => key),
    ['n', 'large'],
  );
  const events = await service.store.events.list({ teamId: service.team.id, afterSequence: 0, limit: 100 });
  const told = events.filter(({ type }) => type === 'workflow_data_change').at(-1);
  assert.match(told?.body ?? '', /1\.0000000000000001/);
  assert.doesNotMatch(told?.body ?? '', /"key":"in"/);
});

test('a record that returned to its values has not changed since that version', async () => {
  const { version } = await push('{"id":"a","in":{"x":1,"y":2}}');
  await push('{"id":"a","in":{"x":3,"y":2}}');
  await push('{"in":{"y":2,"x":1},"id":"a"}');
  assert.deepEqual(await (await read(`changes?since=${version}`)).json(), []);
});
