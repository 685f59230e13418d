/** The guide under /docs/guide/: responses, errors, and the pages in a browser. */
import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, test } from 'node:test';
import type { Page } from 'playwright-core';
import { pageOf } from '../../site/pages.ts';
import { htmlOf, passagesOf } from '../../site/render.ts';
import { AXE, browserTest } from '../support/browser/browser.ts';
import { builtGuide } from '../support/browser/built-pages.ts';
import { startService } from '../support/service.ts';
import { until } from '../support/until.ts';

const ROOT = join(import.meta.dirname, '../..');

await builtGuide();
const service = await startService();
after(() => service.stop());

const HTML = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };
const get = (path: string, headers: Record<string, string> = HTML, method = 'GET') =>
  fetch(service.url + path, { method, headers, redirect: 'manual' });

test('pages and files have an ETag and a strict content security policy', async () => {
  for (const [path, type] of [
    ['', 'text/html; charset=utf-8'],
    ['concepts/job.html', 'text/html; charset=utf-8'],
    ['guide.css', 'text/css; charset=utf-8'],
    ['passages.js', 'text/javascript; charset=utf-8'],
  ] as const) {
    const response = await get(`/docs/guide/${path}`);
    assert.deepEqual([response.status, response.headers.get('content-type')], [200, type], path);
    assert.equal(response.headers.get('cache-control'), 'no-cache');
    const policy = response.headers.get('content-security-policy') ?? '';
    assert.match(policy, /default-src 'none'; script-src 'self';/);
    assert.doesNotMatch(policy, /unsafe/);
    const tag = response.headers.get('etag') ?? '';
    assert.equal((await get(`/docs/guide/${path}`, { ...HTML, 'if-none-match': tag })).status, 304);
  }
  const head = await get('/docs/guide/', HTML, 'HEAD');
  assert.deepEqual([head.status, await head.text()], [200, '']);
});

test('/docs/guide redirects to the guide, and /docs links to it', async () => {
  const moved = await get('/docs/guide');
  assert.deepEqual([moved.status, moved.headers.get('location')], [302, '/docs/guide/']);
  assert.match(await (await get('/docs')).text(), /<a href="\/docs\/guide\/">/);
});

test('messages name pages by their address in the guide, because the package has no other documentation', async () => {
  const files = globSync(['src/**/*.ts', 'templates/*', 'compose.yaml'], { cwd: ROOT });
  const texts = files
    .filter((file) => !file.endsWith('.test.ts'))
    .map((file) => readFileSync(join(ROOT, file), 'utf8'));
  const named = texts.flatMap((text) => text.match(/(?<![\w/.])\/?docs\/[\w/-]+\.(md|html)\b/g) ?? []);
  assert.ok(named.length > 2);
  for (const path of new Set(named)) assert.equal((await get(path)).status, 200, path);
});

test('an unknown path returns a page to browsers and JSON to programs', async () => {
  for (const path of ['nothing.html', 'concepts/', '.sources', 'index.html/x', '%00', '/index.html']) {
    const page = await get(`/docs/guide/${path}`);
    assert.equal(page.status, 404, path);
    assert.match(await page.text(), /<h1>No such page<\/h1>/);
    const response = await get(`/docs/guide/${path}`, { accept: '*/*' });
    assert.equal(response.status, 404);
    assert.equal(response.headers.get('content-type'), 'application/json; charset=utf-8');
    assert.deepEqual(Object.keys((await response.json()) as object), ['error']);
  }
  // Other paths below /docs are not part of the guide.
  assert.equal((await get('/docs/guides')).headers.get('content-type'), 'application/json; charset=utf-8');
  // The HTTP parser refuses `BREW` before routing.
  for (const method of ['POST', 'BREW']) {
    const response = await send(`${method} /docs/guide/ HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`);
    assert.match(response, /^HTTP\/1\.1 405 /, method);
    assert.match(response, /\r\nallow: GET, HEAD, OPTIONS\r\n/i, method);
  }
});

test('a search result links to the heading above it, and HTML is not changed', () => {
  const page = pageOf('guides/a.md', '# A\n\n> ## Quoted\n\n## Last\n\nwords <img src="b.png?c&amp;d">\n');
  assert.deepEqual(
    passagesOf(page).map(({ url, text }) => [url, text]),
    [
      ['guides/a.html', 'Quoted'],
      ['guides/a.html#last', 'words'],
    ],
  );
  assert.match(htmlOf(page, { isPart: () => false }), /<img src="b\.png\?c&amp;d">/);
});

test('origins that may call the API may not read the guide', async (t) => {
  const other = await startService({ settings: { FLOWHOOK_CORS_ORIGINS: 'https://app.example.com' } });
  t.after(() => other.stop());
  for (const path of ['/docs/guide', '/docs/guide/', '/docs/guide/nothing.html']) {
    const { headers } = await fetch(other.url + path, {
      headers: { ...HTML, origin: 'https://app.example.com' },
      redirect: 'manual',
    });
    assert.equal(headers.get('access-control-allow-origin'), null, path);
    assert.equal(headers.get('cross-origin-resource-policy'), 'same-origin', path);
  }
});

async function send(request: string): Promise<string> {
  const { hostname, port } = new URL(service.url);
  const socket = connect(Number(port), hostname);
  socket.end(request);
  return text(socket);
}

test('a service without a dashboard has no guide', async (t) => {
  const other = await startService({ settings: { FLOWHOOK_DASHBOARD: 'off' } });
  t.after(() => other.stop());
  assert.equal((await fetch(`${other.url}/docs/guide/`, { headers: HTML })).status, 404);
  assert.doesNotMatch(await (await fetch(`${other.url}/docs`)).text(), /docs\/guide/);
});

test('in a clone, the first request builds the guide', async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'flowhook-guide-'));
  t.after(() => rm(root, { recursive: true, force: true }));
  await mkdir(join(root, 'site', 'node_modules', 'marked'), { recursive: true });
  await writeFile(join(root, 'site', 'node_modules', 'marked', 'index.js'), '');
  // Replaces the real build, which other tests run.
  const sources = JSON.stringify(join(import.meta.dirname, '../../src/http/ui/background-build.ts'));
  await writeFile(
    join(root, 'site', 'build.ts'),
    `import { mkdirSync, writeFileSync } from 'node:fs';
const { GUIDE, hashOfSources } = await import(${sources});
const [, , , into] = process.argv;
mkdirSync(into, { recursive: true });
writeFileSync(into + '/index.html', 'the guide');
writeFileSync(into + '/.sources', await hashOfSources(${JSON.stringify(root)}, GUIDE.inputs));
`,
  );
  const other = await startService({ dashboard: { root, builds: true } });
  t.after(() => other.stop());
  const page = async () => (await fetch(`${other.url}/docs/guide/`, { headers: HTML })).text();
  assert.equal(existsSync(join(root, 'site', 'dist')), false);
  assert.match(await page(), /<title>The guide is being built<\/title>/);
  await until('the guide is built', async () => (await page()) === 'the guide');
});

browserTest('the search works without a mouse', async ({ page }) => {
  await page.goto(`${service.url}/docs/guide/`);
  await page.keyboard.press('/');
  await page.keyboard.type('workflow_failed');
  const found = page.getByRole('option');
  await found.first().waitFor();
  assert.equal(await found.first().getAttribute('aria-selected'), 'true');
  await page.keyboard.press('ArrowDown');
  assert.equal(await found.nth(1).getAttribute('aria-selected'), 'true');
  await page.keyboard.press('ArrowUp');
  await page.keyboard.press('Enter');
  await page.waitForURL(`${service.url}/docs/guide/reference/events.html#workflow_failed`);
  await page.getByRole('searchbox').or(page.getByRole('combobox')).fill('xyzzy plugh');
  await page.getByText('No results for').waitFor({ state: 'attached' });
  assert.equal(await page.getByRole('listbox').count(), 0);
});

browserTest('pages are accessible, and no page is wider than its window', async ({ page }) => {
  const axe = await readFile(AXE, 'utf8');
  for (const [path, colorScheme, width] of [
    ['', 'light', 1280],
    ['', 'dark', 360],
    // The widest tables.
    ['reference/settings.html', 'dark', 360],
    ['concepts/job.html', 'light', 1280],
  ] as const) {
    await page.setViewportSize({ width, height: 800 });
    await page.emulateMedia({ colorScheme });
    await page.goto(`${service.url}/docs/guide/${path}`);
    assert.deepEqual(await problemsOf(page, axe), [], `${path} ${colorScheme} ${width}`);
    assert.equal(await page.evaluate('document.documentElement.scrollWidth'), width, path);
  }
});

async function problemsOf(page: Page, axe: string): Promise<string[]> {
  await page.evaluate(axe);
  const { violations } = (await page.evaluate(`axe.run({ resultTypes: ['violations'] })`)) as {
    violations: { id: string; nodes: { html: string }[] }[];
  };
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 120)).join(' ')}`);
}
