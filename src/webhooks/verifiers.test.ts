/** Third-party verifiers accept recorded requests, and reject changed ones. */
import assert from 'node:assert/strict';
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { Webhook as StandardWebhook } from 'standardwebhooks';
import { Webhook as SvixWebhook } from 'svix';
import vectors from '../../test/support/webhooks/standard-webhooks.json' with { type: 'json' };
import { parseAllowNetworks } from '../net/address-policy.ts';
import { createGuardedDispatcher } from '../net/dispatcher.ts';
import { createResolver } from '../net/resolver.ts';
import { destinationOf } from './destination.ts';
import { sendAttempt } from './send.ts';

const BODIES = [
  '{"id":"evt_1","type":"workflow_finished"}',
  '{ "spaces" : [ 1.0, 1e3 ],\n"name":"Zoë ☂ \\u0000", "last": "\u2028" }',
  `{"large":"${'x'.repeat(20_000)}"}`,
];
const [newer, older] = [randomBytes(32), randomBytes(32)];
const recorded: { headers: Record<string, string>; text: string }[] = [];

const server = createServer(async (request, response) => {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  recorded.push({ headers: textsOf(request.headers), text: Buffer.concat(chunks).toString() });
  response.writeHead(204).end();
});

before(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const dispatcher = createGuardedDispatcher({
    policy: parseAllowNetworks('127.0.0.1'),
    resolver: createResolver(),
  });
  const { privateKey } = generateKeyPairSync('ed25519');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const to = destinationOf({ url, headers: { 'x-own': 'yes' }, userAgent: 'flowhook/test' });
  for (const [index, body] of BODIES.entries()) {
    const { attempt } = await sendAttempt(
      { dispatcher, now: Date.now },
      {
        to,
        keys: { secrets: [newer, older], privateKey },
        timeoutMs: 5_000,
        queuedMs: 0,
        messageId: `evt_${index}`,
        eventType: 'workflow_finished',
        attempt: 1,
        body,
      },
    );
    assert.equal(attempt.outcome, 'ok');
  }
  await dispatcher.destroy();
});

after(() => server.close());

for (const [name, Webhook] of [
  ['standardwebhooks', StandardWebhook],
  ['svix', SvixWebhook],
] as const) {
  test(`${name} verifies recorded requests with the new secret and with the old one`, () => {
    assert.equal(recorded.length, BODIES.length);
    for (const [index, { headers, text }] of recorded.entries()) {
      assert.equal(text, BODIES[index]);
      for (const secret of [newer, older]) {
        const receiver = new Webhook(`whsec_${secret.toString('base64')}`);
        assert.deepEqual(receiver.verify(text, headers), JSON.parse(text));
        assert.throws(() => receiver.verify(`${text} `, headers));
        assert.throws(() => receiver.verify(text, { ...headers, 'webhook-id': 'evt_x' }));
        assert.throws(() => receiver.verify(text, { ...headers, 'webhook-timestamp': '1614265330' }));
      }
      const stranger = new Webhook(`whsec_${randomBytes(32).toString('base64')}`);
      assert.throws(() => stranger.verify(text, headers));
    }
  });

  test(`${name} makes the published signature of the published message`, () => {
    const { message, v1 } = vectors;
    const signed = new Webhook(v1.secret).sign(message.id, new Date(message.timestamp * 1_000), message.body);
    assert.equal(signed, v1.signature);
  });
}

function textsOf(headers: IncomingHttpHeaders): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, [value].flat().join(', ')]),
  );
}
