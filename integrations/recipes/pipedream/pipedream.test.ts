/** The components for Pipedream, called as Pipedream calls them. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { until } from '../../../test/support/until.ts';
import { KEY, PEOPLE, type Service, startService } from '../service.ts';

interface Component {
  props: Record<string, { options?: (context: object) => Promise<unknown> }>;
  methods: object;
  hooks?: { activate(): Promise<void>; deactivate(): Promise<void> };
  run(event: object): Promise<unknown>;
}

// Pipedream requires JavaScript, so the types of the components are declared here.
const components = await Promise.all(
  ['flowhook-events', 'flowhook-run-workflow'].map((name) => import(`./${name}.mjs`)),
);
const [source, action] = components.map((module): Component => module.default);

let service: Service;
before(async () => {
  service = await startService();
});
after(() => service?.stop());

test('the source subscribes, emits each signed event once, and leaves no webhook behind', async (t) => {
  assert.ok(source?.hooks);
  const emitted: { body: { type: string }; id: string }[] = [];
  let last: { headers: IncomingHttpHeaders; bodyRaw: string } | undefined;
  const respond = async (headers: IncomingHttpHeaders, bodyRaw: string) => {
    const answered: number[] = [];
    const http = { ...component.http, respond: ({ status }: { status: number }) => answered.push(status) };
    await source.run.call({ ...component, http }, { headers, bodyRaw, body: JSON.parse(bodyRaw) });
    return answered[0] ?? 500;
  };
  const endpoint = createServer(async (request, response) => {
    last = { headers: request.headers, bodyRaw: await text(request) };
    response.writeHead(await respond(last.headers, last.bodyRaw)).end();
  });
  await once(endpoint.listen(0, '127.0.0.1'), 'listening');
  t.after(() => {
    endpoint.close();
    endpoint.closeAllConnections();
  });

  const kept = new Map<string, unknown>();
  const component = {
    ...source.methods,
    url: `${service.url}/`,
    apiKey: KEY,
    workflowId: 'people',
    events: ['workflow_finished', 'workflow_failed'],
    http: { endpoint: `http://127.0.0.1:${(endpoint.address() as AddressInfo).port}/` },
    db: {
      get: (name: string) => kept.get(name),
      set: (name: string, value: unknown) => kept.set(name, value),
    },
    // This is what `dedupe: unique` does.
    $emit: (body: { type: string }, { id }: { id: string }) => {
      if (!emitted.some((one) => one.id === id)) emitted.push({ body, id });
    },
  };
  assert.deepEqual(await source.props.workflowId?.options?.call(component, {}), {
    options: ['broken', 'held', 'People', 'pushed'].map((label) => ({ label, value: label.toLowerCase() })),
    context: { cursor: undefined },
  });
  const events = (await source.props.events?.options?.call(component, {})) as string[];
  assert.ok(events.includes('workflow_data_change'), String(events));

  await source.hooks.activate.call(component);
  await source.hooks.activate.call(component);
  assert.deepEqual(await service.webhooks(), [component.http.endpoint]);
  await service.ask('POST', '/v1/workflows/people/queue');
  await until('the end of the job', () => emitted.length > 0);
  assert.deepEqual(
    emitted.map(({ body }) => body.type),
    ['workflow_finished'],
  );

  assert.ok(last);
  assert.equal(
    await respond(last.headers, last.bodyRaw.replace('workflow_finished', 'workflow_failed')),
    401,
  );
  assert.equal(await respond({ ...last.headers, 'webhook-timestamp': '1' }, last.bodyRaw), 401);
  assert.equal(await respond(last.headers, last.bodyRaw), 200);
  assert.equal(emitted.length, 1);

  await source.hooks.deactivate.call(component);
  await source.hooks.deactivate.call(component);
  assert.deepEqual(await service.webhooks(), []);
});

test('the action runs a workflow and returns its records, or says why not', async () => {
  assert.ok(action);
  const run = (workflowId: string, within = 240, limit = 1000) => {
    const settings = { url: service.url, apiKey: KEY, workflowId, within, limit };
    const $ = { export: (_name: string, text: string) => said.push(text) };
    return action.run.call({ ...action.methods, ...settings }, { $ }) as Promise<{ records: unknown[] }>;
  };
  const said: string[] = [];
  assert.deepEqual((await run('people', 240, 2)).records, PEOPLE.slice(0, 2));
  assert.deepEqual(said, ['2 of 3 records of people']);
  await assert.rejects(run('broken'), /failed: .*the disk is full/s);
  await assert.rejects(run('un/known'), /No workflow found/);
  await assert.rejects(run('held', 0), /has not ended within 0 s/);
  await service.open();
  assert.deepEqual((await run('held')).records, [{ id: '1' }]);
});
