/** The app for Make: its blocks are evaluated, and their requests are sent to a real service. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { KEY, PEOPLE, type Service, startService } from '../service.ts';

// biome-ignore lint/suspicious/noExplicitAny: blocks of Make and responses, which the tests check
type Any = any;

const app: Any = JSON.parse(await readFile(join(import.meta.dirname, 'app.json'), 'utf8'));
const HOOK = 'http://127.0.0.1:9/make/hook?of=this&scenario=1';
let service: Service;
let connection: { url: string; apiKey: string };
before(async () => {
  service = await startService();
  connection = { url: service.url, apiKey: KEY };
});
after(() => service?.stop());

test('a connection is tried with the key, and a wrong one says why', async () => {
  const { metadata } = await perform(app.connection.communication, { parameters: connection });
  assert.equal(metadata.value, 'default');
  const wrong = perform(app.connection.communication, { parameters: { ...connection, apiKey: 'wrong' } });
  await assert.rejects(wrong, /^Error: \[401\] /);
});

test('a webhook is attached once, even if repeated, and detached completely', async () => {
  const parameters = { workflowId: 'people', events: ['workflow_finished', 'workflow_failed'] };
  const { data } = await perform(app.webhook.attach, { connection, parameters, webhook: { url: HOOK } });
  const again = await perform(app.webhook.attach, { connection, parameters, webhook: { url: HOOK } });
  assert.match(data.externalHookId, /^wh_/);
  assert.deepEqual(again.data, data);
  assert.deepEqual(await service.webhooks(), [HOOK]);
  await perform(app.webhook.detach, { connection, webhook: { url: HOOK, ...data } });
  assert.deepEqual(await service.webhooks(), []);
});

test('every event in the list is an event type of the service', async () => {
  const chosen = app.webhook.parameters[1].options.map(({ value }: Any) => value);
  for (const type of chosen) {
    const [sample] = await service.ask('GET', `/v1/samples/${type}`);
    assert.equal(sample.type, type);
    const output: Any = evaluate(app.webhook.communication.output, { body: sample });
    for (const { name } of app.modules.watchEvents.interface) assert.ok(name in output, `${type}: ${name}`);
  }
});

test('a job is queued and its records are read, and a second job is refused with an error message', async () => {
  const { queueJob, getRecords } = app.modules;
  const workflows = await perform(app.rpcs.listWorkflows, { connection });
  assert.ok(workflows.output.some(({ label, value }: Any) => label === 'People' && value === 'people'));

  await service.run();
  const limited = await perform(getRecords.communication, {
    connection,
    parameters: { workflowId: 'people', limit: 2 },
  });
  assert.deepEqual(limited.output, PEOPLE.slice(0, 2));

  const held = { connection, parameters: { workflowId: 'held' } };
  const { output: job } = await perform(queueJob.communication, held);
  assert.equal(job.workflowId, 'held');
  for (const { name } of queueJob.interface) assert.ok(name in job, name);
  await assert.rejects(
    perform(queueJob.communication, held),
    /\[400\] A job is already queued for this workflow/,
  );
  const unknown = { connection, parameters: { workflowId: 'un/known' } };
  await assert.rejects(perform(queueJob.communication, unknown), /\[404\] No workflow found/);
});

/** What Make does with one request or several requests in order, as far as this app needs it. */
async function perform(block: Any, variables: Record<string, Any>): Promise<Any> {
  let last: Any;
  for (const request of [block].flat()) {
    const url = evaluate(request.url, variables, encodeURIComponent) as string;
    const isWhole = request.url.startsWith('{{');
    const base = isWhole ? {} : app.base;
    const target = new URL(
      isWhole
        ? request.url.replace(/^\{\{.*?\}\}/, variables.parameters.url)
        : variables.connection.url + url,
    );
    for (const [name, value] of Object.entries(evaluate(request.qs ?? {}, variables) as object)) {
      target.searchParams.set(name, String(value));
    }
    const headers = evaluate({ ...base.headers, ...request.headers }, variables) as Record<string, string>;
    const body = request.body === undefined ? undefined : JSON.stringify(evaluate(request.body, variables));
    const answer = await fetch(target, {
      method: request.method ?? 'GET',
      headers: body === undefined ? headers : { ...headers, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body }),
    });
    const found: Record<string, Any> = { ...variables, statusCode: answer.status, body: await answer.json() };
    const response = { ...base.response, ...request.response };
    if (!answer.ok) throw new Error(String(evaluate(response.error.message, found)));
    const items = response.iterate === undefined ? undefined : (evaluate(response.iterate, found) as Any[]);
    const output = response.output ?? (items === undefined ? '{{body}}' : '{{item}}');
    last = {
      output: items?.map((item) => evaluate(output, { ...found, item })) ?? evaluate(output, found),
      data: evaluate(response.data ?? {}, found),
      metadata: evaluate(response.metadata ?? {}, found),
    };
  }
  return last;
}

/** A template that is one expression keeps the type of its value; within other text it becomes text. */
function evaluate(
  template: unknown,
  variables: Record<string, Any>,
  encode = (text: string) => text,
): unknown {
  if (Array.isArray(template)) return template.map((one) => evaluate(one, variables));
  if (typeof template === 'object' && template !== null) {
    return Object.fromEntries(
      Object.entries(template).map(([name, one]) => [name, evaluate(one, variables)]),
    );
  }
  if (typeof template !== 'string') return template;
  const whole = /^\{\{([^}]+)\}\}$/.exec(template)?.[1];
  if (whole !== undefined) return expression(whole, variables);
  return template.replace(/\{\{([^}]+)\}\}/g, (_, inner: string) =>
    encode(String(expression(inner, variables) ?? '')),
  );
}

const FUNCTIONS: Record<string, (...given: Any[]) => unknown> = {
  first: (list) => list?.[0],
  map: (list, name, filter, value) =>
    list.filter((one: Any) => one[filter] === value).map((one: Any) => one[name]),
};

/** Paths, texts in quotes, and calls of the functions above. */
function expression(source: string, variables: Record<string, Any>): Any {
  const text = source.trim();
  const call = /^(\w+)\((.*)\)$/.exec(text);
  if (call) {
    const [, name = '', inner = ''] = call;
    const made = FUNCTIONS[name];
    assert.ok(made, `The test does not know the function ${name}`);
    const given = inner.match(/\w+\([^)]*\)|[^,]+/g) ?? [];
    return made(...given.map((one) => expression(one, variables)));
  }
  const quoted = /^'(.*)'$/.exec(text);
  if (quoted) return quoted[1];
  return text.split('.').reduce((value, name) => value?.[name], variables as Any);
}
