/**
 * Every operation of `/openapi.json` refuses undeclared input and suggests the nearest declared name. The contract's
 * operations ignore undeclared input, as do addresses that people and their programs open; receivers accept anything.
 */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { ApiDocument, DescribedOperation, Schema } from '../support/api/document-requests.ts';
import { startService } from '../support/service.ts';

type Json = Record<string, unknown>;

const CONTRACT = [
  'readWorkflowData',
  'queueWorkflowJob',
  'listWebhooks',
  'subscribeWebhook',
  'unsubscribeWebhook',
  'unsubscribeWebhookByPath',
];
/** Feed readers, mail programs and the gateways of companies add parameters to addresses, and a body to one click. */
const OPENED_BY_PEOPLE = [
  'readFeedDocument',
  'readVerification',
  'confirmAddress',
  'readUnsubscription',
  'endMails',
];
const LENIENT = [...CONTRACT, ...OPENED_BY_PEOPLE];
/** Receivers. */
const TAKES_ANYTHING = /^inspect[A-Z]/;

const service = await startService({ workflows: { 'default/people.yaml': 'source: { type: push }\n' } });
after(() => service.stop());
const document = (await service.call('GET', '/openapi.json')).body as ApiDocument;

const IDS: Record<string, string> = {
  workflowId: 'people',
  webhookId: 'wh_01kadz8v3s7v0s8e1c3q5m2n4p',
  address: 'insp_0',
};

interface Target {
  method: string;
  path: string;
  operation: DescribedOperation & { requestBody?: { content: Record<string, { example?: unknown }> } };
}

const targets: Target[] = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({
    method: method.toUpperCase(),
    // Most resources with this id do not exist: mistakes in a request are reported first.
    path: path.replace(/\{(\w+)\}/g, (_, name: string) => IDS[name] ?? 'unknown'),
    operation,
  })),
);
const additive = targets.filter(
  ({ operation: { operationId: id } }) => !LENIENT.includes(id) && !TAKES_ANYTHING.test(id),
);

interface Got {
  status: number;
  code: string | null;
  error: string;
}

async function send(
  { method, path }: Target,
  {
    query = '',
    body,
    type = 'application/json',
    key = service.key,
  }: { query?: string } & {
    body?: string | undefined;
    type?: string;
    key?: string;
  },
): Promise<Got> {
  const response = await fetch(`${service.url}${path}${query === '' ? '' : `?${query}`}`, {
    method,
    headers: { 'x-api-key': key, ...(body === undefined ? {} : { 'content-type': type }) },
    ...(body === undefined ? {} : { body }),
  });
  const text = response.status === 200 ? '' : await response.text();
  if (response.status === 200) await response.body?.cancel();
  const isError = response.headers.get('x-error-code') !== null;
  return {
    status: response.status,
    code: response.headers.get('x-error-code'),
    error: isError ? String((JSON.parse(text) as Json).error) : '',
  };
}

function refused(got: Got, sentence: string, what: string): void {
  assert.deepEqual([got.status, got.code], [400, 'field_invalid'], `${what}: ${JSON.stringify(got)}`);
  assert.ok(got.error.includes(sentence), `${what}: "${got.error}" does not say ${sentence}`);
}

/** The name without its last letter. */
const misspelled = (name: string) => name.slice(0, -1);
const queryNames = ({ operation }: Target) =>
  (operation.parameters ?? []).filter((one) => one.in === 'query').map(({ name }) => name);

function jsonBody({ operation }: Target): { schema: Schema; example?: unknown } | undefined {
  const content = operation.requestBody?.content['application/json'];
  return content && { ...content, schema: resolved(content.schema) };
}

/** The schema with its references resolved. */
function resolved(schema: Schema): Schema {
  if (schema.$ref !== undefined) {
    return resolved(document.components.schemas[schema.$ref.split('/').at(-1) ?? ''] ?? {});
  }
  const { properties, oneOf } = schema;
  return {
    ...schema,
    ...(properties && {
      properties: Object.fromEntries(Object.entries(properties).map(([name, one]) => [name, resolved(one)])),
    }),
    ...(oneOf && { oneOf: oneOf.map(resolved) }),
  };
}

/** The paths of all properties of this schema, including nested objects. */
function places(schema: Schema, above: string[] = []): string[][] {
  const own = Object.entries(schema.properties ?? {}).flatMap(([name, one]) => [
    [...above, name],
    ...places(one, [...above, name]),
  ]);
  return [...own, ...(schema.oneOf ?? []).flatMap((one) => places(one, above))];
}

/** Adds a field at a path. */
function withField(fields: Json, [first = '', ...rest]: readonly string[], value: unknown): Json {
  if (rest.length === 0) return { ...fields, [first]: value };
  const below = fields[first];
  const inner = typeof below === 'object' && below !== null ? (below as Json) : {};
  return { ...fields, [first]: withField(inner, rest, value) };
}

test('the document has enough operations, parameters and fields', () => {
  assert.equal(targets.filter(({ operation }) => CONTRACT.includes(operation.operationId)).length, 6);
  assert.ok(additive.length > 60, `${additive.length}`);
  assert.ok(additive.flatMap(queryNames).length > 60);
  assert.ok(additive.flatMap((one) => places(jsonBody(one)?.schema ?? {})).length > 25);
});

for (const target of additive) {
  const { operation, method } = target;
  const name = operation.operationId;
  const body = jsonBody(target);
  const example = body?.example as Json | undefined;
  const whole = body === undefined ? undefined : JSON.stringify(example);

  test(`${name} refuses unknown query parameters`, async () => {
    const known = queryNames(target);
    for (const one of known) {
      const got = await send(target, { query: `${misspelled(one)}=1`, body: whole });
      refused(got, `Did you mean \`${one}\`?`, misspelled(one));
    }
    for (const unknown of [
      '__proto__',
      'constructor',
      'nonsense',
      ...(known.includes('dryRun') ? [] : ['dryRun']),
    ]) {
      const got = await send(target, { query: `${unknown}=true&${unknown}=true`, body: whole });
      refused(got, `There is no query parameter "${unknown}"`, unknown);
    }
    if (operation.security.length > 0) {
      const got = await send(target, { query: 'nonsense=1', body: whole, key: 'wrong' });
      assert.deepEqual([got.status, got.code], [401, 'unauthorized']);
    }
  });

  if (body !== undefined && body.schema.type !== 'array') {
    test(`${name} refuses unknown fields`, async () => {
      const closed = places(body.schema).filter(
        (place) => place.length === 1 || !isOpen(body.schema, place.slice(0, -1)),
      );
      assert.ok(closed.length > 0);
      for (const place of closed) {
        const wrong = [...place.slice(0, -1), misspelled(place.at(-1) ?? '')];
        const got = await send(target, { body: JSON.stringify(withField(example ?? {}, wrong, true)) });
        refused(got, `Did you mean \`${place.join('.')}\`?`, wrong.join('.'));
      }
      for (const unknown of ['__proto__', 'constructor', 'nonsense']) {
        const text = JSON.stringify(example ?? {}).replace(
          '{',
          `{"${unknown}":1${Object.keys(example ?? {}).length > 0 ? ',' : ''}`,
        );
        refused(await send(target, { body: text }), `There is no field "${unknown}"`, unknown);
      }
      const asForm = await send(target, { body: 'dryRun=true', type: 'application/x-www-form-urlencoded' });
      assert.deepEqual([asForm.status, asForm.code], [415, 'content_unsupported']);
      const asList = await send(target, { body: '[]' });
      assert.deepEqual([asList.status, asList.code], [400, 'body_invalid']);
    });
  }

  if (operation.requestBody === undefined && method !== 'GET') {
    test(`${name} accepts only an empty body`, async () => {
      refused(await send(target, { body: '{"dryRun":true}' }), 'There is no field "dryRun"', 'a field');
      for (const text of ['{', '[]', 'null', '"x"']) {
        const got = await send(target, { body: text });
        assert.deepEqual([got.status, got.code], [400, 'body_invalid'], text);
      }
      const plain = await send(target, {});
      assert.notEqual(plain.code, 'body_invalid');
      // Sent by `curl -X POST -d ''`, and by clients that send an object with every POST.
      for (const sent of [{ body: '', type: 'application/x-www-form-urlencoded' }, { body: '{}' }]) {
        const { status, code } = await send(target, sent);
        assert.deepEqual([status, code], [plain.status, plain.code], JSON.stringify(sent));
      }
    });
  }
}

for (const target of targets.filter(({ operation }) => LENIENT.includes(operation.operationId))) {
  test(`${target.operation.operationId} ignores unknown input`, async () => {
    const example = jsonBody(target)?.example as Json | undefined;
    const body = (fields: Json | undefined) => (target.method === 'GET' ? undefined : JSON.stringify(fields));
    const plain = await send(target, { body: body(example) });
    const more = await send(target, {
      query: 'formt=csv&nonsense=1&__proto__=2&nonsense=3',
      body: body({ ...example, nonsense: 1, constructor: 2 }),
    });
    assert.deepEqual(more, plain);
  });
}

test('receivers accept any query and any body', async () => {
  const inspector = (await service.call('POST', '/v1/inspectors')).body as { url: string };
  const { pathname } = new URL(inspector.url);
  const response = await fetch(`${service.url}${pathname}?nonsense=1`, { method: 'POST', body: '{"any":' });
  assert.equal(response.status, 204);
});

test('a misspelled `dryRun` never makes an actual change', async () => {
  const pushed = await service.call('POST', '/v1/workflows/people/push', [{ id: 1, name: 'Ada' }]);
  assert.equal(pushed.status, 200);
  const data = async () => (await service.call('GET', '/v1/workflows/people/data')).body;
  const before = await data();
  for (const wrong of ['dryrun', 'dry_run', 'DryRun', 'trial', '__proto__']) {
    const body = JSON.parse(`{"id":"1","${wrong}":true}`);
    const erased = await service.call('POST', '/v1/workflows/people/erase', body);
    assert.equal(erased.status, 400, wrong);
    const path = `/v1/workflows/made-by-mistake?${wrong}=true`;
    const made = await service.call('PUT', path, { source: { type: 'push' } });
    assert.equal(made.status, 400, wrong);
    const deleted = await service.call('DELETE', `/v1/workflows/people?${wrong}=true`);
    assert.equal(deleted.status, 400, wrong);
  }
  assert.deepEqual(await data(), before);
  assert.equal((await service.call('GET', '/v1/workflows/made-by-mistake')).status, 404);

  const dry = await service.call('POST', '/v1/workflows/people/erase', { id: '1', dryRun: true });
  assert.equal((dry.body as Json).dryRun, true);
  assert.deepEqual(await data(), before);

  const made = (await service.call('POST', '/v1/keys')).body as { key: Json; apiKey: string };
  const path = `/v1/keys/${made.key.id}`;
  for (const [method, target, body] of [
    ['POST', `${path}/rotate`, { overlapSecond: 60 }],
    ['POST', `${path}/rotate?overlapSeconds=60`, undefined],
    ['DELETE', `${path}?dryRun=true`, undefined],
    ['DELETE', path, { dryRun: true }],
  ] as const) {
    assert.equal((await service.call(method, target, body)).status, 400, `${method} ${target}`);
  }
  const still = await service.call('GET', '/v1/me', undefined, { 'x-api-key': made.apiKey });
  assert.equal(still.status, 200);
});

test('returns problem details to clients that accept them, except from the five operations', async () => {
  const ask = async (path: string, accept: string, method = 'GET') => {
    const response = await fetch(service.url + path, {
      method,
      headers: { accept, 'x-api-key': service.key },
    });
    const type = response.headers.get('content-type')?.split(';')[0];
    return {
      status: response.status,
      type,
      headers: response.headers,
      body: (await response.json()) as Json,
    };
  };
  const DETAILS = 'application/problem+json';
  for (const [path, status, code] of [
    ['/v1/workflows/unknown', 404, 'workflow_not_found'],
    ['/v1/jobs?status=failed', 400, 'field_invalid'],
    ['/v1/nothing', 404, 'route_not_found'],
  ] as const) {
    for (const accept of [DETAILS, `text/csv, ${DETAILS};q=0.5`, `application/json;q=0.9, ${DETAILS}`]) {
      const { type, headers, body, ...got } = await ask(path, accept);
      assert.deepEqual([got.status, type, headers.get('x-error-code')], [status, DETAILS, code], accept);
      const { title, detail, ...others } = body;
      const requestId = headers.get('x-request-id');
      assert.deepEqual(others, { type: `urn:flowhook:error:${code}`, status, code, requestId });
      const plain = await ask(path, '*/*');
      assert.deepEqual(plain.body, { error: detail });
      assert.ok(typeof title === 'string' && title !== '');
    }
    for (const accept of ['*/*', 'application/*', `${DETAILS};q=0`, `application/json, ${DETAILS}`]) {
      const { type, body } = await ask(path, accept);
      assert.deepEqual([type, Object.keys(body)], ['application/json', ['error']], accept);
    }
  }
  for (const [method, path] of [
    ['GET', '/v1/workflows/unknown/data'],
    ['POST', '/v1/workflows/unknown/queue'],
    ['GET', '/v1/integrations/webhooks/list?workflowId=unknown'],
    ['POST', '/v1/integrations/webhooks/subscribe'],
    ['DELETE', '/v1/integrations/webhooks/unsubscribe'],
    ['DELETE', '/v1/integrations/webhooks/unsubscribe/unknown'],
  ] as const) {
    const { type, body } = await ask(path, DETAILS, method);
    assert.deepEqual([type, Object.keys(body)], ['application/json', ['error']], path);
  }
});

test('problem details contain the job id', async () => {
  const { body } = await service.call('PUT', '/v1/workflows/paused', { source: { type: 'push' } });
  assert.equal((body as Json).message, 'Workflow created');
  const refused = await service.call('POST', '/v1/workflows/paused/push', [{ name: 'no id' }], {
    accept: 'application/problem+json',
  });
  const { status, code, jobId } = refused.body as Json;
  assert.deepEqual([refused.status, status, code], [422, 422, 'push_refused']);
  assert.equal(jobId, refused.headers.get('x-job-id'));
  assert.match(String(jobId), /^job_/);
});

test('an error about an invalid value of a parameter states its limits', async () => {
  for (const [path, sentence] of [
    [
      '/v1/workflows/people/changes?since=1&until=3728967440065038',
      '`until` must be a whole number from 0 to 999999999999999',
    ],
    [`/v1/workflows?q=${'x'.repeat(201)}`, '`q` must be text of at most 200 characters'],
    ['/v1/jobs?state=failed&state=dead', '`state` must not be empty or repeated'],
    ['/v1/jobs/job_01kadz8v3s7v0s8e1c3q5m2n4p/logs?format=xml', '`format` must be one of'],
    ['/v1/workflows/people/data?format=xml', '`format` must be one of'],
  ] as const) {
    const { status, headers, body } = await service.call('GET', path);
    assert.deepEqual([status, headers.get('x-error-code')], [400, 'field_invalid'], path);
    assert.ok(String((body as Json).error).includes(sentence), `${path}: ${JSON.stringify(body)}`);
  }
  const stream = { accept: 'text/event-stream' };
  const jobs = (await service.call('GET', '/v1/jobs')).body as { jobs: { id: string }[] };
  const logs = `/v1/jobs/${jobs.jobs[0]?.id}/logs`;
  const limited = await service.call('GET', `${logs}?limit=1`, undefined, stream);
  assert.deepEqual(
    [limited.status, (limited.body as Json).error],
    [
      400,
      'The query parameter `limit` cannot be used with a stream, which continues until the job ends: omit it',
    ],
  );
  const named = await service.call('GET', `${logs}?limit=1&format=json`, undefined, stream);
  assert.deepEqual(
    [named.status, named.headers.get('content-type')],
    [200, 'application/json; charset=utf-8'],
  );
  const sample = await service.call('GET', '/v1/samples/job.finishd');
  assert.deepEqual(
    [sample.status, (sample.body as Json).error],
    [404, '"job.finishd" never fires here; did you mean "job.finished"?'],
  );
});

test('the contract’s operations keep their statuses, and others use more precise ones', async () => {
  const large = `{"x":"${'x'.repeat(70_000)}"}`;
  const subscribe = '/v1/integrations/webhooks/subscribe';
  const { body } = await service.call('POST', '/v1/keys', { scopes: ['read'] });
  const reader = (body as { apiKey: string }).apiKey;
  for (const [path, sent, expected] of [
    [subscribe, { body: large }, [400, 'body_too_large']],
    [subscribe, { body: '{}', type: 'text/plain' }, [400, 'content_unsupported']],
    [subscribe, { body: '{}', key: reader }, [401, 'scope_missing']],
    ['/v1/integrations/webhooks', { body: large }, [413, 'body_too_large']],
    ['/v1/integrations/webhooks', { body: '{}', type: 'text/plain' }, [415, 'content_unsupported']],
    ['/v1/integrations/webhooks', { body: '{}', key: reader }, [403, 'scope_missing']],
  ] as const) {
    const target = targets.find((one) => one.method === 'POST' && one.path === path) as Target;
    const { status, code } = await send(target, sent);
    assert.deepEqual([status, code], expected, path);
  }
});

test('an error about a body field in the query, or the reverse, says where it belongs', async () => {
  const erase = targets.find(({ operation }) => operation.operationId === 'erasePerson') as Target;
  const inQuery = await send(erase, { query: 'dryRun=true', body: '{"id":"1"}' });
  refused(inQuery, 'It is a field of the JSON body', 'dryRun in the query of erase');
  const put = targets.find(({ operation }) => operation.operationId === 'putWorkflow') as Target;
  const inBody = await send(put, { body: '{"source":{"type":"push"},"dryRun":true}' });
  refused(inBody, 'It is a query parameter: ?dryRun=…', 'dryRun in the body of PUT');
});

/** Whether objects at this path may have fields that the schema does not name. */
function isOpen(
  schema: Schema & { additionalProperties?: unknown },
  [first, ...rest]: readonly string[],
): boolean {
  if (first === undefined) return schema.additionalProperties !== false;
  const below = [schema, ...(schema.oneOf ?? [])].flatMap(({ properties = {} }) => properties[first] ?? []);
  return below[0] === undefined || isOpen(below[0], rest);
}
