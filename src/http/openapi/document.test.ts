/** The OpenAPI document: up to date, complete, in plain English, and as the contract says for the frozen operations. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { createSchemaCheck } from '../../../test/support/api/json-schema.ts';
import { routes } from '../routes.ts';
import { openApiText } from './document.ts';
import { schemas } from './schemas.ts';

type Json = Record<string, unknown>;

interface Described {
  operationId: string;
  summary: string;
  tags: string[];
  parameters?: {
    name: string;
    in: string;
    required?: boolean;
    description: string;
    schema: object;
    example?: unknown;
  }[];
  requestBody?: { content: Record<string, { schema: Json; example?: unknown }> };
  responses: Record<
    string,
    {
      description: string;
      headers?: Record<string, object>;
      content?: Record<string, { schema: Json; example?: unknown }>;
    }
  >;
  security: object[];
}
const document = JSON.parse(openApiText) as {
  info: { title: string; version: string; description: string };
  servers: object[];
  tags: { name: string; description: string }[];
  paths: Record<string, Record<string, Described>>;
  components: {
    schemas: Record<
      string,
      { properties: Record<string, unknown>; required?: string[]; examples?: unknown[] }
    >;
    responses: Record<string, Described['responses'][string]>;
  };
};
const operations = Object.values(document.paths).flatMap((path) => Object.values(path));
// Replaces references to shared responses by the responses.
for (const { responses } of operations) {
  for (const [status, one] of Object.entries(responses)) {
    const [, shared] = /^#\/components\/responses\/(\w+)$/.exec(String((one as Json).$ref)) ?? [];
    if (shared !== undefined)
      responses[status] = document.components.responses[shared] ?? assert.fail(shared);
  }
}

test('openapi.json is up to date with the routes: run `npm run openapi` when this fails', () => {
  const stored = readFileSync(join(import.meta.dirname, '../../../openapi.json'), 'utf8');
  assert.equal(stored, openApiText);
});

test('every route has an operation with a unique ID', () => {
  assert.equal(operations.length, routes.length);
  assert.equal(new Set(operations.map((one) => one.operationId)).size, routes.length);
});

test('every reference names an existing schema', () => {
  for (const [, name] of openApiText.matchAll(/"#\/components\/schemas\/(\w+)"/g)) {
    assert.ok(name !== undefined && name in document.components.schemas, `${name}`);
  }
});

test('exactly the parameters in a path are described as path parameters', () => {
  for (const [path, methods] of Object.entries(document.paths)) {
    const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
    for (const { parameters = [], operationId } of Object.values(methods)) {
      const described = parameters.filter((one) => one.in === 'path');
      assert.deepEqual(
        described.map((one) => one.name),
        inPath,
        operationId,
      );
      assert.ok(
        described.every((one) => one.required === true),
        operationId,
      );
    }
  }
});

test('every parameter and response has a description and a schema', () => {
  for (const [path, methods] of Object.entries(document.paths)) {
    for (const [method, { operationId, summary, parameters = [], requestBody, responses }] of Object.entries(
      methods,
    )) {
      assert.ok(summary.length > 0, operationId);
      for (const one of parameters) {
        assert.ok(one.description.length > 0 && one.schema !== undefined, `${operationId} ${one.name}`);
      }
      const names = parameters.map(({ name, in: place }) => `${place} ${name}`);
      assert.equal(new Set(names).size, names.length, `${operationId} has a parameter twice`);
      for (const [type, { schema }] of Object.entries(requestBody?.content ?? {})) {
        assert.ok(schema !== undefined && method !== 'get', `${operationId} ${type}`);
      }
      assert.ok('200' in responses, path);
      for (const [status, { description, content = {} }] of Object.entries(responses)) {
        assert.ok(description.length > 0, `${operationId} ${status}`);
        const schemas = Object.values(content).map(({ schema }) => schema);
        assert.ok(
          schemas.every((schema) => schema !== undefined),
          `${operationId} ${status}`,
        );
        assert.ok(
          ['204', '304'].includes(status) || schemas.length > 0,
          `${operationId} ${status} has no schema`,
        );
      }
    }
  }
});

test('every enum, const and parameter has a type for client generators', () => {
  const untyped: string[] = [];
  const look = (part: unknown, path: string): void => {
    if (typeof part !== 'object' || part === null || path.endsWith('/example')) return;
    if (('enum' in part || 'const' in part) && !('type' in part)) untyped.push(path);
    for (const [name, one] of Object.entries(part)) look(one, `${path}/${name}`);
  };
  look(document.paths, '');
  look(document.components.schemas, '');
  assert.deepEqual(untyped, []);
  for (const { operationId, parameters = [] } of operations) {
    for (const { name, schema } of parameters) assert.ok('type' in schema, `${operationId} ${name}`);
  }
});

/** Visits every schema of the document, at any depth, with its path. */
function everySchema(visit: (schema: Json, path: string) => void): void {
  const look = (part: unknown, path: string): void => {
    if (typeof part !== 'object' || part === null || /\/(?:example|examples|default|enum)$/.test(path))
      return;
    visit(part as Json, path);
    for (const [name, one] of Object.entries(part)) look(one, `${path}/${name}`);
  };
  look(document.paths, '');
  look(document.components.schemas, '');
}

test('every integer has 64 bits for client generators', () => {
  const narrow: string[] = [];
  everySchema(({ type, format }, path) => {
    if ([type].flat().includes('integer') && format !== 'int64') narrow.push(path);
  });
  assert.deepEqual(narrow, []);
});

test('every object schema has a name for client generators', () => {
  const nameless: string[] = [];
  everySchema(({ properties, type }, path) => {
    const isSchema = typeof properties === 'object' && type !== undefined && !path.endsWith('/properties');
    if (isSchema && !/^\/\w+$/.test(path)) nameless.push(path);
  });
  assert.deepEqual(nameless, []);
});

test('every response has a request ID, and every error a code', () => {
  for (const { operationId, responses } of operations) {
    for (const [status, { headers = {} }] of Object.entries(responses)) {
      assert.ok('x-request-id' in headers, `${operationId} ${status}`);
      assert.equal('x-error-code' in headers, Number(status) >= 400, `${operationId} ${status}`);
    }
    for (const status of SHARED) assert.ok(status in responses, `${operationId} ${status}`);
  }
  assert.ok('allow' in (document.components.responses.MethodNotAllowed?.headers ?? {}));
});

test('every parameter, request and response has an example that matches its schema', () => {
  const check = createSchemaCheck(document);
  const look = (schema: object, example: unknown, where: string): void => {
    assert.notEqual(example, undefined, `${where} has none`);
    assert.equal(check(schema, example), undefined, where);
  };
  for (const [name, schema] of Object.entries(document.components.schemas)) {
    if (name in schemas) assert.notEqual(schema.examples?.length ?? 0, 0, name);
    for (const example of schema.examples ?? []) look(schema, example, name);
  }
  for (const { operationId, parameters = [], requestBody, responses } of operations) {
    for (const { name, schema, example } of parameters) look(schema, example, `${operationId} ${name}`);
    for (const { content = {} } of [requestBody ?? {}, responses[200] ?? {}]) {
      for (const [type, { schema, example }] of Object.entries(content)) {
        look(schema, example, `${operationId} ${type}`);
      }
    }
  }
});

/** A first word that refers to something else, or only `The` and the name of the field. */
const WEAK =
  /^(?:as|at|by|for|from|how|if|in|its?|of|on|such|that|their|them|these|they|this|those|to|what|when|where|which|whose|why|with|without)\b|^the \S+(?: id)?\.?$/i;

/** Descriptions and summaries that say nothing on their own, with their paths. */
function weakDescriptions(part: unknown, path = ''): string[] {
  if (typeof part !== 'object' || part === null || /\/(?:example|examples|default)$/.test(path)) return [];
  return Object.entries(part).flatMap(([name, one]) => {
    const isProse = (name === 'description' || name === 'summary') && typeof one === 'string';
    if (!isProse) return weakDescriptions(one, `${path}/${name}`);
    return WEAK.test(one) ? [`${path}: ${one}`] : [];
  });
}

test('descriptions begin with a noun or a verb and say more than the name of their field', () => {
  assert.deepEqual(weakDescriptions(document), []);
});

test('finds descriptions that begin with a pronoun or a preposition, or only name their field', () => {
  const properties = {
    since: { description: 'Of this time or later' },
    state: { description: 'It is kept' },
    command: { description: 'The command' },
    jobId: { description: 'The job ID' },
    description: { description: 'Only jobs of this workflow' },
    total: { description: 'The number of records in the version', example: { description: 'Of the job' } },
  };
  assert.deepEqual(weakDescriptions({ properties }), [
    '/properties/since: Of this time or later',
    '/properties/state: It is kept',
    '/properties/command: The command',
    '/properties/jobId: The job ID',
  ]);
});

test('the document has a title, a server and described tags, and summaries are short and imperative', () => {
  const { info, servers, tags } = document;
  assert.equal(info.title, 'Flowhook API');
  assert.ok(servers.length > 0 && info.description.length > 0);
  for (const { name, description } of tags) assert.ok(description.length > 0, name);
  const known = tags.map(({ name }) => name);
  for (const { operationId, summary, tags: used } of operations) {
    assert.ok(
      used.every((name) => known.includes(name)),
      operationId,
    );
    assert.match(summary, /^[A-Z][a-z]*[a-rt-z](?: \S+){1,8}(?<!\.)$/, `${operationId}: ${summary}`);
  }
});

/** The errors that any operation may return. */
const SHARED = ['429', '500', '503'];
/** Part 1 of the contract, with 401 on all five (Part 2, number 1). */
const FROZEN = [
  // 400 and 416 are returned only for parameters and headers beyond the contract.
  { method: 'get', path: '/v1/workflows/{workflowId}/data', statuses: ['200', '400', '401', '404', '416'] },
  { method: 'post', path: '/v1/workflows/{workflowId}/queue', statuses: ['200', '400', '401', '404'] },
  { method: 'get', path: '/v1/integrations/webhooks/list', statuses: ['200', '400', '401', '404'] },
  { method: 'post', path: '/v1/integrations/webhooks/subscribe', statuses: ['200', '400', '401', '404'] },
  { method: 'delete', path: '/v1/integrations/webhooks/unsubscribe', statuses: ['200', '400', '401', '404'] },
];

for (const { method, path, statuses } of FROZEN) {
  test(`${method.toUpperCase()} ${path} matches the contract`, () => {
    const operation = document.paths[path]?.[method];
    assert.ok(operation);
    assert.deepEqual(Object.keys(operation.responses), [...statuses, ...SHARED]);
    assert.deepEqual(operation.security, [{ apiKey: [] }]);
    // Nothing beyond the contract may be required.
    const required = (operation.parameters ?? []).filter((one) => one.required === true);
    assert.deepEqual(
      required.map((one) => one.name),
      path.includes('{workflowId}') ? ['workflowId'] : [],
    );
    for (const [status, { content }] of Object.entries(operation.responses)) {
      const schema = content?.['application/json']?.schema ?? {};
      if (status !== '200') assert.deepEqual(schema, { $ref: '#/components/schemas/Error' });
      else if (method !== 'get') assert.deepEqual(schema, { $ref: '#/components/schemas/Message' });
    }
  });
}

test('the schemas match the contract', () => {
  const { Error: error, Message: message, Record: record, Webhook: webhook } = document.components.schemas;
  assert.deepEqual(Object.keys(error?.properties ?? {}), ['error']);
  assert.deepEqual(Object.keys(message?.properties ?? {}), ['message']);
  assert.deepEqual(Object.keys(record?.properties ?? {}), ['id', 'name', 'email']);
  assert.equal(record?.required, undefined);
  assert.deepEqual(Object.keys(webhook?.properties ?? {}), ['id', 'createdAt', 'url', 'events']);
  const body = document.paths['/v1/integrations/webhooks/subscribe']?.post?.requestBody;
  assert.equal(
    body?.content['application/json']?.schema.$ref,
    '#/components/schemas/SubscribeWebhookRequest',
  );
  const { SubscribeWebhookRequest: subscribe } = document.components.schemas;
  assert.deepEqual(subscribe?.required, ['workflowId', 'webhookUrl', 'events']);
  assert.equal(document.info.version, '1.0.0');
});
