/** One-time sign-in links, printed with the first key and by `flowhook dashboard`. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { Scope } from '../../src/model/team.ts';
import { mintKey } from '../../src/teams/keys.ts';
import { runCommand } from '../support/cli/commands.ts';
import { startServerProcess } from '../support/server-process.ts';
import { startService, type TestService } from '../support/service.ts';

interface SignedIn {
  status: number;
  body: { team?: { slug: string }; key?: { id: string; scopes: string[] }; error?: string };
}

async function follow(url: string): Promise<SignedIn> {
  const { origin, pathname, hash } = new URL(url);
  assert.equal(pathname, '/ui/');
  const [, token = ''] = /^#\/welcome\/([\w-]{43})$/.exec(hash) ?? [];
  const response = await fetch(`${origin}/ui/api/session`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin },
    body: JSON.stringify({ token }),
  });
  return { status: response.status, body: (await response.json()) as SignedIn['body'] };
}

async function started(t: TestContext, settings: Record<string, string> = {}): Promise<TestService> {
  const service = await startService({ settings });
  t.after(() => service.stop());
  return service;
}

/** Runs `flowhook dashboard` with the settings of the service. */
function dashboard({ directory, database, url }: TestService, ...args: string[]) {
  const environment = {
    FLOWHOOK_DATA: join(directory, 'data'),
    FLOWHOOK_PORT: new URL(url).port,
    ...database.settings,
  };
  return runCommand(['dashboard', ...args], { directory, environment });
}

async function keyOf(service: TestService, scopes: Scope[], slug = 'default'): Promise<string> {
  const { id: teamId } = await service.store.teams.ensure({ slug });
  return (await mintKey(service.store, { teamId, name: '', scopes, expiresAt: null })).record.id;
}

test('the first start prints a sign-in link, later starts only the address', async (t) => {
  const service = await started(t, { FLOWHOOK_BOOTSTRAP_KEY: '' });
  const signedIn = await follow(service.dashboard ?? '');
  assert.equal(signedIn.status, 200, JSON.stringify(signedIn.body));
  assert.ok(signedIn.body.key?.scopes.includes('operator'));
  assert.equal((await follow(service.dashboard ?? '')).status, 401);

  const later = await started(t);
  assert.equal(later.firstKey, undefined);
  assert.equal(later.dashboard, `${later.url}/ui/`);
});

test('serve prints the sign-in link', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-link-'));
  t.after(() => rm(directory, { recursive: true, force: true }));
  const server = await startServerProcess({ FLOWHOOK_DATA: directory, FLOWHOOK_DASHBOARD: 'on' });
  t.after(() => server.kill());
  const [, url = ''] = /^dashboard: (\S+)$/m.exec(server.output()) ?? [];
  assert.ok(url.startsWith(`${server.url}/ui/#/welcome/`), server.output());
  assert.equal((await follow(url)).status, 200);
  // The message goes to standard error, which may arrive later than standard output.
  assert.equal(await server.stop(), 0);
  assert.match(server.output(), /within 30 minutes/);
});

test('flowhook dashboard prints a link for the most powerful key of the team', async (t) => {
  const service = await started(t, { FLOWHOOK_BOOTSTRAP_KEY: '' });
  await keyOf(service, ['read', 'queue', 'webhooks'], 'acme');
  const admin = await keyOf(service, ['admin'], 'acme');
  const { code, stdout, stderr } = await dashboard(service, '--team', 'acme');
  assert.equal(code, 0, stderr);
  assert.match(stderr, new RegExp(`signs in to team acme with the scopes of key ${admin}`));
  const { body } = await follow(stdout.trim());
  assert.deepEqual([body.team?.slug, body.key?.id], ['acme', admin]);

  const reader = await keyOf(service, ['read']);
  const printed = JSON.parse((await dashboard(service, '--key-id', reader, '--json')).stdout);
  assert.deepEqual([printed.team, printed.keyId], ['default', reader]);
  assert.match(printed.expiresAt, /Z$/);
  assert.equal((await follow(printed.url)).body.key?.id, reader);

  const away = await dashboard(service, '--public-url', 'https://flowhook.example.com');
  const bound = await dashboard(service, '--host', '0.0.0.0', '--port', '9000');
  assert.match(bound.stdout, /^http:\/\/127\.0\.0\.1:9000\/ui\/#/);
  assert.match(away.stdout, /^https:\/\/flowhook\.example\.com\/ui\/#\/welcome\/[\w-]{43}\n$/);
});

test('flowhook dashboard names a missing team or key', async (t) => {
  const service = await started(t);
  const revoked = await keyOf(service, ['read'], 'acme');
  await service.store.keys.revoke({ id: revoked });
  for (const [args, sentence] of [
    [['--team', 'ghost'], /No team "ghost" found\. Choose one of: default, acme/],
    [['--team', 'acme'], /no usable key\. Create one with `flowhook keys create --team acme --scopes admin`/],
    [['--key-id', revoked], /No usable key "key_\w+" found\. .*`flowhook keys list`/],
    [['--key-id', 'key_x', '--team', 'default'], /No usable key "key_x" found in team "default"/],
  ] as const) {
    const { code, stdout, stderr } = await dashboard(service, ...args);
    assert.deepEqual([code, stdout], [3, ''], stderr);
    assert.match(stderr, sentence);
  }
});
