/** `flowhook doctor` on a running service: its port, certificate, webhooks and runs. */
import assert from 'node:assert/strict';
import { chmodSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { type AddressInfo, createServer as createPlainServer } from 'node:net';
import { join } from 'node:path';
import { after, type TestContext, test } from 'node:test';
import { Flowhook, type SystemFinding, Unauthorized } from '../../client/src/flowhook-client.ts';
import { readConfig } from '../../src/config/config.ts';
import { CHECKS } from '../../src/doctor/checks.ts';
import { examineInstallation } from '../../src/doctor/doctor.ts';
import { mintKey } from '../../src/teams/keys.ts';
import { makeInstallation } from '../support/cli/examined.ts';
import { makePlace } from '../support/cli/place.ts';
import { reply, smtpReceiver } from '../support/mail/smtp-receiver.ts';
import { certificateAuthority } from '../support/net/certificates.ts';
import { startService } from '../support/service.ts';

const service = await startService({
  workflows: {
    'default/people.yaml': 'source: { type: push }\n',
    'default/broken.yaml': "source: { type: command, command: ['false'] }\nretries: { max: 0 }\n",
  },
});
after(() => service.stop());
const flowhook = new Flowhook({ url: service.url, key: service.key });

/** Runs checks as the command does on the machine of the service. */
async function examine(names: readonly string[], environment: Record<string, string> = {}) {
  const { host, port } = new URL(service.url);
  assert.ok(host.endsWith(port));
  const settings = readConfig(
    {},
    {
      FLOWHOOK_PORT: port,
      FLOWHOOK_DATA: join(service.directory, 'data'),
      FLOWHOOK_WORKFLOWS: join(service.directory, 'workflows'),
      ...environment,
    },
    service.directory,
  );
  const checks = names.length === 0 ? CHECKS : CHECKS.filter(({ name }) => names.includes(name));
  return (await examineInstallation({ settings, doubts: [], online: null, isFull: false }, { checks }))
    .findings;
}

/** Findings that do not depend on the machine of the test. */
function wrong(findings: readonly SystemFinding[]): string[] {
  return findings
    .filter(({ group }) => group !== 'machine')
    .filter(({ status }) => status !== 'ok' && status !== 'skipped')
    .map((finding) => JSON.stringify(finding));
}

test('a new service has no problems, over HTTP and from another process', async () => {
  const remote = await flowhook.systemChecks({ timeoutMs: 0 });
  assert.deepEqual(wrong(remote.findings), []);
  const here = await examine([]);
  assert.deepEqual(wrong(here), []);
  for (const findings of [remote.findings, here]) {
    assert.deepEqual(
      findings.map(({ check }) => check),
      CHECKS.map(({ name }) => name),
    );
  }
  const port = (findings: readonly SystemFinding[]) => findings.find(({ check }) => check === 'port')?.what;
  assert.match(port(remote.findings) ?? '', /^This node listens on 127\.0\.0\.1/);
  assert.match(port(here) ?? '', /a flowhook server is listening and ready/);
});

test('the machine is checked', async () => {
  const found = await examine(['versions', 'clock']);
  assert.deepEqual(
    found.map(({ check, status }) => [check, status]),
    [
      ['versions', 'ok'],
      ['clock', 'skipped'],
    ],
  );
});

test('over HTTP only operators may run checks', async () => {
  const { key } = await mintKey(service.store, {
    teamId: service.team.id,
    name: '',
    scopes: ['admin'],
    expiresAt: null,
  });
  await assert.rejects(new Flowhook({ url: service.url, key }).systemChecks(), Unauthorized);
});

test('a workflow that fails three times in a row is reported', async () => {
  for (let run = 0; run < 3; run += 1) {
    const [before] = await examine(['workflows']);
    assert.equal(before?.status, 'ok');
    const { jobId } = await flowhook.workflows.queue('broken');
    assert.equal((await flowhook.jobs.wait(jobId)).state, 'failed');
  }
  const [failing] = await examine(['workflows']);
  assert.equal(failing?.status, 'warning');
  assert.match(failing?.what ?? '', /The last 3 runs of these workflows failed: default\/broken/);
});

/** Listens on a port of this machine until the test has ended. */
async function listening(t: TestContext, server: ReturnType<typeof createPlainServer>): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  return (server.address() as AddressInfo).port;
}

test('a port in use by another program is an error, and so is a server that is not ready', async (t) => {
  const place = await makeInstallation(t);
  const other = await listening(
    t,
    createPlainServer((socket) => socket.on('error', () => undefined).end('220 mail\r\n')),
  );
  const ask = (port: number) =>
    place.find('port', { settings: place.configure({ FLOWHOOK_PORT: String(port) }) });
  const taken = await ask(other);
  assert.equal(taken.status, 'error');
  assert.match(taken.what, new RegExp(`Port ${other} on 127\\.0\\.0\\.1 is in use by `));
  const draining = createServer((_request, response) => {
    response.writeHead(503, { 'x-request-id': 'one', 'x-error-code': 'not_ready' });
    response.end('{"error":"The service is not ready. Try again shortly"}');
  });
  const unready = await ask(await listening(t, draining));
  assert.equal(unready.status, 'error');
  assert.match(unready.what, /is listening, but not ready \(503\): The service is not ready/);
});

test('a server that uses the data directory but listens on another port is reported', async () => {
  // Another program may take the free port: then try another port.
  for (let tries = 0; ; tries += 1) {
    const [elsewhere] = await examine(['port'], { FLOWHOOK_PORT: String(await freePort()) });
    if (elsewhere?.status === 'error' && tries < 20) continue;
    assert.equal(elsewhere?.status, 'warning');
    assert.match(elsewhere?.what ?? '', /is free, but a server is using the data directory/);
    return;
  }
});

async function freePort(): Promise<number> {
  const server = createPlainServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

const authority = certificateAuthority();
const NO_OPENSSL = authority === undefined && 'there is no openssl';

test('certificates that expire soon, have expired, or are for another host', {
  skip: NO_OPENSSL,
}, async (t) => {
  const place = await makeInstallation(t);
  const [cert, key] = [join(place.directory, 'cert.pem'), join(place.directory, 'key.pem')];
  const write = (pair: { cert: string; key: string } | undefined) => {
    writeFileSync(cert, pair?.cert ?? '');
    writeFileSync(key, pair?.key ?? '', { mode: 0o600 });
    return pair;
  };
  const settings = place.configure({
    FLOWHOOK_TLS_CERT: cert,
    FLOWHOOK_TLS_KEY: key,
    FLOWHOOK_PUBLIC_URL: 'https://hooks.test',
  });
  const look = async () => {
    const { status, what } = await place.find('certificate', { settings });
    return [status, what] as const;
  };
  const issue = (host: string, days: number) => authority?.issue({ host, days });

  write(issue('hooks.test', 60));
  assert.equal((await look())[0], 'ok');
  write(issue('hooks.test', 5));
  assert.match((await look()).join(' '), /^warning .* expires in (4 days|5 days)/);
  write(issue('hooks.test', -1));
  assert.match((await look()).join(' '), /^error .* expired at/);
  const other = write(issue('other.test', 60));
  assert.match((await look()).join(' '), /^error .*other\.test, not for hooks\.test/);
  writeFileSync(cert, issue('hooks.test', 60)?.cert ?? '');
  assert.ok(other);
  assert.match((await look()).join(' '), /^error .* does not match the certificate/);
  writeFileSync(cert, 'nothing');
  assert.match((await look()).join(' '), /^error The certificate cannot be used/);
});

test('the URLs of --online are requested under the address policy of deliveries', async (t) => {
  const place = await makeInstallation(t);
  const url = `http://localhost:${await listening(
    t,
    createServer((_request, response) => response.end()),
  )}/`;
  assert.equal((await place.find('outbound')).status, 'skipped');
  const reached = await place.find('outbound', { online: [url] });
  assert.equal(reached.status, 'ok', JSON.stringify(reached));
  const settings = place.configure({ FLOWHOOK_ALLOW_NETWORKS: 'none' });
  const refused = await place.find('outbound', { online: [url], settings });
  assert.equal(refused.status, 'error');
  assert.match(refused.what, /FLOWHOOK_ALLOW_NETWORKS does not allow/);
});

test('the SMTP server is connected to, and the password is tried', async (t) => {
  const place = await makeInstallation(t);
  assert.equal((await place.find('mail')).status, 'skipped');
  const smtp = await smtpReceiver({
    onAuth: ({ password }, _, done) =>
      password === 'right' ? done(null, { user: 'a' }) : done(reply(535, 'Wrong')),
    allowInsecureAuth: true,
  });
  t.after(() => smtp.close());
  const found = (url: string) =>
    place.find('mail', {
      settings: place.configure({ FLOWHOOK_SMTP_URL: url, FLOWHOOK_MAIL_FROM: 'flowhook@example.com' }),
    });
  const working = await found(`smtp://a:right@127.0.0.1:${smtp.port}`);
  assert.deepEqual([working.status, smtp.mails.length], ['ok', 0], JSON.stringify(working));
  const wrong = await found(`smtp://a:wrong-one@127.0.0.1:${smtp.port}`);
  assert.equal(wrong.status, 'error');
  assert.match(wrong.what, /SMTP 535: the SMTP server refused the user or the password/);
  assert.doesNotMatch(JSON.stringify(wrong), /wrong-one/);
  assert.equal((await found('smtp://127.0.0.1:9')).status, 'error');
  assert.equal((await found(`smtp://a:right@127.0.0.1:${smtp.port}?tls=off`)).status, 'warning');
});

test('the command prints problems by group with the fix, and exits with 1 if there are errors', async (t) => {
  const place = await makePlace(t, { 'default/people.yaml': 'source: { type: push }\n' });
  place.environment.FLOWHOOK_PORT = '0';
  chmodSync(join(place.directory, 'data'), 0o755);
  const warned = await place.run('doctor');
  assert.equal(warned.code, 0, warned.stdout);
  assert.match(warned.stdout, /^Machine\n {2}✓ versions +Node 26\./);
  assert.match(
    warned.stdout,
    /\nFiles\n {2}! data-directory +Other users .*\n +Why it matters: .*\n +What to do: chmod 700 /,
  );
  assert.match(warned.stderr, /\d+ checks in .*: \d+ ok, \d+ warnings?, 0 errors, \d+ skipped\n$/);
  // No colors without a terminal.
  assert.ok(!warned.stdout.includes('\u001b'));

  writeFileSync(join(place.directory, 'workflows/default/people.yaml'), 'source: 1\n');
  const failed = await place.run('doctor', '--json', '--full');
  assert.equal(failed.code, 1);
  const { ok, findings } = JSON.parse(failed.stdout) as { ok: boolean; findings: SystemFinding[] };
  assert.equal(ok, false);
  assert.deepEqual(
    findings.filter(({ status }) => status === 'error').map(({ check }) => check),
    ['workflow-files'],
  );
});

test('invalid settings are an error, and a misspelled variable is a warning', async (t) => {
  const place = await makePlace(t, {}, false);
  delete place.environment.FLOWHOOK_WORKFLOWS;
  Object.assign(place.environment, { FLOWHOOK_PROT: '9000', FLOWHOOK_PORT: '0' });
  const misspelled = await place.run('doctor');
  assert.equal(misspelled.code, 0, misspelled.stdout);
  assert.match(
    misspelled.stdout,
    /! settings +FLOWHOOK_PROT is not a setting .*Did you mean FLOWHOOK_PORT\?/,
  );
  place.environment.FLOWHOOK_PORT = 'x';
  const wrongSettings = await place.run('doctor', '--json');
  assert.equal(wrongSettings.code, 1);
  const { findings } = JSON.parse(wrongSettings.stdout) as { findings: SystemFinding[] };
  const error = findings.filter(({ status }) => status === 'error');
  assert.deepEqual(
    error.map(({ check }) => check),
    ['settings'],
  );
  assert.match(error[0]?.what ?? '', /FLOWHOOK_PORT must be/);
});
