/** Feeds on the command line, on a local database and on a server. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Feed } from '../../client/src/flowhook-client.ts';
import { makePlace } from '../support/cli/place.ts';
import { startServerProcess } from '../support/server-process.ts';

const WORKFLOWS = { 'default/people.yaml': 'source: { type: push }\n' };
const TOKEN = /\/feeds\/[0-9a-z]{66}\.atom$/;

for (const where of ['a database', 'a server']) {
  test(`on ${where}: creates, lists, shows, changes, rotates and revokes feeds`, async (t) => {
    const place = await makePlace(t, WORKFLOWS);
    const on: string[] = [];
    if (where === 'a server') {
      const server = await startServerProcess(place.environment);
      t.after(() => server.stop());
      on.push('--url', server.url, '--key', place.environment.FLOWHOOK_BOOTSTRAP_KEY ?? '');
    } else assert.equal((await place.run('apply')).code, 0);
    const feeds = (...args: string[]) => place.run('feeds', ...args, ...on);
    const run = async (...args: string[]) => {
      const { code, stdout, stderr } = await feeds(...args);
      assert.equal(code, 0, `${args.join(' ')}: ${stderr}`);
      return stdout;
    };
    const read = async (...args: string[]) => JSON.parse(await run(...args, '--json'));

    assert.match((await feeds('list', 'people')).stderr, /No feeds found\. Create one with `flowhook feeds /);
    const made = await feeds('create', 'people', '--title', 'All people', '--filter', 'change == "added"');
    assert.match(made.stdout.trim(), TOKEN);
    assert.match(made.stderr, /anyone who has the address can read it/);
    const [feed] = (await read('list', 'people')) as Feed[];
    assert.equal(feed?.urls?.atom, made.stdout.trim());
    const { id = '' } = feed ?? {};
    assert.match(
      await run('list', 'people'),
      new RegExp(`^${id} +All people +record +http\\S+ +change == "added"$`, 'm'),
    );

    await run('set', 'people', id, '--no-title', '--no-filter', '--entries', 'version', '--window', '7d');
    const shown = await run('show', 'people', id);
    assert.match(shown, /^entries +one per version, at most 50$/m);
    assert.match(shown, /^window +7d$/m);
    assert.doesNotMatch(shown, /^(title|filter) /m);

    assert.match(
      (await feeds('rotate', 'people', id)).stderr,
      /readers need the new ones.* Confirm with --yes/s,
    );
    const rotated = (await run('rotate', 'people', id, '--yes')).trim();
    assert.notEqual(rotated, feed?.urls?.atom);
    assert.equal(await run('revoke', 'people', id, '--yes'), `revoked ${id}\n`);
    assert.deepEqual(await read('list', 'people'), []);
  });
}

test('mistakes on the command line name the next step', async (t) => {
  const place = await makePlace(t, WORKFLOWS);
  await place.run('apply');
  const { id } = JSON.parse((await place.run('feeds', 'create', 'people', '--json')).stdout) as Feed;
  for (const [args, code, sentence] of [
    [['show', 'people', `${id.slice(0, -1)}_`], 3, new RegExp(`has no feed .* Did you mean ${id}\\?`)],
    [['show', 'people', 'x'], 3, /has no feed "x"\. `flowhook feeds list people` shows them/],
    [['show', 'poeple', id], 3, /No workflow "poeple" found\. Did you mean "people"\?/],
    [['create', 'people', '--entries', 'records'], 2, /--entries must be one of record, version/],
    [['create', 'people', '--limit', '201'], 2, /--limit must be a whole number from 1 to 200, found "201"/],
    [['create', 'people', '--window', '400d'], 2, /`window` must be a number of days from "1d" to "365d"/],
    [['create', 'people', '--filter', 'chnage == 1'], 2, /`filter`: .*chnage/],
    [['set', 'people', id], 2, /Nothing to change/],
  ] as const) {
    const ended = await place.run('feeds', ...args);
    assert.match(ended.stderr, sentence, args.join(' '));
    assert.equal(ended.code, code, args.join(' '));
  }
});
