/** Background builds: when they run, the files that they leave, and their log lines. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { startService } from '../../../test/support/service.ts';
import type { Logger } from '../../observe/log.ts';
import { BackgroundBuild } from './background-build.ts';

/** A replacement for Vite: it requests the page from the gate, and writes the page and the hash of the sources. */
const VITE = `
import { mkdirSync, writeFileSync } from 'node:fs';
import { getPriority } from 'node:os';
import { join } from 'node:path';
import { DASHBOARD, hashOfSources } from ${JSON.stringify(join(import.meta.dirname, 'background-build.ts'))};
const into = process.argv[process.argv.indexOf('--outDir') + 1];
const response = await fetch(GATE + '?priority=' + getPriority());
if (!response.ok) { console.error('broken: ' + (await response.text())); process.exit(1); }
mkdirSync(into, { recursive: true });
writeFileSync(join(into, 'index.html'), await response.text());
writeFileSync(join(into, '.sources'), await hashOfSources(join(process.cwd(), '..'), DASHBOARD.inputs));
`;

/** A clone with a dashboard to build, and a gate at which every build waits until the test calls `answer`. */
async function clone(t: TestContext) {
  const root = await mkdtemp(join(tmpdir(), 'flowhook-build-'));
  const waiting: ((answer: { status: number; text: string }) => void)[] = [];
  const gate = createServer((request, response) => {
    priorities.push(Number(new URL(request.url ?? '', 'http://gate').searchParams.get('priority')));
    waiting.push(({ status, text }) => response.writeHead(status).end(text));
    gate.emit('came');
  });
  const priorities: number[] = [];
  gate.listen(0, '127.0.0.1');
  await once(gate, 'listening');
  const dashboard = join(root, 'dashboard');
  const vite = join(dashboard, 'node_modules', 'vite');
  await mkdir(join(vite, 'bin'), { recursive: true });
  await mkdir(join(dashboard, 'src'));
  await writeFile(join(dashboard, 'package.json'), '{}');
  await writeFile(join(dashboard, 'src', 'main.tsx'), 'first');
  await writeFile(join(vite, 'package.json'), '{ "type": "module" }');
  const url = `http://127.0.0.1:${(gate.address() as AddressInfo).port}/`;
  await writeFile(join(vite, 'bin', 'vite.js'), VITE.replace('GATE', JSON.stringify(url)));
  t.after(async () => {
    gate.closeAllConnections();
    gate.close();
    await rm(root, { recursive: true, force: true });
  });
  return {
    root,
    dashboard,
    priorities,
    page: () => readFile(join(dashboard, 'dist', 'index.html'), 'utf8'),
    change: (text: string) => writeFile(join(dashboard, 'src', 'main.tsx'), text),
    /** Resolves when a build has arrived at the gate. */
    async arrived() {
      if (waiting.length === 0) await once(gate, 'came');
    },
    answer: (status: number, text: string) => waiting.shift()?.({ status, text }),
  };
}

function builderOf(root: string) {
  const lines: string[] = [];
  const write = (fields: object, message: string) => {
    const { err } = fields as { err?: Error };
    lines.push(err === undefined ? message : `${message} ${err.message}`);
  };
  const log: Logger = { debug: write, info: write, warn: write, error: write, child: () => log };
  const environment = new Map([['PATH', process.env.PATH ?? '']]);
  return { lines, build: new BackgroundBuild({ root, log, environment }) };
}

test('builds a missing dashboard with low priority, and keeps a build of the same sources', async (t) => {
  const { root, dashboard, priorities, page, arrived, answer } = await clone(t);
  const { build, lines } = builderOf(root);
  const over = build.start();
  await arrived();
  assert.equal(build.state, 'building');
  answer(200, 'the first page');
  await over;
  assert.deepEqual([await page(), build.state], ['the first page', 'none']);
  assert.deepEqual(lines, ['dashboard.build_started', 'dashboard.built']);
  assert.ok((priorities[0] ?? 0) > 0, `${priorities}`);
  assert.deepEqual(await readdir(join(dashboard, '.build')), []);
  const next = builderOf(root);
  await next.build.start();
  assert.deepEqual(next.lines, []);
});

test('serves the previous build until the new build is complete', async (t) => {
  const { root, page, change, arrived, answer } = await clone(t);
  const first = builderOf(root).build.start();
  await arrived();
  answer(200, 'the first page');
  await first;
  await change('second');
  const { build } = builderOf(root);
  const over = build.start();
  await arrived();
  assert.equal(await page(), 'the first page');
  answer(200, 'the second page');
  await over;
  assert.equal(await page(), 'the second page');
});

test('logs in one line why a build failed, and keeps the previous build', async (t) => {
  const { root, dashboard, page, change, arrived, answer } = await clone(t);
  const first = builderOf(root).build.start();
  await arrived();
  answer(200, 'the first page');
  await first;
  await change('second');
  const { build, lines } = builderOf(root);
  const over = build.start();
  await arrived();
  answer(500, 'a bracket is missing');
  await over;
  assert.deepEqual([await page(), build.state], ['the first page', 'failed']);
  assert.deepEqual(lines.length, 2);
  assert.match(lines[1] ?? '', /^dashboard\.not_built The build ended with 1: broken: a bracket is missing$/);
  assert.deepEqual(await readdir(join(dashboard, '.build')).catch(() => []), []);
});

test('several services can build at the same time', async (t) => {
  const { root, dashboard, page, arrived, answer } = await clone(t);
  const builders = [builderOf(root), builderOf(root), builderOf(root)];
  const over = builders.map(({ build }) => build.start());
  for (const _ of builders) {
    await arrived();
    answer(200, 'the page');
  }
  await Promise.all(over);
  for (const { lines } of builders) {
    assert.deepEqual(lines, ['dashboard.build_started', 'dashboard.built']);
  }
  assert.equal(await page(), 'the page');
  assert.deepEqual(await readdir(join(dashboard, '.build')), []);
});

test('kills a running build when the service stops, without logging a failure', async (t) => {
  const { root, dashboard, arrived } = await clone(t);
  const { build, lines } = builderOf(root);
  const over = build.start();
  await arrived();
  await build.stop();
  await over;
  assert.deepEqual(lines, ['dashboard.build_started']);
  assert.ok(!existsSync(join(dashboard, 'dist')));
  await builderOf(root).build.stop();
});

test('builds nothing without sources', async (t) => {
  const { root, dashboard } = await clone(t);
  await rm(join(dashboard, 'node_modules'), { recursive: true });
  const { build, lines } = builderOf(root);
  await build.start();
  assert.deepEqual([build.state, lines], ['none', []]);
  await rm(dashboard, { recursive: true });
  const other = builderOf(root);
  await other.build.start();
  assert.deepEqual([other.build.state, other.lines], ['none', []]);
});

test('the service serves requests during a build, and the placeholder page reloads until the build is done', async (t) => {
  const { root, arrived, answer } = await clone(t);
  const service = await startService({ dashboard: { root, builds: true } });
  t.after(() => service.stop());
  const page = async () => {
    const response = await fetch(`${service.url}/ui/`);
    return { headers: response.headers, text: await response.text() };
  };
  await arrived();
  const waiting = await page();
  assert.match(waiting.text, /<title>The dashboard is being built<\/title>/);
  assert.match(waiting.text, /<meta http-equiv="refresh" content="2">/);
  assert.doesNotMatch(waiting.text, /<script|<style>/);
  assert.equal(waiting.headers.get('cache-control'), 'no-store');
  const [, nonce] = /<style nonce="([^"]+)">/.exec(waiting.text) ?? [];
  assert.ok(waiting.headers.get('content-security-policy')?.includes(`'nonce-${nonce}'`));
  assert.equal((await service.call('GET', '/v1/me')).status, 200);
  answer(200, 'the page');
  // Nothing reports when the child has ended and its files are in place.
  for (let text = ''; text !== 'the page'; ) ({ text } = await page());
});

test('without a build, a page says what to do', async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'flowhook-build-'));
  const service = await startService({ dashboard: { root, builds: true } });
  t.after(async () => {
    await service.stop();
    await rm(root, { recursive: true, force: true });
  });
  const response = await fetch(`${service.url}/ui/workflows`, { headers: { accept: 'text/html' } });
  const text = await response.text();
  assert.match(text, /not part of this installation.*npm ci &amp;&amp; npm run build/s);
  assert.doesNotMatch(text, /refresh/);
});
