/** The Helm chart, rendered by Helm: Kubernetes accepts its objects, and the service runs with their settings. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { readConfig } from '../../src/config/config.ts';
import {
  environmentOf,
  objectNamed,
  objectsOf,
  type Rendered,
  render,
  writeWorkflows,
} from '../support/chart/rendered.ts';
import { type ChartTools, chartTools, KUBERNETES } from '../support/chart/tools.ts';
import { makeDatabase } from '../support/postgres.ts';
import { startReceiver } from '../support/receiver.ts';
import { type ServerProcess, startServerProcess } from '../support/server-process.ts';
import { until } from '../support/until.ts';

const run = promisify(execFile);
const PROGRAM = join(import.meta.dirname, '../../bin/flowhook.js');
const KEY = 'key-of-the-cluster-in-this-test';
const found = await chartTools();
const skip = typeof found === 'string' ? found : false;
const tools = found as ChartTools;

const WORKFLOWS = {
  files: {
    'default/people.yaml': `source: { type: command, command: [printf, '{"id":1,"name":"Ada"}\\n'] }\n`,
  },
};
const PEER = { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'ingress-nginx' } } };
const OPTIONAL = {
  image: { repository: 'registry.example.com/flowhook', tag: '0.1.0-3' },
  database: { secretName: 'pg-app', secretKey: 'uri' },
  settings: { trustProxy: '10.0.0.0/8', dashboard: false, drainSeconds: 120, keepJobs: 1_000_000 },
  env: [
    {
      name: 'FLOWHOOK_SECRET__DEFAULT__TOKEN',
      valueFrom: { secretKeyRef: { name: 'tokens', key: 'token' } },
    },
  ],
  volumes: [{ name: 'ca', secret: { secretName: 'ca' } }],
  volumeMounts: [{ name: 'ca', mountPath: '/ca', readOnly: true }],
  workflows: { ...WORKFLOWS, prune: true },
  pod: { imagePullSecrets: [{ name: 'registry' }] },
  api: { autoscaling: { maxReplicas: 4 } },
  worker: { pod: { nodeSelector: { pool: 'workers' } } },
  service: { type: 'LoadBalancer', port: 8080, annotations: { 'example.com/a': 'b' } },
  ingress: {
    host: 'flowhook.example.com',
    className: 'nginx',
    tlsSecretName: 'tls',
    annotations: { a: 'b' },
  },
  networkPolicy: {
    enabled: true,
    clients: [PEER],
    scrapers: [PEER],
    egress: [{ to: [{ ipBlock: { cidr: '0.0.0.0/0' } }] }],
  },
  podMonitor: { enabled: true, labels: { release: 'prometheus' } },
};
const SETS = {
  'the defaults': {},
  'every value': OPTIONAL,
  SQLite: { database: { kind: 'sqlite' } },
  'SQLite with every value': {
    ...OPTIONAL,
    database: { kind: 'sqlite', volume: { storageClassName: 'fast' } },
  },
};

for (const [name, values] of Object.entries(SETS)) {
  test(`Helm and kubeconform accept ${name}`, { skip }, async () => {
    for (const version of KUBERNETES) {
      const location = join(tools.schemas[version], '{{ .ResourceKind }}{{ .KindSuffix }}.json');
      const args = ['-strict', '-summary', '-output', 'json', '-schema-location', location];
      const checked = run(tools.kubeconform, args);
      const text = await render(tools, values, version);
      checked.child.stdin?.end(text);
      const { resources = [], summary } = JSON.parse((await checked.catch((error) => error)).stdout);
      assert.deepEqual(resources, []);
      assert.equal(summary.valid, objectsOf(text).length);
      assert.equal(summary.skipped, 0);
    }
  });
}

test('Helm lint finds no mistake', { skip }, async () => {
  const chart = join(import.meta.dirname, '../../deploy/helm/flowhook');
  await run(tools.helm, ['lint', '--strict', '--kube-version', KUBERNETES[1], chart]);
});

test('a mistake in the values is refused with its place', { skip }, async () => {
  for (const [values, message] of [
    [{ settings: { publicURL: 'https://example.com' } }, /'\/settings': additional properties 'publicURL'/],
    [{ database: { kind: 'mysql' } }, /'\/database\/kind': value must be one of 'postgres', 'sqlite'/],
    [{ api: { replicas: 'two' } }, /'\/api\/replicas': got string, want integer/],
    [
      { workflows: { files: { 'people.yaml': '' } } },
      /'\/workflows\/files': additional properties 'people.yaml'/,
    ],
  ] as const) {
    await assert.rejects(render(tools, values), message);
  }
});

test('values become environment variables as the service reads them', { skip }, async () => {
  const objects = objectsOf(await render(tools, OPTIONAL));
  const url = 'postgres://flowhook@pg/flowhook';
  const key = 'ab'.repeat(32);
  const secrets = { flowhook: { 'encryption-key': key }, 'pg-app': { uri: url }, tokens: { token: 't' } };
  const worker = objectNamed(objects, 'Deployment', 'flowhook-worker');
  const environment = environmentOf(worker, secrets);
  assert.deepEqual(environment, {
    FLOWHOOK_DATA: '/data/flowhook',
    FLOWHOOK_ROLE: 'worker',
    FLOWHOOK_DATABASE: url,
    FLOWHOOK_ENCRYPTION_KEY: key,
    FLOWHOOK_PUBLIC_URL: 'https://flowhook.example.com',
    FLOWHOOK_DASHBOARD: 'off',
    FLOWHOOK_DRAIN_DELAY_SECONDS: '5',
    FLOWHOOK_DRAIN_SECONDS: '120',
    FLOWHOOK_KEEP_JOBS: '1000000',
    FLOWHOOK_TRUST_PROXY: '10.0.0.0/8',
    FLOWHOOK_SECRET__DEFAULT__TOKEN: 't',
  });
  const { drainSeconds } = readConfig({}, environment);
  assert.equal(worker.spec.template.spec.terminationGracePeriodSeconds, drainSeconds + 15);
});

test('a job queued at the api runs on the worker, and the sender delivers its webhook', {
  skip,
}, async (t) => {
  const database = await makeDatabase();
  t.after(() => database.drop());
  const secrets = {
    flowhook: { 'database-url': database.url, 'encryption-key': 'ab'.repeat(32), 'bootstrap-key': KEY },
  };
  const settings = {
    publicUrl: 'https://flowhook.example.com',
    allowNetworks: 'loopback',
    drainDelaySeconds: 0,
  };
  const objects = objectsOf(await render(tools, { settings, workflows: WORKFLOWS }));
  const node = (role: string) =>
    startPod(t, objectNamed(objects, 'Deployment', `flowhook-${role}`), objects, secrets);

  const job = (name: string) => runPod(t, objectNamed(objects, 'Job', `flowhook-${name}`), objects, secrets);

  // Helm does not wait for the pods before it starts the Job, so both create the tables.
  const [api] = await Promise.all([node('api'), job('apply')]);
  await job('migrate');
  const receiver = await startReceiver();
  t.after(() => receiver.stop());
  const call = async (method: string, path: string, body?: object) => {
    const headers = { 'x-api-key': KEY, 'content-type': 'application/json' };
    const response = await fetch(api.url + path, { method, headers, body: JSON.stringify(body) });
    assert.equal(response.status, 200, path);
    return response;
  };
  await call('POST', '/v1/integrations/webhooks/subscribe', {
    workflowId: 'people',
    webhookUrl: receiver.url,
    events: ['workflow_finished'],
  });
  const id = (await call('POST', '/v1/workflows/people/queue')).headers.get('x-job-id');
  const state = async () => ((await (await call('GET', `/v1/jobs/${id}`)).json()) as { state: string }).state;
  assert.equal(await state(), 'queued');

  const worker = await node('worker');
  await until('the end of the job', async () => (await state()) === 'finished');
  assert.deepEqual(await (await call('GET', '/v1/workflows/people/data')).json(), [{ id: '1', name: 'Ada' }]);
  assert.deepEqual(receiver.received, []);

  const sender = await node('sender');
  await receiver.until((received) => received.length === 1, 'the delivery');
  for (const each of [sender, worker, api]) {
    const scrape = (headers: Record<string, string>) => fetch(`${each.url}/metrics`, { headers });
    assert.equal((await scrape({})).status, 401);
    assert.equal((await scrape({ authorization: `Bearer ${KEY}` })).status, 200);
    assert.equal(await each.stop(), 0);
  }
});

test('on SQLite, the only node applies the workflow files, and needs no encryption key in the Secret', {
  skip,
}, async (t) => {
  const objects = objectsOf(await render(tools, { database: { kind: 'sqlite' }, workflows: WORKFLOWS }));
  const secrets = { flowhook: { 'bootstrap-key': KEY } };
  const server = await startPod(t, objectNamed(objects, 'StatefulSet', 'flowhook'), objects, secrets);
  const queued = await fetch(`${server.url}/v1/workflows/people/queue`, {
    method: 'POST',
    headers: { 'x-api-key': KEY },
  });
  assert.equal(queued.status, 200);
});

type Secrets = Record<string, Record<string, string>>;

/** The environment of a pod on this machine, and its working directory with the workflow files. */
async function placeOf(t: TestContext, pod: Rendered, objects: readonly Rendered[], secrets: Secrets) {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-pod-'));
  t.after(() => rm(directory, { recursive: true, force: true }));
  await writeWorkflows(pod, objects, directory);
  return { directory, env: { ...environmentOf(pod, secrets), FLOWHOOK_DATA: join(directory, 'data') } };
}

/** Starts the container of a pod. Resolves when its startup and readiness probes succeed. */
async function startPod(
  t: TestContext,
  pod: Rendered,
  objects: readonly Rendered[],
  secrets: Secrets,
): Promise<ServerProcess> {
  const { directory, env } = await placeOf(t, pod, objects, secrets);
  const [container] = pod.spec.template.spec.containers;
  assert.deepEqual(container.args, ['serve']);
  const server = await startServerProcess(env, { directory });
  t.after(() => server.kill());
  for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe'] as const) {
    const { path } = container[probe].httpGet;
    await until(path, async () => (await fetch(server.url + path)).status === 200);
  }
  return server;
}

/** Runs the container of a Job. @throws Error unless it succeeds */
async function runPod(
  t: TestContext,
  job: Rendered,
  objects: readonly Rendered[],
  secrets: Secrets,
): Promise<void> {
  const { directory, env } = await placeOf(t, job, objects, secrets);
  const { args } = job.spec.template.spec.containers[0];
  const { PATH = '' } = process.env;
  await run(process.execPath, [PROGRAM, ...args], { cwd: directory, env: { PATH, ...env } });
}
