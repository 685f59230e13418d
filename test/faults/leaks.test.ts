/**
 * Plants secrets and personal data wherever a service accepts input, and searches for them in all of its diagnostic
 * output: logs, metrics, traces, errors, readiness, doctor. Intended output is not searched: records and events over
 * the API, a webhook's own URL and deliveries, and the log of a job, for the team that owns them.
 */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { type TestContext, test } from 'node:test';
import { makePlace } from '../support/cli/place.ts';
import { amountOf, scrapeUntil } from '../support/observe/scrape.ts';
import { findPlanted, PLANTED } from '../support/records/planted.ts';
import { startServerProcess } from '../support/server-process.ts';

const { email, workflowSecret } = PLANTED;
const shell = (script: string, more = '') =>
  `source: { type: command, command: ${JSON.stringify(['sh', '-c', script])} }\nretries: { max: 0 }\n${more}`;

/** @param sink where an http source sends requests, which fail */
const workflows = (sink: string) => ({
  'default/people.yaml': shell(`echo '${JSON.stringify({ id: email, note: PLANTED.record })}'`),
  'default/blabs.yaml': shell(
    `echo "${PLANTED.words} ${email} $FLOWHOOK_SECRET__DEFAULT__TOKEN ${workflowSecret}" >&2; exit 3`,
  ),
  'default/broken.yaml': shell(`echo '{"id": 1, ${PLANTED.brokenRecord} ${email}'`),
  'default/nameless.yaml': shell(`echo '${JSON.stringify({ email, note: PLANTED.brokenRecord })}'`),
  'default/throws.mts': `export const workflow = { retries: { max: 0 } };
    export default async function* (ctx) { throw new Error('refused: ' + ctx.secret('TOKEN') + ' of ${email}'); }`,
  'default/asks.yaml': `source:
  type: http
  url: "${sink}/people?token=\${secret.TOKEN}"
  headers: { authorization: "Bearer \${secret.TOKEN}" }
retries: { max: 0 }\n`,
  'default/pushed.yaml': 'source: { type: push }\n',
});
/** One valid and four invalid bodies. */
const PUSHES = 5;
/** Minimum number of spans, of requests and runs. */
const SPANS = 30;
const COMMANDS = ['doctor', 'doctor --json', 'config print --show-origin'];
const RUN = ['people', 'blabs', 'broken', 'nameless', 'throws', 'asks'];

for (const format of ['json', 'pretty']) {
  test(`diagnostic output contains no planted secrets (${format} log)`, async (t) => {
    const sink = await startSink(t);
    const place = await makePlace(t, workflows(sink.url), false);
    Object.assign(place.environment, {
      FLOWHOOK_BOOTSTRAP_KEY: PLANTED.bootstrapKey,
      FLOWHOOK_ENCRYPTION_KEY: PLANTED.encryptionKey,
      FLOWHOOK_PUBLIC_URL: `https://ada:${PLANTED.publicPassword}@hooks.example.com`,
      FLOWHOOK_SECRET__DEFAULT__TOKEN: workflowSecret,
      FLOWHOOK_ALLOW_NETWORKS: 'loopback',
      FLOWHOOK_METRICS_ALLOW: 'loopback',
      FLOWHOOK_LOG_LEVEL: 'debug',
      FLOWHOOK_LOG_FORMAT: format,
      OTEL_EXPORTER_OTLP_ENDPOINT: `${sink.url}/otlp`,
      OTEL_BSP_SCHEDULE_DELAY: '100',
    });
    const server = await startServerProcess({ ...place.environment, FLOWHOOK_PORT: '0' });
    t.after(() => server.kill());

    const refused = await tease(server.url, sink.url);
    const { text: metrics } = await scrapeUntil(
      server.url,
      (families) =>
        (amountOf(families, 'flowhook_job_attempts_total', {}) ?? 0) >= RUN.length + PUSHES &&
        (amountOf(families, 'flowhook_trace_spans_total', { result: 'sent' }) ?? 0) >= SPANS &&
        (amountOf(families, 'flowhook_delivery_attempts_total', { outcome: 'http' }) ?? 0) > 0 &&
        (amountOf(families, 'flowhook_delivery_attempts_total', { outcome: 'connect' }) ?? 0) > 0,
    );
    const operator = { 'x-api-key': PLANTED.bootstrapKey };
    const outputs: Record<string, string> = {
      'error responses': refused,
      metrics,
      '/readyz?verbose': await textOf(`${server.url}/readyz?verbose`),
      '/v1/system': await textOf(`${server.url}/v1/system`, operator),
      '/v1/system/checks': await textOf(`${server.url}/v1/system/checks`, operator),
      '/v1/audit': await textOf(`${server.url}/v1/audit`, operator),
    };
    // The output of commands does not depend on the format of the log.
    for (const command of format === 'json' ? COMMANDS : []) {
      const { stdout, stderr } = await place.run(...command.split(' '));
      outputs[`flowhook ${command}`] = `${stdout}\n${stderr}`;
    }
    await server.stop();
    outputs[`the ${format} log`] = server.output();
    outputs.traces = sink.traces.join('\n');

    for (const [name, text] of Object.entries(outputs)) {
      assert.ok(text.length > 100, `${name} is empty: ${text}`);
    }
    const found = Object.entries(outputs).flatMap(([name, text]) =>
      findPlanted(text).map((finding) => `${name}: ${finding}`),
    );
    assert.deepEqual(found, []);
    // The secrets were really planted.
    assert.ok(sink.heard.includes(PLANTED.urlQuery) && sink.heard.includes(PLANTED.webhookHeader));
    assert.ok(sink.heard.includes(workflowSecret));
  });
}

/** Sends all planted secrets to a service, in every kind of input. Returns the error responses. */
async function tease(url: string, sink: string): Promise<string> {
  const refusals: string[] = [];
  const call = async (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) => {
    const answer = await fetch(url + path, {
      method,
      headers: {
        'x-api-key': PLANTED.bootstrapKey,
        'content-type': 'application/json',
        cookie: `flowhook_session=${PLANTED.cookie}; other=${PLANTED.cookie}`,
        authorization: `Bearer ${PLANTED.bearer}`,
        'x-secret': PLANTED.header,
        referer: `https://example.com/?token=${PLANTED.header}`,
        from: email,
        ...headers,
      },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const text: string = await answer.text();
    if (!answer.ok) refusals.push(`${method} ${answer.status} ${text}`);
    return { status: answer.status, body: answer.ok ? JSON.parse(text) : undefined };
  };
  const query = `?api_key=${PLANTED.query}&email=${encodeURIComponent(email)}`;
  const path = encodeURIComponent(`${email}-${PLANTED.path}`);
  const hidden = { note: PLANTED.body, email };
  const subscribing = `/v1/integrations/webhooks/subscribe${query}`;

  for (const key of [PLANTED.wrongKey, `${PLANTED.wrongKey}, twice`, '']) {
    await call('GET', `/v1/me${query}`, undefined, { 'x-api-key': key });
  }
  await call('GET', `/${path}${query}`);
  await call('BREW', `/v1/me${query}`).catch(() => undefined);
  for (const [method, at] of [
    ['GET', `/v1/workflows/${path}/data${query}`],
    ['POST', `/v1/workflows/${path}/queue${query}`],
    ['GET', `/v1/jobs/${path}${query}`],
    ['GET', `/v1/jobs${query}&cursor=${PLANTED.query}&state=${PLANTED.query}`],
    ['GET', `/v1/samples/${path}`],
    ['DELETE', `/v1/integrations/webhooks/unsubscribe/${path}${query}`],
    ['GET', `/v1/events/${path}?limit=${PLANTED.query}`],
    ['GET', `/v1/workflows/people/data?format=${PLANTED.query}&${email}`],
    ['PATCH', `/v1/inspectors/${path}`],
    ['PUT', `/v1/workflows/${path}`],
  ] as const) {
    await call(method, at, method === 'GET' ? undefined : hidden);
  }
  for (const body of [`{"secret": "${PLANTED.body}" ${email}`, `"${PLANTED.body}"`, [hidden], hidden]) {
    await call('POST', subscribing, body);
    await call('POST', '/v1/keys', body);
    await call('POST', '/v1/workflows/pushed/push', body);
    await call('PUT', '/v1/workflows/new', body);
    await call('POST', '/v1/workflows/people/erase', body);
    await call('POST', '/ui/api/session', body);
  }
  const pushed = await call('POST', '/v1/workflows/pushed/push', [{ id: email, note: PLANTED.record }]);
  assert.equal(pushed.status, 200);
  await sendMalformed(url);

  const secretUrl = (at: string) =>
    `${at.replace('//', `//ada:${PLANTED.urlPassword}@`)}/hook?token=${PLANTED.urlQuery}&email=${email}`;
  for (const at of [sink, 'http://127.0.0.1:1']) {
    const webhookUrl = secretUrl(at);
    const events = ['workflow_finished', 'workflow_failed'];
    const settings = { headers: { 'x-token': PLANTED.webhookHeader } };
    const made = await call('POST', '/v1/integrations/webhooks', { webhookUrl, events, settings });
    assert.equal(made.status, 200, refusals.join('\n'));
  }
  for (const webhookUrl of [secretUrl('http://[bad'), `javascript:${PLANTED.urlPassword}`]) {
    await call('POST', subscribing, { webhookUrl, workflowId: 'people', events: ['workflow_finished'] });
  }
  for (const id of RUN) {
    const queued = await call('POST', `/v1/workflows/${id}/queue${query}`, hidden);
    assert.equal(queued.status, 200, refusals.join('\n'));
  }
  return refusals.join('\n');
}

/** Invalid HTTP, and requests that exceed limits. */
async function sendMalformed(url: string): Promise<void> {
  const { hostname, port } = new URL(url);
  for (const text of [
    `GET /?token=${PLANTED.malformed} HTTP/1.1\r\nx-api-key: ${PLANTED.malformed}\r\nno colon ${email}\r\n\r\n`,
    `${PLANTED.malformed} ${email}\r\n\r\n`,
    `GET / HTTP/1.1\r\nhost: a\r\nx-api-key: ${PLANTED.malformed}${'x'.repeat(20_000)}\r\n\r\n`,
  ]) {
    const socket = connect(Number(port), hostname);
    await new Promise((resolve) => {
      // The connection may be reset while the request is being written.
      socket.on('error', () => undefined);
      socket.once('close', resolve);
      socket.resume();
      socket.end(text);
    });
  }
}

interface Sink {
  url: string;
  /** URLs of requests, and their headers. */
  heard: string;
  traces: string[];
}

/** An endpoint, a source and a collector of traces in one. Requests to the first two fail with secrets in the response. */
async function startSink(t: TestContext): Promise<Sink> {
  const sink = { url: '', heard: '', traces: [] as string[] };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      if (request.url?.startsWith('/otlp') === true) {
        sink.traces.push(Buffer.concat(chunks).toString('latin1'));
        response.setHeader('content-type', 'application/json').end('{}');
        return;
      }
      sink.heard += `${request.url} ${JSON.stringify(request.headers)}\n`;
      const answer = request.url?.startsWith('/people') ? PLANTED.sourceAnswer : PLANTED.webhookAnswer;
      response.writeHead(404, { 'x-answer': answer }).end(`${answer} ${email} ${workflowSecret}`);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  sink.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return sink;
}

async function textOf(url: string, headers: Record<string, string> = {}): Promise<string> {
  const answer = await fetch(url, { headers });
  const text = await answer.text();
  assert.equal(answer.status, 200, text);
  return text;
}

test('startup errors contain no planted secrets: an unreachable database, and invalid settings', async (t) => {
  const place = await makePlace(t, {}, false);
  const { urlPassword, urlQuery, encryptionKey, header, bootstrapKey } = PLANTED;
  Object.assign(place.environment, {
    FLOWHOOK_PORT: '0',
    FLOWHOOK_DATABASE: `postgres://ada:${urlPassword}@127.0.0.1:1/flowhook?application_name=${urlQuery}`,
    FLOWHOOK_ENCRYPTION_KEY: encryptionKey,
    FLOWHOOK_BOOTSTRAP_KEY: bootstrapKey,
  });
  const outputs = [await place.run('serve'), await place.run('doctor', '--json')];
  Object.assign(place.environment, {
    FLOWHOOK_DATABASE: `postgres:/ada:${urlPassword}@127.0.0.1:1/flowhook`,
    FLOWHOOK_ENCRYPTION_KEY: header,
    FLOWHOOK_BOOTSTRAP_KEY: `${bootstrapKey} with blanks`,
  });
  outputs.push(await place.run('config', 'check'));
  for (const { code, stdout, stderr } of outputs) {
    assert.notEqual(code, 0, stdout);
    assert.ok(stdout.length + stderr.length > 50, `no output: ${stdout}${stderr}`);
    assert.deepEqual(findPlanted(`${stdout}\n${stderr}`), []);
  }
});
