/** `workflows new` on typical sites: the proposals, and the number of edits that each needs. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { parse } from 'yaml';
import { proposalText } from '../../src/definitions/proposals/proposal.ts';
import { proposeFor } from '../../src/definitions/proposals/propose.ts';
import type { HttpSource } from '../../src/model/http-source.ts';
import { makePlace } from '../support/cli/place.ts';
import { definitionOf, type Site, site, take } from '../support/jobs/source-site.ts';

const SITES = join(import.meta.dirname, '../fixtures/sites');
const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.json': 'application/json',
};
const MOST_EDITS = 2;

interface Wanted {
  start: string;
  answers: Record<string, { file: string; headers?: Record<string, string> }>;
  key: string[];
  records: Record<string, unknown>[];
}

/** A line of the proposal, and its correction. */
type Edit = [line: RegExp, instead: string];

const EDITS: Readonly<Record<string, Edit[]>> = {
  directory: [],
  shop: [],
  table: [],
  cursor: [],
  offset: [],
  'link-header': [],
};

/** The site of a fixture, and the expected records. */
async function fixture(t: TestContext, name: string): Promise<Wanted & { site: Site }> {
  const wanted = JSON.parse(await readFile(join(SITES, name, 'wanted.json'), 'utf8')) as Wanted;
  const there = await site(t, (request, response) => {
    const answer = wanted.answers[request.url ?? ''];
    if (answer === undefined) return response.writeHead(404).end('Nothing here');
    response.setHeader('content-type', TYPES[extname(answer.file)] ?? '');
    for (const [header, value] of Object.entries(answer.headers ?? {})) response.setHeader(header, value);
    response.end(readFileSync(join(SITES, name, answer.file)));
  });
  return {
    ...wanted,
    records: JSON.parse(JSON.stringify(wanted.records).replaceAll('{site}', there.url)),
    site: there,
  };
}

async function proposed(url: string): Promise<string> {
  const source = definitionOf({ source: { type: 'http', url } }).source as HttpSource;
  const asked = { allowNetworks: 'loopback', agent: 'flowhook/0.0.0', signal: new AbortController().signal };
  return proposalText(await proposeFor(source, { ...asked, onLog() {} }));
}

for (const [name, edits] of Object.entries(EDITS)) {
  test(`${name}: a working workflow with ${edits.length} edits`, async (t) => {
    const wanted = await fixture(t, name);
    let text = await proposed(`${wanted.site.url}${wanted.start}`);
    for (const [line, instead] of edits) {
      assert.match(text, line);
      text = text.replace(line, instead);
    }
    assert.ok(edits.length <= MOST_EDITS);
    const settings = parse(text);
    const { records } = await take(settings);
    const expected = wanted.records.map((one) =>
      JSON.stringify(Object.fromEntries(wantedNames(wanted).map((field) => [field, one[field] ?? null]))),
    );
    const found = records.map((one) =>
      JSON.stringify(Object.fromEntries(wantedNames(wanted).map((field) => [field, one[field] ?? null]))),
    );
    assert.deepEqual(found, expected, text);
    assert.deepEqual(settings.key, wanted.key);
  });
}

function wantedNames({ records }: Wanted): string[] {
  return [...new Set(records.flatMap((one) => Object.keys(one)))];
}

test('workflows new writes a new file, shows its first records, and requests only allowed addresses', async (t) => {
  const { site: there } = await fixture(t, 'table');
  const url = `${there.url}/gemeinden.html`;
  const place = await makePlace(t, { 'default/push.yaml': 'source: { type: push }\n' }, false);
  const file = join(place.directory, 'workflows/default/towns.yaml');
  const made = await place.run('workflows', 'new', url, '--out', file);
  assert.deepEqual([made.code, existsSync(file)], [0, true], made.stderr);
  assert.match(made.stdout, /^schluessel +gemeinde +einwohner/);
  assert.match(made.stdout, /^08 315 015 +Bühlfeld +10023 +12\.9 +2025-12-31/m);
  assert.equal(there.asked.filter((one) => one === 'GET /robots.txt').length, 2, 'asked as by a run');

  const before = readFileSync(file, 'utf8');
  const again = await place.run('workflows', 'new', url, '--out', file);
  assert.deepEqual([again.code, /already exists/.test(again.stderr)], [2, true]);
  assert.equal(readFileSync(file, 'utf8'), before);

  const shown = await place.run('workflows', 'new', url);
  assert.deepEqual([shown.code, shown.stdout], [0, before]);
  assert.match(shown.stderr, /Altenmühl/);
  await place.run('apply');
  assert.match((await place.run('run', 'towns')).stdout, /^towns version 1: 8 records, 8 added/);

  const refused = await place.run('workflows', 'new', url, '--allow-networks', 'none');
  assert.deepEqual([refused.code, /does not allow/.test(refused.stderr)], [1, true], refused.stderr);
});

test('an API that needs a key receives the header, and the file says where to store the key', async (t) => {
  const there = await site(t, (request, response) => {
    if (request.url === '/robots.txt') return response.writeHead(404).end();
    if (request.headers['x-api-key'] !== 'hush') return response.writeHead(401).end('{"error":"key"}');
    response
      .setHeader('content-type', 'application/json')
      .end('[{"id":1,"name":"Ada"},{"id":2,"name":"Grace"}]');
  });
  const place = await makePlace(t, { 'default/push.yaml': 'source: { type: push }\n' }, false);
  const file = join(place.directory, 'workflows/default/people.yaml');
  const refused = await place.run('workflows', 'new', there.url, '--out', file);
  assert.deepEqual([refused.code, /401/.test(refused.stderr)], [1, true], refused.stderr);
  const made = await place.run('workflows', 'new', there.url, '--out', file, '--header', 'x-api-key: hush');
  assert.equal(made.code, 0, made.stderr);
  assert.match(made.stdout, /Grace/);
  assert.doesNotMatch(made.stderr, /Save it as|Move it to/, 'the file is in the right place');
  assert.ok(made.stderr.includes(`workflows test ${file}\``), made.stderr);
  const text = readFileSync(file, 'utf8');
  assert.match(
    text,
    /# If this is a secret, put it into secrets\/<team>\.yaml .*write \$\{secret\.NAME\} here\.\n +x-api-key: hush\n/,
  );
  assert.equal((await place.run('workflows', 'validate')).code, 0);
  const elsewhere = join(place.directory, 'people.yaml');
  const apart = await place.run(
    'workflows',
    'new',
    there.url,
    '--out',
    elsewhere,
    '--header',
    'x-api-key: hush',
  );
  assert.match(apart.stderr, /Move it to <team>\/<id>\.yaml in the workflows directory \(/);
});

test('a response cannot inject templates into the proposal', async (t) => {
  const row = (id: number) => ({ id, name: 'a', '${secret.TOKEN}': 'b', '{{$.x}}': id });
  const there = await site(t, {
    '/api': { items: [row(1), row(2)], 'next_cursor${secret.TOKEN}': 'x', note: 'c\n# d\u2028source: e' },
    '/page': `<html lang="\n"><ul>${['a', 'b', 'c'].map((one) => `<li class="\${secret.TOKEN} x" data-\${secret.token}="${one}"><b>${one}</b><i>1${one}</i>`).join('')}</ul><a href="?2" title="Next \${secret.TOKEN}">`,
  });
  for (const path of ['/api', '/page']) {
    const text = await proposed(there.url + path);
    assert.doesNotMatch(text, /secret|\{\{/i);
    assert.equal((await take(parse(text))).records.length, path === '/api' ? 2 : 3);
  }
});

test('a table without headings and a CSV file are proposed', async (t) => {
  const row = (id: number, born: string) =>
    `<tr class="person"><td><a class="profile" href="/p/${id}">Ada ${id}</a></td><td>${born}</td><td><a href="mailto:a${id}@x.org">Write</a></td></tr>`;
  const there = await site(t, {
    '/list': `<table>${row(1, '10.12.1815')}${row(2, '09.12.1906')}${row(3, '23.03.1882')}</table>`,
    '/people.csv': (_request, response) =>
      response.setHeader('content-type', 'text/csv').end('Key;Born\n007;10.12.1815\n008;09.12.1906\n'),
  });
  const list = parse(await proposed(`${there.url}/list`));
  assert.deepEqual((await take(list)).records[0], {
    url: `${there.url}/p/1`,
    profile: 'Ada 1',
    column: '1815-12-10',
    email: 'a1@x.org',
  });
  assert.deepEqual(list.key, ['url']);
  const csv = await take(parse(await proposed(`${there.url}/people.csv`)));
  assert.deepEqual(csv.records[0], { Key: '007', Born: '1815-12-10' });
});

test('the error for a page without records has the next step', async (t) => {
  const there = await site(t, {
    '/empty': '<div id=root></div><script src=app.js></script>',
    '/words': ['a', 'b'],
    '/one': { id: 7, name: 'alone' },
    '/broken': (_request, response) =>
      response.setHeader('content-type', 'application/json').end('{"people": ['),
  });
  await assert.rejects(proposed(`${there.url}/empty`), /No repeated elements on .*If a script loads them/);
  await assert.rejects(proposed(`${there.url}/words`), /without objects/);
  await assert.rejects(proposed(`${there.url}/broken`), /The response of .*\/broken is not valid JSON/);
  assert.match(await proposed(`${there.url}/one`), /all of it is one record/);
});
