/** HTTP sources on the command line: preview, test and run, also when the source returns nothing new. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { makePlace } from '../support/cli/place.ts';
import { site } from '../support/jobs/source-site.ts';

const PAGE = `<!doctype html><table><tr><th>Who<tr class=person><td><a href="/p/1">Ada Lovelace</a>
  <td><a href="mailto:ada@x.org">m</a><tr class=person><td><a href="/p/2">Grace Hopper</a><td></table>
  <a class=next href="?page=2">next</a>`;
const PEOPLE = `source:
  type: http
  url: http://saved.invalid/saved.html
  parse: html
  records: tr.person
fields:
  id: td a@href
  name: td a
`;

test('preview reads a saved response without sending requests', async (t) => {
  const more = PEOPLE.replace(
    'tr.person\n',
    'tr.person\n  paginate: { type: next_link, from: a.next@href }\n',
  );
  const place = await makePlace(
    t,
    {
      'default/people.yaml': PEOPLE,
      'default/more.yaml': `${more}  email: "a[href^='mailto:']@href"\n`,
      'default/none.yaml': PEOPLE.replace('tr.person', 'tr.x'),
    },
    false,
  );
  await writeFile(join(place.directory, 'workflows/default/wrong.yaml'), PEOPLE.replace('tr.person', 'tr['));
  await writeFile(join(place.directory, 'saved.html'), PAGE);
  const look = (name: string, ...flags: string[]) =>
    place.run('workflows', 'preview', `workflows/default/${name}.yaml`, '--from', 'saved.html', ...flags);
  const looked = await look('more');
  assert.equal(looked.code, 0, looked.stderr);
  assert.match(
    looked.stdout,
    /^id +name +email\nhttp:\/\/saved\.invalid\/p\/1 +Ada Lovelace +mailto:ada@x\.org\n/,
  );
  assert.match(looked.stdout, /^email +50% +1 of 2$/m);
  assert.match(
    looked.stdout,
    /^GET http:\/\/saved\.invalid\/saved\.html\?page=2 {2}\(next page, not read\)$/m,
  );

  const found = JSON.parse((await look('people', '--json')).stdout) as {
    read: number;
    filled: object;
    records: { name: string }[];
  };
  assert.deepEqual(
    [found.read, found.filled, found.records[1]?.name],
    [2, { id: 2, name: 2 }, 'Grace Hopper'],
  );

  const none = await look('none');
  assert.deepEqual([none.code, /No records\. Check the path in `records`/.test(none.stdout)], [1, true]);
  const wrong = await look('wrong');
  assert.deepEqual([wrong.code, /`source\.records` is not a valid path/.test(wrong.stderr)], [2, true]);
});

test('a file is previewed, tested and run; the second run changes nothing', async (t) => {
  let etag = '"1"';
  const asked: string[] = [];
  const { url } = await site(t, (request, response) => {
    asked.push(request.url ?? '');
    if (request.url === '/robots.txt') return response.writeHead(404).end();
    response.setHeader('etag', etag).setHeader('content-type', 'text/html');
    if (request.headers['if-none-match'] === etag) return response.writeHead(304).end();
    response.end(etag === '"1"' ? PAGE : '<table></table>');
  });
  const place = await makePlace(t, {
    'default/people.yaml': `${PEOPLE.replace('http://saved.invalid/saved.html', url)}schedule: { every: 1h }\n`,
  });
  const file = 'workflows/default/people.yaml';
  const looked = await place.run('workflows', 'preview', file);
  assert.match(looked.stdout, /2 records\n$/);
  const tried = await place.run('workflows', 'test', file);
  assert.match(tried.stdout, /A job would succeed\n$/, tried.stderr);

  await place.run('apply');
  const first = await place.run('run', 'people');
  assert.match(first.stdout, /^people version 1: 2 records, 2 added/, first.stderr);
  asked.length = 0;
  const second = await place.run('run', 'people');
  assert.match(second.stdout, /^people .*version 1/, second.stderr);
  assert.deepEqual(asked, ['/robots.txt', '/'], 'the response is 304');
  const data = await place.run('data', 'get', 'people');
  assert.match(data.stdout, /Ada Lovelace/);

  etag = '"2"';
  const emptied = await place.run('run', 'people');
  assert.match(emptied.stderr, /expect\.records\.min/);
});

test('a changed page fails the job through an expectation, and an error of the host is retried', async (t) => {
  const { url } = await site(t, { '/people': [{ id: 1, mail: 'a@x' }, { id: 2 }] });
  const place = await makePlace(t, {
    'default/guarded.yaml': `source: { type: http, url: "${url}/people" }\nfields: { id: id, email: mail }\nexpect: { fields: { email: { filled: 100% } } }\n`,
    'default/gone.yaml': `source: { type: http, url: "${url}/gone" }\nretries: { max: 0 }\n`,
  });
  const reasonOf = async (id: string) => {
    const { stdout, code } = await place.run('run', id, '--json');
    const { reason, error, attempt } = JSON.parse(stdout) as {
      reason: string;
      error: string;
      attempt: number;
    };
    return { code, reason, error, attempt };
  };
  const guarded = await reasonOf('guarded');
  assert.deepEqual([guarded.code, guarded.reason, guarded.attempt], [1, 'guard', 1]);
  assert.match(
    guarded.error,
    /`email` is filled in 50 % of the records, less than `expect\.fields\.email\.filled` \(100%\)/,
  );
  const gone = await reasonOf('gone');
  assert.deepEqual([gone.code, gone.reason], [1, 'source']);
  assert.match(gone.error, /^GET .*\/gone returned 404 Not Found: Nothing here$/);
});

test('preview masks secrets', async (t) => {
  const { url } = await site(t, (request, response) => {
    if (request.url?.includes('page=1'))
      return response.writeHead(200, { 'content-type': 'application/json' }).end('[{"id":1}]');
    response.writeHead(400).end(`no: ${request.headers.authorization}`);
  });
  const place = await makePlace(t, {
    'default/one.yaml': `source: { type: http, url: "${url}/", query: { key: "$\{secret.KEY}" }, paginate: { type: page }, auth: { type: basic, username: ada, password: "$\{secret.KEY}" } }\n`,
  });
  Object.assign(place.environment, { FLOWHOOK_SECRET__DEFAULT__KEY: 'open-sesame' });
  for (const pages of ['1', '2']) {
    const looked = await place.run(
      'workflows',
      'preview',
      'workflows/default/one.yaml',
      '--pages',
      pages,
      '--json',
    );
    assert.match(looked.stdout, /key=\*\*\*/);
    assert.doesNotMatch(looked.stdout + looked.stderr, /open-sesame|YWRhOm9wZW4tc2VzYW1l/);
  }
});
