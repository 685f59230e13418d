/** Feeds: what their addresses return to readers, and how they are managed. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { parseAtomFeed, parseJsonFeed } from 'feedsmith';
import { startService, type TestService } from '../support/service.ts';

interface Feed {
  id: string;
  urls: { atom: string; json: string; html: string };
}

let service: TestService;

before(async () => {
  service = await startService({
    workflows: { 'default/people.yaml': 'name: People\nsource: { type: push }\n' },
  });
});
after(() => service.stop());

async function push(...records: object[]): Promise<void> {
  const { status, body } = await service.call('POST', '/v1/workflows/people/push', records);
  assert.equal(status, 200, JSON.stringify(body));
}

async function create(fields: object = {}): Promise<Feed> {
  const { status, body } = await service.call('POST', '/v1/workflows/people/feeds', fields);
  assert.equal(status, 200, JSON.stringify(body));
  return body as Feed;
}

test('a new feed shows the changes of the workflow, as Atom, as JSON Feed and as a page', async () => {
  await push({ id: '1', name: 'Ada' }, { id: '2', name: 'Grace', url: 'https://people.test/grace' });
  const { urls } = await create();
  const atom = parseAtomFeed(await (await fetch(urls.atom)).text());
  const json = parseJsonFeed(await (await fetch(urls.json)).json());
  assert.deepEqual([atom.title?.value, json.title], ['People', 'People']);
  const titles = ['Added: Ada', 'Added: Grace'];
  assert.deepEqual(
    atom.entries?.map(({ title }) => title?.value),
    titles,
  );
  assert.deepEqual(
    json.items?.map(({ title }) => title),
    titles,
  );
  assert.equal(atom.entries?.[1]?.links?.[0]?.href, 'https://people.test/grace');
  const page = await fetch(urls.html);
  assert.equal(page.headers.get('content-type'), 'text/html; charset=utf-8');
  assert.match(await page.text(), /<h2>Added: Ada<\/h2>/);
});
