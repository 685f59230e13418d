/** The example receiver, as a separate process: what it accepts and what it rejects. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { createPublicKey, generateKeyPairSync, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createInterface, type Interface } from 'node:readline';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { signatureHeaders } from './sign.ts';

const PROGRAM = fileURLToPath(new URL('../../examples/receiver.mts', import.meta.url));
const secret = randomBytes(32);
const { privateKey } = generateKeyPairSync('ed25519');
const BODY = JSON.stringify({ type: 'workflow_finished', workflowId: 'people', jobId: 'job_1', data: {} });

/** Replaces the service, from which the receiver requests only the keys. */
let service: Server;
let child: ChildProcess;
let lines: Interface;
let url = '';

before(async () => {
  const x = createPublicKey(privateKey).export({ format: 'jwk' }).x ?? '';
  const key = `whpk_${Buffer.from(x, 'base64url').toString('base64')}`;
  service = createServer((request, response) => {
    assert.equal(request.url, '/.well-known/webhook-signing-keys');
    response.end(JSON.stringify({ keys: [{ id: 'sig_1', type: 'ed25519', key, createdAt: '' }] }));
  });
  service.listen(0, '127.0.0.1');
  await once(service, 'listening');
  const { port } = service.address() as AddressInfo;
  child = spawn(
    process.execPath,
    [
      PROGRAM,
      ...['--port', '0', '--service', `http://127.0.0.1:${port}`],
      ...['--secret', `whsec_${secret.toString('base64')}`, '--json'],
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  lines = createInterface({ input: child.stdout as NodeJS.ReadableStream });
  const [line] = await once(lines, 'line');
  url = /http:\S+/.exec(line as string)?.[0] ?? '';
});

after(async () => {
  child.kill('SIGTERM');
  await once(child, 'exit');
  service.closeAllConnections();
  service.close();
});

async function post(
  headers: Record<string, string>,
  body = BODY,
): Promise<{ status: number; line: Record<string, unknown> }> {
  const printed = once(lines, 'line');
  const answer = await fetch(url, { method: 'POST', headers, body });
  await answer.text();
  return { status: answer.status, line: JSON.parse((await printed)[0] as string) };
}

function sign(ageS = 0, keys = { secrets: [secret], privateKey }): Promise<Record<string, string>> {
  return signatureHeaders({ id: 'evt_1', timestamp: Math.floor(Date.now() / 1000) - ageS, body: BODY }, keys);
}

test('accepts signed requests and prints one line about each', async () => {
  const { status, line } = await post({ ...(await sign()), 'webhook-attempt': '2' });
  assert.equal(status, 204);
  const { at, headers, ...rest } = line;
  assert.match(String(at), /^\d{4}-/);
  assert.deepEqual(rest, { verified: true, attempt: 2, event: JSON.parse(BODY), body: BODY });
  assert.equal((headers as Record<string, string>)['webhook-attempt'], '2');
});

test('rejects changed, old and unsigned requests, and those signed by others, with 401', async () => {
  const other = generateKeyPairSync('ed25519').privateKey;
  for (const [headers, body, error] of [
    [await sign(), `${BODY} `, /v1 signature does not match/],
    [await sign(301), BODY, /timestamp/],
    [await sign(-400), BODY, /timestamp/],
    [{ ...(await sign()), 'webhook-timestamp': 'now' }, BODY, /timestamp/],
    [{}, BODY, /header is missing/],
    [{ ...(await sign()), 'webhook-signature': 'v1, v1a,' }, BODY, /v1 signature/],
    [await sign(0, { secrets: [randomBytes(32)], privateKey }), BODY, /v1 signature/],
    [await sign(0, { secrets: [secret], privateKey: other }), BODY, /v1a signature matches no public key/],
  ] as const) {
    const { status, line } = await post(headers, body);
    assert.equal(status, 401);
    assert.equal(line.verified, false);
    assert.match(String(line.error), error);
  }
});
