/** The HTTP side of the dashboard: sessions and their permissions, and how files are sent. */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { brotliCompressSync, brotliDecompressSync, gunzipSync } from 'node:zlib';
import type { Scope } from '../../src/model/team.ts';
import { mintKey } from '../../src/teams/keys.ts';
import { makeLink } from '../../src/teams/sessions.ts';
import { startService, type TestService } from '../support/service.ts';

type Json = Record<string, unknown>;

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const SCRIPT = 'document.title = "Flowhook";'.repeat(20);

let service: TestService;
let root: string;
let ahead = 0;

before(async () => {
  root = await mkdtemp(join(tmpdir(), 'flowhook-ui-'));
  const dist = join(root, 'dashboard', 'dist');
  await mkdir(join(dist, 'assets'), { recursive: true });
  await writeFile(join(dist, 'index.html'), '<meta name="csp-nonce" content="__CSP_NONCE__"><p>the page</p>');
  await writeFile(join(dist, 'theme.js'), 'theme');
  await writeFile(join(dist, 'icon.png'), 'icon');
  await writeFile(join(dist, 'assets', 'main-1a2b.js.br'), brotliCompressSync(SCRIPT));
  await writeFile(join(root, 'dashboard', 'secret.js'), 'not for you');
  await symlink(join(root, 'dashboard', 'secret.js'), join(dist, 'linked.js'));
  service = await startService({
    clock: () => Date.now() + ahead,
    dashboard: { root },
    workflows: {
      'default/endless.yaml': 'source: { type: command, command: [sh, -c, "echo here >&2; sleep 600"] }\n',
    },
  });
});
after(async () => {
  await service.stop();
  await rm(root, { recursive: true, force: true });
});

async function keyOf(scopes: Scope[], slug = 'default') {
  const { id: teamId } = await service.store.teams.ensure({ slug });
  const made = await mintKey(service.store, { teamId, name: 'laptop', scopes, expiresAt: null });
  return { key: made.key, id: made.record.id, teamId };
}

interface Reply {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  text: string;
  body: Json;
}

const DECODERS: Record<string, (bytes: Buffer) => Buffer> = { br: brotliDecompressSync, gzip: gunzipSync };

/** Sends a request as a page of the dashboard does by default. `fetch` does not allow setting `sec-fetch-site`. */
function ask(
  method: string,
  path: string,
  options: { headers?: Record<string, string>; body?: unknown; cookie?: string; site?: string | null } = {},
): Promise<Reply> {
  const { headers = {}, body, cookie, site = 'same-origin' } = options;
  const { hostname, port } = new URL(service.url);
  return new Promise((resolve, reject) => {
    const sent = httpRequest(
      {
        hostname,
        port,
        method,
        path,
        headers: {
          ...(site === null ? {} : { 'sec-fetch-site': site }),
          ...(cookie === undefined ? {} : { cookie }),
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
      },
      async (response) => {
        const chunks: Buffer[] = [];
        for await (const chunk of response) chunks.push(chunk as Buffer);
        const bytes = Buffer.concat(chunks);
        const decode = DECODERS[response.headers['content-encoding'] ?? ''];
        const text = (decode?.(bytes) ?? bytes).toString();
        const isJson = response.headers['content-type']?.startsWith('application/json') === true;
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          text,
          body: isJson ? JSON.parse(text) : {},
        });
      },
    );
    sent.on('error', reject);
    sent.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

const signIn = (body: unknown, options: Parameters<typeof ask>[2] = {}) =>
  ask('POST', '/ui/api/session', { ...options, body });
const cookieOf = ({ headers }: Reply) => headers['set-cookie']?.[0]?.split(';')[0] ?? '';

async function session(scopes: Scope[] = ['admin']) {
  const made = await keyOf(scopes);
  const answer = await signIn({ key: made.key });
  assert.equal(answer.status, 200, answer.text);
  return { ...made, cookie: cookieOf(answer), answer };
}

test('exchanges a key for a session cookie that scripts and other paths cannot read', async () => {
  const { answer, cookie, id, teamId, key } = await session(['read', 'queue']);
  assert.equal(answer.headers['cache-control'], 'no-store');
  assert.deepEqual(answer.body, {
    team: { id: teamId, name: 'default', slug: 'default' },
    key: { id, name: 'laptop', scopes: ['read', 'queue'] },
    expiresAt: answer.body.expiresAt,
  });
  const left = Date.parse(String(answer.body.expiresAt)) - Date.now() - ahead;
  assert.ok(left > 11 * HOUR_MS && left <= 12 * HOUR_MS, `${left}`);
  const [set = ''] = answer.headers['set-cookie'] ?? [];
  assert.match(set, /^flowhook_session=[\w-]{43}; Max-Age=43200; Path=\/ui; HttpOnly; SameSite=Strict$/);
  assert.ok(!set.includes(key));
  const read = await ask('GET', '/ui/api/session', { cookie });
  assert.deepEqual([read.status, read.body.key], [200, answer.body.key]);
  assert.equal((await ask('GET', '/ui/api/session')).status, 401);
});

test('sets a Secure cookie if the browser uses TLS', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-ui-'));
  const behind = await startService({
    directory,
    settings: { FLOWHOOK_TRUST_PROXY: 'true', FLOWHOOK_PUBLIC_URL: 'https://flowhook.example.com' },
    dashboard: { root },
  });
  t.after(async () => {
    await behind.stop();
    await rm(directory, { recursive: true, force: true });
  });
  const from = (headers: Record<string, string>) =>
    fetch(`${behind.url}/ui/api/session`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'sec-fetch-site': 'same-origin', ...headers },
      body: JSON.stringify({ key: behind.key }),
    }).then(({ headers }) => headers.get('set-cookie'));
  assert.match((await from({ 'x-forwarded-proto': 'https' })) ?? '', /; SameSite=Strict; Secure$/);
  assert.doesNotMatch((await from({})) ?? '', /Secure/);
  // Without `sec-fetch-site`, the header `origin` decides.
  const origin = (origin: string) =>
    fetch(`${behind.url}/ui/api/session`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', origin },
      body: JSON.stringify({ key: behind.key }),
    }).then(({ status }) => status);
  assert.equal(await origin('https://flowhook.example.com'), 200);
  assert.equal(await origin('https://flowhook.example.com.evil.example'), 403);
});

test('a session can call the API below /ui/api/v1 with the scopes of its key', async () => {
  const { cookie, id } = await session(['read']);
  const me = await ask('GET', '/ui/api/v1/me', { cookie });
  assert.deepEqual([me.status, (me.body.key as Json).id], [200, id]);
  assert.equal((await ask('GET', '/ui/api/v1/workflows', { cookie })).status, 200);
  const refused = await ask('GET', '/ui/api/v1/keys', { cookie });
  assert.deepEqual([refused.status, refused.headers['x-error-code']], [403, 'scope_missing']);
  for (const [method, path] of [
    ['GET', '/ui/api/v1/nothing'],
    ['GET', '/ui/api/livez'],
    ['GET', '/ui/api/openapi.json'],
    ['POST', '/ui/api'],
  ] as const) {
    const missing = await ask(method, path, { cookie, headers: { accept: 'text/html' } });
    assert.equal(missing.headers['x-error-code'], 'route_not_found', path);
  }
  assert.equal(
    (await ask('PUT', '/ui/api/session', { cookie })).headers.allow,
    'GET, HEAD, POST, DELETE, OPTIONS',
  );
});

test('/v1 ignores the cookie, and /ui/api ignores keys', async () => {
  const { cookie, key } = await session(['admin']);
  assert.equal((await ask('GET', '/v1/me', { cookie })).status, 401);
  const byKey = await ask('GET', '/ui/api/v1/me', { headers: { 'x-api-key': key } });
  assert.deepEqual([byKey.status, byKey.headers['x-error-code']], [401, 'session_missing']);
  assert.equal((await ask('GET', '/v1/me', { headers: { 'x-api-key': key } })).status, 200);
});

test('a write must come from the dashboard, with a content type that no form can send', async () => {
  const { cookie } = await session(['admin']);
  const write = (options: Parameters<typeof ask>[2]) =>
    ask('POST', '/ui/api/v1/keys', { cookie, body: { name: 'x' }, ...options });
  const code = async (options: Parameters<typeof ask>[2]) => {
    const { status, headers } = await write(options);
    return [status, headers['x-error-code']];
  };
  assert.equal((await write({})).status, 200);
  for (const site of ['cross-site', 'same-site', 'none', null]) {
    assert.deepEqual(await code({ site }), [403, 'origin_refused'], `${site}`);
  }
  const origin = new URL(service.url).origin;
  assert.equal((await write({ site: null, headers: { origin } })).status, 200);
  assert.deepEqual(await code({ site: null, headers: { origin: 'http://127.0.0.1:1' } }), [
    403,
    'origin_refused',
  ]);
  assert.deepEqual(await code({ site: 'same-site', headers: { origin } }), [403, 'origin_refused']);
  for (const type of [
    'text/plain',
    'application/x-www-form-urlencoded; charset=utf-8',
    'multipart/form-data',
  ]) {
    assert.deepEqual(await code({ headers: { 'content-type': type } }), [415, 'content_unsupported'], type);
  }
  assert.deepEqual((await ask('DELETE', '/ui/api/session', { cookie, site: 'cross-site' })).status, 403);
  assert.equal((await signIn({ key: service.key }, { site: 'cross-site' })).status, 403);
  // A user may open the URL of a read directly, but another page may not fetch it.
  assert.equal((await ask('GET', '/ui/api/v1/me', { cookie, site: 'none' })).status, 200);
  assert.equal((await ask('GET', '/ui/api/v1/me', { cookie, site: 'same-site' })).status, 403);
});

test('a session ends immediately with its key', async () => {
  const status = async (cookie: string) => (await ask('GET', '/ui/api/v1/me', { cookie })).status;
  const [one, other] = [await session(), await session()];
  assert.deepEqual([await status(one.cookie), await status(other.cookie)], [200, 200]);
  await service.store.keys.revoke({ id: one.id });
  assert.deepEqual([await status(one.cookie), await status(other.cookie)], [401, 200]);

  const { id: teamId } = await service.store.teams.ensure({ slug: 'default' });
  const expiresAt = service.store.now() + MINUTE_MS;
  const brief = await mintKey(service.store, { teamId, name: '', scopes: ['read'], expiresAt });
  const cookie = cookieOf(await signIn({ key: brief.key }));
  assert.equal(await status(cookie), 200);
  ahead += MINUTE_MS;
  assert.equal(await status(cookie), 401);

  const theirs = await keyOf(['read'], 'doomed');
  const doomed = cookieOf(await signIn({ key: theirs.key }));
  assert.equal(await status(doomed), 200);
  await service.store.teams.retire({ teamId: theirs.teamId, force: false });
  assert.equal(await status(doomed), 401);
});

test('a session ends on signing out, and when another one replaces it', async () => {
  const { cookie, key } = await session();
  const out = await ask('DELETE', '/ui/api/session', { cookie });
  assert.equal(out.status, 204);
  assert.match(out.headers['set-cookie']?.[0] ?? '', /^flowhook_session=; Max-Age=0; Path=\/ui; HttpOnly/);
  assert.equal((await ask('GET', '/ui/api/v1/me', { cookie })).status, 401);
  assert.equal((await ask('DELETE', '/ui/api/session', { cookie })).status, 204);
  const first = cookieOf(await signIn({ key }));
  const second = cookieOf(await signIn({ key }, { cookie: first }));
  assert.equal((await ask('GET', '/ui/api/v1/me', { cookie: first })).status, 401);
  assert.equal((await ask('GET', '/ui/api/v1/me', { cookie: second })).status, 200);
});

test('a session is renewed by use, and expires after 12 hours without it', async () => {
  const [used, left] = [await session(), await session()];
  for (let hours = 0; hours < 12; hours += 4) {
    ahead += 4 * HOUR_MS;
    const { status, headers } = await ask('GET', '/ui/api/v1/me', { cookie: used.cookie });
    assert.equal(status, 200);
    // The cookie is renewed with the session, once.
    assert.equal(headers['set-cookie']?.[0]?.split(';')[0], used.cookie);
    const again = await ask('GET', '/ui/api/v1/me', { cookie: used.cookie });
    assert.equal(again.headers['set-cookie'], undefined);
  }
  assert.equal((await ask('GET', '/ui/api/v1/me', { cookie: left.cookie })).status, 401);
  assert.equal((await ask('GET', '/ui/api/v1/me', { cookie: used.cookie })).status, 200);
});

test('failed sign-ins get the same response, and at most ten are allowed per minute', async () => {
  ahead += MINUTE_MS;
  const { key, id } = await keyOf(['read']);
  await service.store.keys.revoke({ id });
  const unknown = await signIn({ key: 'fh_nobody' });
  const revoked = await signIn({ key });
  assert.deepEqual([unknown.status, unknown.body], [401, revoked.body]);
  assert.equal(unknown.headers['set-cookie'], undefined);
  for (const body of [{}, { key: 5 }, { key: 'a', token: 'b' }, { key: 'a', user: 'b' }]) {
    assert.equal((await signIn(body)).status, 400, JSON.stringify(body));
  }
  // Successful sign-ins do not count.
  for (let n = 0; n < 12; n++) assert.equal((await signIn({ key: service.key })).status, 200);
  const tries = await Promise.all(Array.from({ length: 12 }, () => signIn({ key: 'fh_nobody' })));
  assert.equal(tries.filter(({ status }) => status === 401).length, 8);
  const limited = await signIn({ key: service.key });
  assert.deepEqual([limited.status, limited.headers['x-error-code']], [429, 'sign_in_limited']);
  const waitS = Number(limited.headers['retry-after']);
  assert.ok(waitS >= 1 && waitS <= 60, `${waitS}`);
  ahead += MINUTE_MS;
  assert.equal((await signIn({ key: service.key })).status, 200);
});

test('behind a proxy, failed sign-ins count for the address that the proxy reports', async (t) => {
  const other = await startService({ settings: { FLOWHOOK_TRUST_PROXY: 'true' }, dashboard: { root } });
  t.after(() => other.stop());
  const trying = async (forwarded: string) => {
    const answer = await fetch(`${other.url}/ui/api/session`, {
      method: 'POST',
      headers: {
        origin: other.url,
        'content-type': 'application/json',
        'x-forwarded-for': forwarded,
      },
      body: '{"key":"fh_nobody"}',
    });
    return answer.status;
  };
  for (let n = 0; n < 10; n++) assert.equal(await trying(`10.0.0.${n}, 192.0.2.1`), 401);
  assert.equal(await trying('10.0.0.99, 192.0.2.1'), 429);
  assert.equal(await trying('10.0.0.99, 192.0.2.2'), 401);
});

test('limits the size of a sign-in', async () => {
  const { status, body } = await signIn({ key: 'x'.repeat(16 * 1_024) });
  assert.deepEqual([status, body], [413, { error: 'The request body is larger than 16 KiB' }]);
});

test('a link signs in once, within 30 minutes, with its own key', async () => {
  ahead += MINUTE_MS;
  const { id: keyId } = await keyOf(['queue']);
  const link = await makeLink(service.store, { keyId });
  const token = link?.token ?? '';
  const [one, other] = await Promise.all([signIn({ token }), signIn({ token })]);
  assert.deepEqual([one.status, other.status].sort(), [200, 401]);
  const good = one.status === 200 ? one : other;
  assert.equal((good.body.key as Json).id, keyId);
  assert.equal((await ask('GET', '/ui/api/v1/me', { cookie: cookieOf(good) })).status, 200);
  assert.match(
    String((await signIn({ token })).body.error),
    /already been used, or is older than 30 minutes/,
  );

  const late = await makeLink(service.store, { keyId });
  ahead += 30 * MINUTE_MS;
  assert.equal((await signIn({ token: late?.token })).status, 401);
  const orphan = await makeLink(service.store, { keyId });
  await service.store.keys.revoke({ id: keyId });
  assert.equal((await signIn({ token: orphan?.token })).status, 401);
});

test('a session can read the stream of the API', async () => {
  const { cookie } = await session(['read']);
  const controller = new AbortController();
  const response = await fetch(`${service.url}/ui/api/v1/stream`, {
    headers: { cookie },
    signal: controller.signal,
  });
  assert.equal(response.headers.get('content-type'), 'text/event-stream; charset=utf-8');
  let text = '';
  for await (const chunk of response.body ?? []) {
    text += Buffer.from(chunk).toString();
    if (text.includes('event: hello')) break;
  }
  controller.abort();
});

test('streams end on signing out and when the session expires', async () => {
  const jobId = (await service.call('POST', '/v1/workflows/endless/queue')).headers.get('x-job-id');
  const paths = ['/ui/api/v1/stream', `/ui/api/v1/jobs/${jobId}/logs`];
  const opened = async () => {
    const { cookie } = await session(['read']);
    const headers = { cookie, accept: 'text/event-stream' };
    const answers = await Promise.all(paths.map((path) => fetch(service.url + path, { headers })));
    for (const { status } of answers) assert.equal(status, 200);
    return { cookie, ended: Promise.all(answers.map((answer) => answer.text())) };
  };
  const [left, forgotten] = [await opened(), await opened()];
  assert.equal((await ask('DELETE', '/ui/api/session', { cookie: left.cookie })).status, 204);
  await left.ended;
  ahead += 12 * HOUR_MS;
  await forgotten.ended;
  await service.call('POST', `/v1/jobs/${jobId}/cancel`);
});

test('the page has a content security policy with a new nonce each time, and is never cached', async () => {
  const nonces = new Set<string>();
  for (const path of ['/ui', '/ui/', '/ui/index.html', '/ui/workflows/people?q=a']) {
    const page = await ask('GET', path, { site: 'none', headers: { accept: 'text/html,*/*;q=0.8' } });
    assert.equal(page.status, 200, path);
    assert.equal(page.headers['content-type'], 'text/html; charset=utf-8');
    assert.equal(page.headers['cache-control'], 'no-cache');
    const [, nonce = ''] = /content="([^"]+)"/.exec(page.text) ?? [];
    assert.equal(
      page.headers['content-security-policy'],
      `default-src 'none'; script-src 'self'; style-src 'self' 'nonce-${nonce}'; img-src 'self' data:; ` +
        `connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'`,
    );
    assert.equal(page.headers['x-content-type-options'], 'nosniff');
    assert.equal(page.headers['referrer-policy'], 'no-referrer');
    assert.equal(page.headers['cross-origin-opener-policy'], 'same-origin');
    assert.equal(page.headers['cross-origin-resource-policy'], 'same-origin');
    assert.match(String(page.headers['permissions-policy']), /camera=\(\)/);
    nonces.add(nonce);
  }
  assert.equal(nonces.size, 4);
  assert.equal((await ask('GET', '/ui/index.html')).status, 200);
  const head = await ask('HEAD', '/ui/');
  assert.deepEqual([head.status, head.text], [200, '']);
});

test('files are compressed, and cached permanently if their name contains a hash', async () => {
  const path = '/ui/assets/main-1a2b.js';
  const tags = new Set<unknown>();
  const accepting = async (accepted: string, sent: string | undefined, at = path, text = SCRIPT) => {
    const reply = await ask('GET', at, { headers: { 'accept-encoding': accepted } });
    assert.deepEqual([reply.status, reply.headers['content-encoding'], reply.text], [200, sent, text]);
    tags.add(reply.headers.etag);
    return reply;
  };
  await Promise.all([accepting('gzip, deflate', 'gzip'), accepting('gzip', 'gzip')]);
  await accepting('gzip', 'gzip', '/ui/theme.js', 'theme');
  await accepting('br, gzip', undefined, '/ui/icon.png', 'icon');
  const script = await accepting('gzip, deflate, br', 'br');
  assert.equal(script.headers['content-type'], 'text/javascript; charset=utf-8');
  assert.equal(script.headers['cache-control'], 'public, max-age=31536000, immutable');
  assert.equal(script.headers.vary, 'accept-encoding');
  const plain = await ask('GET', path);
  assert.deepEqual([plain.headers['content-encoding'], plain.text], [undefined, SCRIPT]);
  assert.equal(tags.add(plain.headers.etag).size, 5);
  const same = await ask('GET', path, { headers: { 'if-none-match': String(plain.headers.etag) } });
  assert.deepEqual([same.status, same.text], [304, '']);
  const theme = await ask('GET', '/ui/theme.js');
  assert.deepEqual([theme.text, theme.headers['cache-control']], ['theme', 'no-cache']);
});

test('only built files are sent', async () => {
  const html = { accept: 'text/html' };
  for (const path of [
    '/ui/../dashboard/secret.js',
    '/ui/..%2fsecret.js',
    '/ui/%2e%2e/secret.js',
    '/ui/assets/../../secret.js',
    '/ui//etc/passwd',
    '/ui/linked.js',
    '/ui/assets/main-1a2b.js.br',
    '/ui/%00',
    '/ui/assets',
  ]) {
    const missing = await ask('GET', path);
    assert.deepEqual([missing.status, missing.headers['x-error-code']], [404, 'route_not_found'], path);
    assert.deepEqual(
      [missing.headers['cache-control'], missing.headers['referrer-policy']],
      ['no-store', 'no-referrer'],
    );
    assert.doesNotMatch((await ask('GET', path, { headers: html })).text, /not for you|root:/, path);
  }
  assert.equal((await ask('GET', '/ui/assets/gone.js', { headers: html })).status, 404);
  const { status, headers } = await ask('POST', '/ui/');
  assert.deepEqual([status, headers.allow], [405, 'GET, HEAD, OPTIONS']);
});

test('/ redirects only browsers to the dashboard', async () => {
  const browser = await ask('GET', '/', { headers: { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' } });
  assert.deepEqual([browser.status, browser.headers.location], [302, '/ui/']);
  for (const accept of ['*/*', 'application/json', 'application/json, text/html']) {
    assert.equal((await ask('GET', '/', { headers: { accept } })).headers['x-error-code'], 'route_not_found');
  }
});

test('other origins cannot call the dashboard, even if they can call the API', async (t) => {
  const open = await startService({ settings: { FLOWHOOK_CORS_ORIGINS: '*' }, dashboard: { root } });
  t.after(() => open.stop());
  const headers = { origin: 'https://app.example.com' };
  const allowed = async (method: string, path: string) =>
    (await fetch(open.url + path, { method, headers })).headers.get('access-control-allow-origin');
  assert.equal(await allowed('OPTIONS', '/v1/me'), '*');
  for (const method of ['OPTIONS', 'GET']) assert.equal(await allowed(method, '/ui/api/v1/me'), null);
});

test('with FLOWHOOK_DASHBOARD=off there is no dashboard', async (t) => {
  const bare = await startService({ settings: { FLOWHOOK_DASHBOARD: 'off' }, dashboard: { root } });
  t.after(() => bare.stop());
  assert.equal(bare.dashboard, undefined);
  for (const path of ['/', '/ui/', '/ui/api/session']) {
    const { status } = await fetch(bare.url + path, { headers: { accept: 'text/html' } });
    assert.equal(status, 404, path);
  }
});
