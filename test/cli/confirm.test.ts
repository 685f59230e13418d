/** Destructive commands ask for confirmation, with the amount of data affected. */
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { type Ended, runCommand, startCommand } from '../support/cli/commands.ts';
import { makePlace, type Place } from '../support/cli/place.ts';

const TERMINAL = { columns: 100 };

let place: Place;
let key: string;
let webhook: string;

before(async (t) => {
  place = await makePlace(t as never, { 'default/people.yaml': 'source: { type: push }\n' });
  const input = '{"id":1,"email":"a@b.co"}\n{"id":2}\n';
  const args = ['data', 'import', '-', '--format', 'ndjson', '--workflow', 'people'];
  assert.equal((await runCommand(args, { ...place, input })).code, 0);
  await place.run('keys', 'create', '--team', 'default', '--name', 'zapier');
  const [made] = JSON.parse((await place.run('keys', 'list', '--json')).stdout) as { id: string }[];
  key = made?.id ?? '';
  webhook = (await place.run('webhooks', 'subscribe', 'people', 'http://127.0.0.1:1/hook')).stdout.trim();
  await place.run('webhooks', 'test', webhook);
  await place.run('webhooks', 'test', webhook);
});

function answer(args: readonly string[], input: string) {
  return runCommand(args, { ...place, input, terminal: TERMINAL });
}

const ERASE = ['data', 'erase', '--team', 'default', '--email', 'a@b.co'];

for (const { what, args, asks, unchanged } of [
  {
    what: 'erasing a person',
    args: () => ERASE,
    asks: /"a@b\.co" will be permanently erased from the team "default": 1 stored record in 1 workflow \(old versions included\), 2 texts in events, deliveries, logs and profiles\. /,
    unchanged: async () => (await place.run('data', 'get', 'people')).stdout.includes('a@b.co'),
  },
  {
    what: 'revoking a key',
    args: () => ['keys', 'revoke', key],
    asks: /The key key_\w+ \("zapier"\) of the team "default", never used, will be permanently revoked/,
    unchanged: async () => !(await place.run('keys', 'list')).stdout.includes('revoked'),
  },
  {
    what: 'removing a webhook',
    args: () => ['webhooks', 'unsubscribe', webhook],
    asks: /and its secret will be permanently deleted, and 2 waiting deliveries will not be sent\. /,
    unchanged: async () => (await place.run('webhooks', 'show', webhook)).code === 0,
  },
  {
    what: 'rotating a secret without overlap',
    args: () => ['webhooks', 'rotate', webhook, '--overlap-hours', '0'],
    asks: /will stop signing immediately, so its receiver will reject deliveries until it has the new secret/,
    unchanged: async () => true,
  },
]) {
  test(`${what} asks on a terminal, and changes nothing without a confirmation`, async () => {
    const secret = (await place.run('webhooks', 'secret', webhook)).stdout;
    const refused = (ended: Ended, sentence: RegExp) => {
      assert.equal(ended.code, 2, ended.stderr);
      assert.equal(ended.stdout, '');
      assert.match(ended.stderr, asks);
      assert.match(ended.stderr, sentence);
    };
    for (const input of ['n\n', '\n', '']) {
      refused(await answer(args(), input), /Continue\? \[y\/N\] \n?flowhook: You did not confirm, so .*\n$/);
    }
    // A line from a pipe is not a reply, even if it is `y`: it may be the next line of a shell loop.
    for (const input of ['', 'y\n']) {
      refused(
        await runCommand(args(), { ...place, input }),
        /Standard input is not a terminal, .*\. Confirm with --yes\n$/,
      );
    }
    assert.ok(await unchanged());
    assert.equal((await place.run('webhooks', 'secret', webhook)).stdout, secret);
  });
}

test('a confirmation does not wait for a pipe that stays open', async (t) => {
  const { process: child, ended } = startCommand(['keys', 'revoke', key], { ...place, input: null });
  t.after(() => child.kill('SIGKILL'));
  const { code, stderr } = await ended;
  assert.deepEqual([code, /Confirm with --yes/.test(stderr)], [2, true]);
});

test('y on a terminal confirms, and a dry run and a rotation with overlap do not ask', async () => {
  assert.equal((await place.run(...ERASE, '--dry-run')).code, 0);
  assert.equal((await place.run('webhooks', 'rotate', webhook)).code, 0);
  const rotated = await place.run('webhooks', 'rotate', webhook, '--overlap-hours', '0', '--yes');
  assert.equal(rotated.code, 0);
  // No old secret signs any more.
  assert.equal(rotated.stderr, '');
  for (const args of [ERASE, ['keys', 'revoke', key], ['webhooks', 'unsubscribe', webhook]]) {
    const ended = await answer(args, 'y\n');
    assert.equal(ended.code, 0, ended.stderr);
  }
  assert.doesNotMatch((await place.run('data', 'get', 'people')).stdout, /a@b\.co/);
  assert.match((await place.run('keys', 'list')).stdout, /revoked/);
  assert.equal((await place.run('webhooks', 'show', webhook)).code, 3);
  // There is nothing left to erase, and so no question.
  const again = await place.run(...ERASE);
  assert.deepEqual([again.code, /Nothing was found/.test(again.stderr)], [0, true]);
});
