/** Connecting: the accepted URLs and keys, and the errors for others. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';
import { App, appTester } from './support/run.js';
import { startService } from './support/service.js';

/** @type {Awaited<ReturnType<typeof startService>>} */
let service;
before(async () => {
  service = await startService({
    'default/people.yaml': 'source: { type: command, command: ["printf", "{\\"id\\": 1}\\\\n"] }\n',
  });
});
after(() => service?.stop());

/** @returns {Promise<any>} */
const connect = (authData) => appTester(App.authentication.test, { authData, inputData: {}, meta: {} });
const says = (name, sentence) => (error) => {
  assert.equal(error.name, name, error.message);
  assert.match(error.message, sentence);
  return true;
};

/** A server with the same response to every request. */
async function answering(t, status, headers, body) {
  /** @type {import('node:http').IncomingMessage[]} */
  const asked = [];
  const server = createServer((request, response) => {
    asked.push(request);
    response.writeHead(status, headers).end(body);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(undefined)));
  t.after(() => server.close());
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  return { baseUrl: `http://127.0.0.1:${port}`, apiKey: 'some-key', asked };
}

test('a valid key connects, and the connection is named after its team and the host', async () => {
  const me = await connect(service.authData());
  assert.equal(me.team, 'default');
  const label = await appTester(App.authentication.connectionLabel, {
    authData: service.authData(),
    inputData: me,
    meta: {},
  });
  assert.equal(label, `Team default at ${new URL(service.url).host}`);
});

test('the address may end with a slash, with /v1, or with spaces', async () => {
  for (const end of ['/', '/v1', '/v1/', '  ']) {
    assert.equal((await connect({ ...service.authData(), baseUrl: service.url + end })).team, 'default');
  }
});

test('a URL without TLS is refused before the key is sent, unless it is this machine', async () => {
  await assert.rejects(
    connect({ baseUrl: 'http://flowhook.example.com', apiKey: 'k' }),
    says('AppError', /must start with https:/),
  );
  await assert.rejects(connect({ baseUrl: 'flowhook', apiKey: 'k' }), says('AppError', /is not a URL/));
});

test('an unknown key must be entered again', async () => {
  await assert.rejects(
    connect({ ...service.authData(), apiKey: 'not-a-key-of-anybody' }),
    says('ExpiredAuthError', /does not accept this API key/),
  );
});

test('the error for a key without a scope names the required scopes, and does not expire the connection', async () => {
  const makeKey = async (scopes) =>
    (await service.call('POST', '/v1/keys', { name: 'zapier', scopes })).body.apiKey;
  await assert.rejects(
    connect({ ...service.authData(), apiKey: await makeKey(['queue']) }),
    says('AppError', /lacks the scope/),
  );
  const reader = { ...service.authData(), apiKey: await makeKey(['read']) };
  assert.equal((await connect(reader)).key, 'zapier');
  await assert.rejects(
    appTester(App.creates.queue_job.operation.perform, {
      authData: reader,
      inputData: { workflowId: 'people' },
      meta: {},
    }),
    says('AppError', /scopes read, queue and webhooks/),
  );
});

test('redirects are not followed, so that the key is not sent elsewhere', async (t) => {
  const elsewhere = await answering(t, 200, { 'content-type': 'application/json' }, '{}');
  const first = await answering(t, 308, { location: `${elsewhere.baseUrl}/v1/me` }, '');
  await assert.rejects(
    connect(first),
    says('AppError', /redirects to .*Enter the address that it redirects to/),
  );
  assert.equal(first.asked.length, 1);
  assert.equal(elsewhere.asked.length, 0);
});

test('a busy service is asked again after the time that it requests', async (t) => {
  for (const status of [429, 503]) {
    const busy = await answering(
      t,
      status,
      { 'content-type': 'application/json', 'retry-after': '17' },
      '{"error":"Wait a little"}',
    );
    await assert.rejects(connect(busy), (error) => {
      assert.ok(error instanceof Error);
      assert.equal(error.name, 'ThrottledError');
      assert.deepEqual(JSON.parse(error.message), { message: 'Wait a little', delay: 17 });
      return true;
    });
  }
});

test('a server that is not Flowhook is detected', async (t) => {
  const page = await answering(t, 404, { 'content-type': 'text/html' }, '<h1>Not found</h1>');
  await assert.rejects(connect(page), says('AppError', /does not look like Flowhook/));
  const other = await answering(t, 200, { 'content-type': 'text/html' }, '<h1>Hello</h1>');
  await assert.rejects(connect(other), says('AppError', /is not Flowhook/));
});
