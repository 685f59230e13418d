/** `flowhook quarantine`, on the database and on a server. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { after, test } from 'node:test';
import { runCommand } from '../support/cli/commands.ts';
import { startService } from '../support/service.ts';

const CHECKED = 'source: { type: push }\nexpect: { fields: { price: { min: 0 } }, otherwise: quarantine }\n';
const service = await startService({
  workflows: { 'default/near.yaml': CHECKED, 'default/far.yaml': CHECKED, 'default/late.yaml': CHECKED },
});
after(() => service.stop());

const PLACES = [
  ['near', 'the database', { FLOWHOOK_DATA: `${service.directory}/data`, ...service.database.settings }],
  ['far', 'a server', { FLOWHOOK_URL: service.url, FLOWHOOK_KEY: service.key }],
] as const;

for (const [workflow, where, environment] of PLACES) {
  const quarantine = (verb: string, ...args: string[]) =>
    runCommand(['quarantine', verb, workflow, ...args], { directory: service.directory, environment });

  test(`records are listed, shown, downloaded, accepted and dropped on ${where}`, async () => {
    const bad = ['a', 'b', 'c', 'd'].map((id) => ({ id, price: -1 }));
    const good = ['e', 'f', 'g', 'h'].map((id) => ({ id, price: 1 }));
    await service.call('POST', `/v1/workflows/${workflow}/push`, [...bad, ...good]);
    const listed = await quarantine('list', '--field', 'price', '--limit', '2');
    assert.equal(listed.code, 0, listed.stderr);
    assert.match(listed.stdout, /^d +\S+Z +job_\w+ +`price` is less than 0: -1\nc .*\n$/);
    assert.match(listed.stderr, /There are more/);
    const shown = await quarantine('show', 'a');
    assert.match(shown.stdout, /quarantine +\{"id":"a","price":-1\}\npublished +no record with this id/);
    const unknown = await quarantine('show', 'e');
    assert.equal(unknown.code, 3, unknown.stderr);
    assert.match(unknown.stderr, /flowhook quarantine list/);
    const csv = await quarantine('download', '--format', 'csv');
    assert.match(csv.stdout, /^id,_job,_setAsideAt,_reasons,price\r\nd,/);
    const lines = (await quarantine('download')).stdout.trimEnd().split('\n');
    assert.deepEqual(
      lines.map((line) => JSON.parse(line).record),
      bad.toReversed(),
    );

    const unsure = await quarantine('accept', 'a');
    assert.equal(unsure.code, 2);
    assert.match(unsure.stderr, /1 record in the quarantine of \w+ will be published as it is\..*--yes/);
    const accepted = await quarantine('accept', 'a', 'x', '--yes', '--json');
    assert.equal(accepted.code, 0, accepted.stderr);
    const { conflicts, ...done } = JSON.parse(accepted.stdout);
    assert.deepEqual([done.accepted, done.version], [1, 2]);
    assert.deepEqual(conflicts, [{ id: 'x', reason: 'not_found' }]);
    assert.match(accepted.stderr, /Left out x: there is no record with this ID/);
    const again = await quarantine('accept', 'a', '--yes');
    assert.notEqual(again.code, 0);
    assert.match(again.stderr, /a newer record with this ID was published/);

    await service.call('POST', `/v1/workflows/${workflow}/pause`);
    const paused = await quarantine('accept', 'b', '--yes');
    assert.equal(paused.code, 5);
    assert.match(paused.stderr, /`flowhook workflows resume \w+`/);
    await service.call('POST', `/v1/workflows/${workflow}/resume`);

    const dropped = await quarantine('drop', 'b', '--yes');
    assert.equal(dropped.stdout, 'dropped 1 record\n', dropped.stderr);
    const all = await quarantine('drop', '--all', '--field', 'price', '--yes', '--json');
    assert.deepEqual(JSON.parse(all.stdout).dropped, 2);
    assert.match((await quarantine('list')).stderr, /The quarantine of \w+ is empty/);
    assert.match(
      (await quarantine('list', '--field', 'x')).stderr,
      /No record in the quarantine of \w+ matches/,
    );
    const none = await quarantine('list', '--json');
    assert.deepEqual(JSON.parse(none.stdout), []);
    const { body } = await service.call('GET', '/v1/audit?action=quarantine.accept');
    assert.ok(
      (body as { lines: { target: { id: string } }[] }).lines.some(({ target }) => target.id === done.jobId),
    );
  });
}

test('mistakes are reported before a database is opened', async () => {
  const at = { directory: service.directory, environment: { FLOWHOOK_DATA: '/nowhere' } };
  for (const args of [
    ['accept', 'near'],
    ['drop', 'near', 'a', '--all'],
    ['drop', 'near', 'a', '--field', 'price'],
    ['list', 'near', '--limit', '0'],
    ['download', 'near', '--format', 'xml'],
  ]) {
    const { code, stderr } = await runCommand(['quarantine', ...args], at);
    assert.equal(code, 2, stderr);
  }
});

test('with --all, what is set aside after the user was asked stays in the quarantine', async (t) => {
  const push = (id: string) => {
    const records = [{ id, price: -1 }, ...['x', 'y'].map((good) => ({ id: good, price: 1 }))];
    return service.call('POST', '/v1/workflows/late/push', records);
  };
  await push('seen');
  // Another run comes just before the call that the user has confirmed.
  let arriving = 'unseen';
  const proxy = createServer(async (request, response) => {
    if (/\/(accept|drop)$/.test(request.url ?? '')) await push(arriving);
    const { method = 'GET', url = '' } = request;
    const headers = { 'x-api-key': service.key, 'content-type': 'application/json' };
    const body = method === 'GET' ? undefined : await text(request);
    const answer = await fetch(service.url + url, {
      method,
      headers,
      ...(body === undefined ? {} : { body }),
    });
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(await answer.text());
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  t.after(() => proxy.close());
  const { port } = proxy.address() as AddressInfo;
  const decide = async (verb: string) => {
    const done = await runCommand(['quarantine', verb, 'late', '--all', '--yes', '--json'], {
      directory: service.directory,
      environment: { FLOWHOOK_URL: `http://127.0.0.1:${port}`, FLOWHOOK_KEY: service.key },
    });
    assert.equal(done.code, 0, done.stderr);
    return JSON.parse(done.stdout) as { accepted?: number; dropped?: number };
  };
  const left = async () => {
    const { body } = await service.call('GET', '/v1/workflows/late/quarantine');
    return (body as { records: { id: string }[] }).records.map(({ id }) => id);
  };
  assert.equal((await decide('accept')).accepted, 1);
  assert.deepEqual(await left(), ['unseen']);
  arriving = 'later';
  assert.equal((await decide('drop')).dropped, 1);
  assert.deepEqual(await left(), ['later']);
});
