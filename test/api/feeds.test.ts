/** What the addresses of feeds return to readers, as two independent parsers read it. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { parseAtomFeed, parseJsonFeed } from 'feedsmith';
import { request } from 'undici';
import { Flowhook, type NewFeed } from '../../client/src/flowhook-client.ts';
import { startService, type TestService } from '../support/service.ts';

const DAY_MS = 86_400_000;
const RFC_3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;
const URN = /^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

let aheadMs = 0;
let service: TestService;
let flowhook: Flowhook;
let made = 0;

before(async () => {
  service = await startService({ clock: () => Date.now() + aheadMs });
  flowhook = new Flowhook({ url: service.url, key: service.key, retries: 0 });
});
after(() => service.stop());

/** A new workflow with these versions. */
async function workflowWith(...versions: object[][]) {
  const id = `w${++made}`;
  await flowhook.workflows.put(id, { name: `Workflow ${id}`, source: { type: 'push' } });
  const push = async (...records: object[]) =>
    void (await flowhook.workflows.push(id, records, { allowDrop: true }));
  for (const records of versions) await push(...records);
  const feed = async (settings: NewFeed = {}) => {
    const { id: feedId, urls } = await flowhook.feeds.create(id, settings);
    assert.ok(urls !== null);
    return { feedId, ...urls };
  };
  return { id, push, feed };
}

async function atomAt(url: string) {
  const response = await fetch(url);
  const text = await response.text();
  assert.equal(response.status, 200, text);
  assert.equal(response.headers.get('content-type'), 'application/atom+xml; charset=utf-8');
  const { entries = [], ...feed } = parseAtomFeed(text);
  return { text, feed, entries, titles: entries.map(({ title }) => title?.value) };
}

async function jsonAt(url: string) {
  const response = await fetch(url);
  assert.equal(response.headers.get('content-type'), 'application/feed+json; charset=utf-8');
  const text = await response.text();
  const { items = [], ...feed } = parseJsonFeed(JSON.parse(text));
  return { raw: JSON.parse(text), feed, items };
}

test('an Atom feed and a JSON feed have all that their standards require', async () => {
  const { id, feed } = await workflowWith(
    [
      { id: '1', name: 'Ada', age: 36 },
      { id: '2', name: 'Grace', url: 'https://people.test/grace' },
    ],
    [{ id: '1', name: 'Ada', age: 37 }],
  );
  const { atom, json, html } = await feed({ title: 'People & <others>' });
  const read = await atomAt(atom);
  assert.equal(read.text.split('\n', 1)[0], '<?xml version="1.0" encoding="utf-8"?>');
  assert.match(read.feed.id ?? '', URN);
  assert.equal(read.feed.title?.value, 'People &amp; &lt;others&gt;');
  assert.match(read.feed.updated ?? '', RFC_3339);
  assert.deepEqual(read.feed.authors, [{ name: 'Flowhook' }]);
  assert.deepEqual(
    read.feed.links?.map(({ rel, href }) => [rel, href]),
    [
      ['self', atom],
      ['alternate', html],
    ],
  );
  assert.deepEqual(read.titles, ['Changed: Ada', 'Removed: Grace', 'Added: Ada', 'Added: Grace']);
  const ids = read.entries.map((entry) => entry.id ?? '');
  assert.equal(new Set(ids).size, 4);
  for (const [at, entry] of read.entries.entries()) {
    assert.match(ids[at] ?? '', URN);
    assert.match(entry.updated ?? '', RFC_3339);
    assert.match(new URL(entry.links?.[0]?.href ?? '').protocol, /^https?:$/);
    assert.equal(entry.content?.type, 'html');
  }
  assert.equal(read.entries[0]?.links?.[0]?.href, `${html}#${ids[0]?.slice('urn:uuid:'.length)}`);
  assert.equal(read.entries[1]?.links?.[0]?.href, 'https://people.test/grace');
  assert.equal(read.entries[0]?.summary?.value, 'age: 36 → 37');
  assert.equal(
    read.entries[0]?.content?.value,
    '<table><tr><th>Field</th><th>Before</th><th>After</th></tr><tr><td>age</td><td>36</td><td>37</td></tr></table>',
  );

  const also = await jsonAt(json);
  assert.equal(also.raw.version, 'https://jsonfeed.org/version/1.1');
  assert.equal(also.feed.title, 'People & <others>');
  assert.deepEqual([also.feed.feed_url, also.feed.home_page_url], [json, html]);
  assert.deepEqual(
    also.items.map((item) => [item.id, item.title, item.url, item.date_published, item.content_html]),
    read.entries.map((entry) => [
      entry.id,
      entry.title?.value,
      entry.links?.[0]?.href,
      entry.published,
      entry.content?.value,
    ]),
  );
  assert.equal((await jsonAt((await feed()).json)).feed.title, `Workflow ${id}`);
});

test('an entry keeps its id when later versions follow, and when the address changes', async () => {
  const { id, push, feed } = await workflowWith([{ id: '1', name: 'Ada' }]);
  const { feedId, atom } = await feed();
  const [before] = (await atomAt(atom)).entries;
  await push({ id: '1', name: 'Ada L.' });
  const rotated = await flowhook.feeds.rotate(id, feedId);
  const { entries, feed: after } = await atomAt(rotated.urls?.atom ?? '');
  assert.deepEqual([entries[1]?.id, entries[1]?.updated], [before?.id, before?.updated]);
  assert.notEqual(entries[0]?.id, before?.id);
  assert.equal(after.updated, entries[0]?.updated);
});

test('a feed of versions has an entry for each version, with at most 20 of its records', async () => {
  const { push, feed } = await workflowWith([{ id: '1', name: 'Ada' }]);
  await push(...Array.from({ length: 30 }, (_, n) => ({ id: `${n + 1}`, name: `Person ${n + 1}` })));
  const { atom } = await feed({ entries: 'version' });
  const { entries, titles } = await atomAt(atom);
  assert.deepEqual(titles, ['Version 2: 30 records changed', 'Version 1: 1 record changed']);
  const html = entries[0]?.content?.value ?? '';
  assert.equal(html.match(/<h3>/g)?.length, 20);
  assert.match(html, /<h3>Changed: Person 1<\/h3>.*<p>and 10 more<\/p>$/);
  assert.match(entries[0]?.summary?.value ?? '', /^Changed: Person 1; .*; and 10 more$/);
});

test('a filter selects records, versions without any have no entry, and a limit counts entries', async () => {
  const price = (id: string, value: number) => ({ id, name: `Item ${id}`, price: value });
  const { push, feed } = await workflowWith(
    [price('a', 100), price('b', 100), price('c', 100)],
    [price('a', 90), price('b', 99), price('c', 80)],
    [price('a', 89), price('b', 98), price('c', 79)],
  );
  const filter = 'fallsBy(previous.price, record.price, "5%")';
  const { atom } = await feed({ filter });
  assert.deepEqual((await atomAt(atom)).titles, ['Changed: Item a', 'Changed: Item c']);
  const { atom: versions } = await feed({ filter, entries: 'version' });
  assert.deepEqual((await atomAt(versions)).titles, ['Version 2: 2 records changed']);
  const { atom: few } = await feed({ limit: 4 });
  assert.deepEqual((await atomAt(few)).titles, [
    'Changed: Item a',
    'Changed: Item b',
    'Changed: Item c',
    'Changed: Item a',
  ]);
  await push(price('a', 50), price('b', 98), price('c', 79));
  assert.equal((await atomAt(atom)).titles.length, 3);
  const { atom: ofEvent } = await feed({ filter: 'data.records.changed == 1' });
  assert.deepEqual((await atomAt(ofEvent)).titles, ['Changed: Item a']);
});

test('a feed reaches back for its window in whole days, and its tag changes when entries leave', async () => {
  const { push, feed } = await workflowWith([{ id: '1', name: 'Ada' }]);
  const { atom } = await feed({ window: '2d' });
  aheadMs += 1.5 * DAY_MS;
  await push({ id: '1', name: 'Ada L.' });
  const before = await fetch(atom);
  assert.equal(parseAtomFeed(await before.text()).entries?.length, 2);
  aheadMs += 1.6 * DAY_MS;
  const after = await fetch(atom, { headers: { 'if-none-match': before.headers.get('etag') ?? '' } });
  assert.equal(after.status, 200);
  assert.equal(parseAtomFeed(await after.text()).entries?.length, 1);
  aheadMs += 2 * DAY_MS;
  assert.deepEqual((await atomAt(atom)).titles, []);
});

test('versions that are no longer stored keep their entries, from their events', async () => {
  const { id, push, feed } = await workflowWith([{ id: '1', name: 'Ada', age: 0 }]);
  for (let age = 1; age <= 12; age++) await push({ id: '1', name: 'Ada', age });
  aheadMs += 2 * 3_600_000;
  const { keepVersions, keepMs, graceMs } = { keepVersions: 1, keepMs: DAY_MS, graceMs: 0 };
  const place = { teamId: service.team.id, workflowId: id };
  await service.store.records.prune({ ...place, keepVersions, keepMs, graceMs, limit: 1_000 });
  assert.equal((await flowhook.workflows.versions(id).take(9)).length, 1);
  const { entries } = await atomAt((await feed()).atom);
  assert.equal(entries.length, 13);
  assert.equal(entries[1]?.summary?.value, 'age: 10 → 11');
  assert.equal(entries[12]?.title?.value, 'Added: Ada');
});

/** Texts that break feeds which are not careful. */
const HOSTILE = [
  '<script>alert(1)</script>',
  ']]>',
  '<![CDATA[x]]>',
  '&amp; &lt; &#0; &nbsp; &bogus;',
  '\u0000\u0001\u0008\u000b\u000c\u001f\u007f\u0080\u009f',
  '\ud800 high',
  '\udfff low',
  '\ufffe\uffff\ufdd0\u{1fffe}\u{10ffff}',
  '\u202e reversed \u2066 isolated',
  '\u2028\u2029\u0085',
  '"onmouseover="alert(1)',
  "'><img src=x onerror=alert(1)>",
  '<?xml version="1.1"?><!DOCTYPE x [<!ENTITY a "b">]>',
  'javascript:alert(1)',
  'x'.repeat(200_000),
  '💥'.repeat(5_000),
  '',
  ' ',
];
/** What XML 1.0 allows, without the characters that it discourages. */
const XML = /^[\t\n\r\u0020-\u007e\u00a0-\ud7ff\ue000-\ufdcf\ufdf0-\ufffd\u{10000}-\u{10ffff}]*$/u;

test('nothing of a hostile record becomes markup, and every document stays well-formed', async () => {
  const records = HOSTILE.map((text, n) => ({
    id: `${n}${text.slice(0, 20).toWellFormed().replaceAll('\0', '')}`,
    name: text,
    url: text,
    nested: { [text.slice(0, 20)]: [text] },
    [`key ${text.slice(0, 100)}`]: text,
  }));
  const changed = records.map((record) => ({ ...record, name: `${record.name}!`, more: record.name }));
  const { feed } = await workflowWith(records, changed, [{ id: 'last' }]);
  for (const entries of ['record', 'version'] as const) {
    const { atom, json, html } = await feed({ entries, limit: 200, title: '<b>&]]> "\u202e' });
    const read = await atomAt(atom);
    assert.equal(read.entries.length, entries === 'record' ? 3 * HOSTILE.length + 1 : 3);
    assert.match(read.text, XML);
    // Markup only of the feed itself.
    const tags = new Set([...read.text.matchAll(/<\/?([^\s>/]+)/g)].map(([, name]) => name));
    const known =
      '?xml feed id title subtitle updated author name generator link entry published summary content';
    assert.deepEqual([...tags].sort(), known.split(' ').sort());
    const contents = read.entries.map(({ content }) => content?.value ?? '');
    const { raw, items } = await jsonAt(json);
    assert.ok(JSON.stringify(raw).isWellFormed());
    const page = await (await fetch(html)).text();
    for (const text of [...contents, ...items.map((item) => item.content_html ?? ''), page]) {
      const names = [...text.matchAll(/<\/?([a-z!?]\w*)([^>]*)>/gi)];
      for (const [tag, , attributes] of names)
        assert.doesNotMatch(attributes ?? '', /\son\w+=|javascript:/i, tag);
      assert.doesNotMatch(text, /<(script|img|!ENTITY|\?xml|!\[CDATA)/i);
      assert.ok(text.length < 400_000, `${text.length}`);
    }
  }
});

test('a feed of large records is small, and shows each record', async () => {
  const large = (id: string, letter: string) => ({ id, name: `Large ${id}`, text: letter.repeat(900_000) });
  const { feed } = await workflowWith([large('1', 'a'), large('2', 'a')], [large('1', 'b'), large('2', 'b')]);
  const { text, titles } = await atomAt((await feed()).atom);
  assert.deepEqual(titles, ['Changed: Large 1', 'Changed: Large 2', 'Added: Large 1', 'Added: Large 2']);
  assert.ok(text.length < 10_000, `${text.length}`);
});

test('the page for people has a strict policy and shows the same entries, also at the other addresses', async () => {
  const { feed } = await workflowWith([{ id: '1', name: 'Ada', site: '<b>' }]);
  const { atom, json, html } = await feed();
  const page = await fetch(html);
  assert.equal(page.headers.get('content-type'), 'text/html; charset=utf-8');
  assert.match(page.headers.get('content-security-policy') ?? '', /^default-src 'none'; style-src 'sha256-/);
  const text = await page.text();
  assert.match(text, /<article id="[0-9a-f-]{36}">\n<h2>Added: Ada<\/h2>/);
  assert.match(text, /<td>site<\/td><td>&lt;b&gt;<\/td>/);
  assert.match(
    text,
    new RegExp(`<link rel="alternate" type="application/atom\\+xml" title="[^"]+" href="${atom}">`),
  );
  for (const url of [atom, json]) {
    const opened = await navigate(url);
    assert.equal(opened.text, text);
    assert.match(String(opened.headers.vary), /\bsec-fetch-mode\b/);
  }
  const { feed: empty } = await workflowWith();
  assert.match(await (await fetch((await empty()).html)).text(), /Nothing has changed yet/);
});

/** Opens an address as a browser does. `fetch` sends another `sec-fetch-mode`. */
async function navigate(url: string) {
  const { headers, body } = await request(url, { headers: { 'sec-fetch-mode': 'navigate' } });
  return { headers, text: await body.text() };
}

test('a reader that sends only a time gets the feed again when entries have left the window', async () => {
  const { feed } = await workflowWith([{ id: '1' }]);
  const { atom } = await feed({ window: '2d' });
  aheadMs += 2_000;
  const before = (await fetch(atom)).headers.get('last-modified') ?? '';
  const ask = (since: string) => fetch(atom, { headers: { 'if-modified-since': since } });
  assert.equal((await ask(before)).status, 304);
  aheadMs += 4 * DAY_MS;
  const moved = await ask(before);
  assert.equal(moved.status, 200);
  assert.deepEqual(parseAtomFeed(await moved.text()).entries ?? [], []);
  assert.equal((await ask(moved.headers.get('last-modified') ?? '')).status, 304);
});
