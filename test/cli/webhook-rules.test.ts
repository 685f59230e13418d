/** Rules of webhooks on the command line, on a local database and on a server. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { makePlace } from '../support/cli/place.ts';
import { startReceiver } from '../support/receiver.ts';
import { startServerProcess } from '../support/server-process.ts';

const WORKFLOWS = { 'default/prices.yaml': 'source: { type: push }\n' };
const FILTER = 'fallsBy(previous.price, record.price, "5%")';
const VERSIONS = [
  [
    { id: 'a', price: 100 },
    { id: 'b', price: 50 },
  ],
  [
    { id: 'a', price: 90 },
    { id: 'b', price: 49 },
  ],
];

for (const where of ['a database', 'a server']) {
  test(`on ${where}: subscribes with a rule, changes, tries and shows it, and filters what is read`, async (t) => {
    const place = await makePlace(t, WORKFLOWS);
    const receiver = await startReceiver();
    t.after(() => receiver.stop());
    const on: string[] = [];
    const run = async (...args: string[]) => {
      const { code, stdout, stderr } = await place.run(...args, ...on);
      assert.equal(code, 0, `${args.join(' ')}: ${stderr}`);
      return stdout;
    };
    if (where === 'a server') {
      const server = await startServerProcess(place.environment);
      t.after(() => server.stop());
      on.push('--url', server.url, '--key', place.environment.FLOWHOOK_BOOTSTRAP_KEY ?? '');
    }
    for (const [at, records] of VERSIONS.entries()) {
      const file = join(place.directory, `${at}.ndjson`);
      await writeFile(file, records.map((record) => `${JSON.stringify(record)}\n`).join(''));
      await run('data', 'import', file, '--workflow', 'prices');
    }
    const template = join(place.directory, 'template.json');
    await writeFile(template, JSON.stringify({ text: `\${id} costs \${record.price}` }));

    const subscribe = [
      'webhooks',
      'subscribe',
      'prices',
      receiver.url,
      '--filter',
      FILTER,
      '--name',
      'Cheaper',
    ];
    const id = (await run(...subscribe, '--cooldown', '6h', '--events', 'data.changed')).trim();
    assert.match(id, /^wh_\w+$/);
    const shown = await run('webhooks', 'show', id);
    assert.match(shown, /^name +Cheaper$/m);
    assert.match(shown, /^filter +fallsBy\(previous\.price, record\.price, "5%"\)$/m);
    assert.match(shown, /^first version +skipped$/m);
    assert.match(shown, /^cooldown +6h$/m);
    assert.match(await run('webhooks', 'list'), /fallsBy\(/);

    const set = ['webhooks', 'set', id, '--json'];
    const shaped = JSON.parse(
      await run(...set, '--template', template, '--no-cooldown', '--first-version', 'send'),
    );
    assert.deepEqual(
      [shaped.format, shaped.template, shaped.cooldown, shaped.firstVersion, shaped.filter],
      ['template', { text: `\${id} costs \${record.price}` }, null, 'send', FILTER],
    );
    const plain = JSON.parse(await run(...set, '--no-template', '--first-version', 'default', '--no-name'));
    assert.deepEqual([plain.format, plain.firstVersion, plain.name], ['standard', 'skip', null]);

    const tried = await run('webhooks', 'try', id);
    assert.match(tried, /^workflow_data_change {2}\S+Z {2}\S.* {2}The first version is skipped\n/);
    assert.match(tried, /\nworkflow_data_change {2}\S+Z {2}1 of 2 {2}sent\n$/);
    const asJson = await run(
      'webhooks',
      'try',
      '--workflow',
      'prices',
      '--template',
      template,
      '--filter',
      FILTER,
      '--events',
      'data.changed',
      '--json',
    );
    assert.equal(JSON.parse(asJson).at(-1).body, '{"text":"a costs 90"}');

    const events = JSON.parse(await run('events', 'list', '--filter', FILTER, '--json'));
    assert.deepEqual(
      events.map((event: { data: { matched: number } }) => event.data.matched),
      [1],
    );
    const changes = await run('data', 'changes', 'prices', '--since', '1', '--filter', FILTER);
    assert.match(changes, /^\{"type":"changed","id":"a"[^\n]*\n$/);
    assert.equal(await run('webhooks', 'decisions', id), '');

    for (const [args, sentence] of [
      [['set', id, '--filter', 'rekord.price < 5'], /`filter`: .*`rekord`/],
      [['set', id, '--no-filter', '--cooldown', '6h'], /`cooldown`: .*set a filter/],
      [['set', id, '--format', 'cloudevent'], /--format must be one of .*Did you mean cloudevents\?/],
      [['set', id, '--first-version', 'sent'], /--first-version must be one of send, skip, default/],
      [['set', id, '--template', 'nowhere.json'], /--template: the file cannot be read/],
      [['try', id, '--last', '51'], /--last must be a whole number from 1 to 50/],
      [['try', id, '--workflow', 'prices'], /A webhook has its own workflow/],
      [['try', '--filter', 'record.price <'], /`filter`: /],
      [['decisions', id, '--state', 'lost'], /--state must be one of pending, sent, gathered, filtered/],
      [['set', id], /Set at least one of /],
    ] as const) {
      const { code, stderr } = await place.run('webhooks', ...args, ...on);
      assert.match(stderr, sentence);
      assert.equal(code, 2, args.join(' '));
    }
  });
}
