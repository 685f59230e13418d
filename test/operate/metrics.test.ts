/** The metrics of a service, and the Grafana dashboard and alerts that use them. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { parse } from 'yaml';
import { Flowhook } from '../../client/src/flowhook-client.ts';
import { listBackups } from '../../src/store/backup-files.ts';
import { mintKey } from '../../src/teams/keys.ts';
import { sendBytes } from '../support/net/wire.ts';
import { parseExposition } from '../support/observe/prometheus-text.ts';
import { type Reading, readExpression } from '../support/observe/promql.ts';
import { amountOf, type Families, scrape, scrapeUntil } from '../support/observe/scrape.ts';
import { startReceiver } from '../support/receiver.ts';
import { startService } from '../support/service.ts';

const OPERATE = join(import.meta.dirname, '../..', 'docs', 'operate');
const ALERTS = join(OPERATE, 'alerts.yaml');
const ODD_NAME = 'a-workflow-that-nobody-else-has';

const QUEUE = '/v1/workflows/{workflowId}/queue';

const script = (text: string, more = '') =>
  `source: { type: command, command: ${JSON.stringify(['sh', '-c', text])} }\n${more}`;
const service = await startService({
  workflows: {
    'default/people.yaml': script(`printf '{"id":"1"}\\n{"id":"2"}\\n'`),
    [`default/${ODD_NAME}.yaml`]: script('exit 3', 'retries: { max: 0 }\n'),
  },
  settings: { FLOWHOOK_BACKUP_EVERY: '24h' },
});
const receiver = await startReceiver();
after(async () => {
  await service.stop();
  await receiver.stop();
});

/** A scrape after a finished run, a failed run, deliveries, and a request with an unknown path and method. */
const worked = (async () => {
  const events = ['workflow_finished', 'workflow_failed'];
  await new Flowhook(service).webhooks.create({ url: receiver.url, events });
  for (const id of ['people', ODD_NAME]) {
    assert.equal((await service.call('POST', `/v1/workflows/${id}/queue`)).status, 200);
  }
  await fetch(`${service.url}/v1/nowhere-at-all`, { method: 'PROPFIND' });
  // Directories are read every 30 s, starting with the first scrape.
  const backups = join(service.directory, 'data', 'backups');
  while (listBackups(backups).length === 0) await service.call('GET', '/livez');
  // Requests and deliveries may be counted shortly after they end.
  return scrapeUntil(service.url, (families) => {
    const counted = (name: string, labels: Record<string, string>) => amountOf(families, name, labels) ?? 0;
    return (
      // On a busy machine a scrape may not wait long enough for the database.
      counted('flowhook_database_up', {}) === 1 &&
      counted('flowhook_deliveries_total', { state: 'delivered' }) === 2 &&
      counted('flowhook_job_attempts_total', {}) === 2 &&
      counted('http_server_request_duration_seconds_count', { http_route: '' }) === 1 &&
      counted('http_server_request_duration_seconds_count', { http_route: QUEUE }) === 2
    );
  });
})();

test('counts and measures requests, job attempts and delivery attempts', async () => {
  const { families } = await worked;
  const is = (name: string, labels: Record<string, string>, value: number) =>
    assert.equal(amountOf(families, name, labels), value, `${name} ${JSON.stringify(labels)}`);
  const queued = {
    http_request_method: 'POST',
    http_route: QUEUE,
    http_response_status_code: '200',
  };
  is('http_server_request_duration_seconds_count', queued, 2);
  is('flowhook_http_refused_total', { code: 'route_not_found' }, 1);
  is('flowhook_job_attempts_total', { outcome: 'finished', reason: '' }, 1);
  is('flowhook_job_attempts_total', { outcome: 'failed', reason: 'error' }, 1);
  is('flowhook_job_attempt_duration_seconds_count', {}, 2);
  is('flowhook_job_wait_seconds_count', {}, 2);
  is('flowhook_records_read_total', {}, 2);
  is('flowhook_records_published_total', { change: 'added' }, 2);
  is('flowhook_deliveries_total', { state: 'delivered', event_type: 'workflow_failed' }, 1);
  is('flowhook_delivery_attempts_total', { outcome: 'ok', status_class: '2xx' }, 2);
  is('flowhook_delivery_latency_seconds_count', {}, 2);
  is('flowhook_database_up', {}, 1);
  is('flowhook_ready', {}, 1);
  is('flowhook_backup_interval_seconds', {}, 86_400);
});

test('every label has a limited number of values', async () => {
  const { text, families } = await worked;
  assert.equal(amountOf(families, 'http_server_request_duration_seconds_count', { http_route: '' }), 1);
  assert.ok(!/nowhere-at-all|PROPFIND/.test(text));
  for (const secret of [ODD_NAME, service.team.id, service.key, receiver.url]) {
    assert.ok(!text.includes(secret), secret);
  }
  const labels = new Set(
    [...families.values()].flatMap(({ samples }) => samples.flatMap((sample) => Object.keys(sample.labels))),
  );
  assert.deepEqual([...labels].sort(), [
    'change',
    'code',
    'database',
    'endpoint',
    'event_type',
    'http_request_method',
    'http_response_status_code',
    'http_route',
    'le',
    'node_version',
    'outcome',
    'reason',
    'role',
    'state',
    'status_class',
    'version',
  ]);
});

test('promtool accepts the scrape and the alerts', async (t) => {
  const { text } = await worked;
  // `worked` has already parsed the scrape with a strict parser of our own.
  const metrics = spawnSync('promtool', ['check', 'metrics'], { input: text, encoding: 'utf8' });
  if (metrics.error !== undefined) return t.skip('promtool is not installed');
  assert.equal(metrics.status, 0, metrics.stderr + metrics.stdout);
  const rules = spawnSync('promtool', ['check', 'rules', ALERTS], { encoding: 'utf8' });
  assert.equal(rules.status, 0, rules.stderr + rules.stdout);
});

test('every alert has a summary, a description and an action, and uses existing metrics', async () => {
  const { families } = await worked;
  const { groups } = parse(readFileSync(ALERTS, 'utf8')) as {
    groups: { rules: { alert: string; expr: string; labels: object; annotations: object }[] }[];
  };
  const rules = groups.flatMap((group) => group.rules);
  assert.ok(rules.length >= 10);
  assert.equal(new Set(rules.map(({ alert }) => alert)).size, rules.length);
  for (const { alert, expr, labels, annotations } of rules) {
    checkExpression(expr, families);
    assert.match(JSON.stringify(labels), /^\{"severity":"(critical|warning)"\}$/, alert);
    assert.deepEqual(Object.keys(annotations), ['summary', 'description', 'action'], alert);
  }
});

test('every expression of the dashboard uses existing metrics and labels', async () => {
  const { families } = await worked;
  const dashboard = JSON.parse(readFileSync(join(OPERATE, 'grafana-dashboard.json'), 'utf8')) as {
    panels: { id: number; type: string; title: string; gridPos: Box; targets?: { expr: string }[] }[];
    templating: { list: { name: string; definition?: string }[] };
  };
  const { panels, templating } = dashboard;
  assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length);
  for (const [at, panel] of panels.entries()) {
    const below = panels.slice(at + 1).filter((other) => overlap(panel.gridPos, other.gridPos));
    assert.deepEqual(
      below.map(({ title }) => title),
      [],
      `panels that overlap ${panel.title}`,
    );
    if (panel.type !== 'row') assert.ok((panel.targets ?? []).length > 0, panel.title);
  }
  for (const { expr } of panels.flatMap(({ targets = [] }) => targets)) {
    checkExpression(withoutVariables(expr), families);
  }
  for (const { definition } of templating.list) {
    if (definition === undefined) continue;
    const [, selector = ''] = /^label_values\((.+), \w+\)$/.exec(definition) ?? assert.fail(definition);
    checkExpression(withoutVariables(selector), families);
  }
});

test('the reference lists exactly the existing metrics', async () => {
  const { families } = await worked;
  const page = readFileSync(join(OPERATE, '..', 'reference', 'metrics.md'), 'utf8');
  const listed = [...page.matchAll(/^\| `(\w+)(?:\{([\w, ]*)\})?` \| (\w+) \|/gm)];
  assert.deepEqual(listed.map(([, name]) => name).sort(), [...families.keys()].sort());
  for (const [, name = '', labels = '', type] of listed) {
    const family = families.get(name);
    assert.equal(type, family?.type, name);
    const found = new Set(family?.samples.flatMap((sample) => Object.keys(sample.labels)));
    found.delete('le');
    const documented = labels.split(', ').filter((label) => label !== '');
    // Some metrics have no values yet.
    if (found.size > 0) assert.deepEqual(documented.sort(), [...found].sort(), name);
  }
});

test('metrics are only for allowed addresses and for keys with the scope `operator`', async (t) => {
  const ask = async (headers: Record<string, string>) => {
    const response = await fetch(`${service.url}/metrics`, { headers });
    return { status: response.status, text: await response.text() };
  };
  assert.equal((await ask({})).status, 200);
  // A page in this machine's browser whose name resolves to this machine (DNS rebinding).
  const hosted = (name: string) =>
    sendBytes(service.url, `GET /metrics HTTP/1.1\r\nhost: ${name}\r\nconnection: close\r\n\r\n`);
  assert.equal((await hosted('evil.example')).status, 401);
  assert.equal((await hosted('localhost')).status, 200);
  const elsewhere = { 'x-forwarded-for': '127.0.0.1' };
  const refused = await ask(elsewhere);
  assert.deepEqual(JSON.parse(refused.text), {
    error:
      'Unauthorized: send a key with the scope `operator`, in x-api-key or as `authorization: Bearer`. To read ' +
      'metrics without a key, add the address of the client to FLOWHOOK_METRICS_ALLOW, and use an IP address, a local ' +
      'name or FLOWHOOK_PUBLIC_URL as host',
  });
  assert.equal(refused.status, 401);
  const { key } = await mintKey(service.store, {
    teamId: service.team.id,
    name: '',
    scopes: ['admin'],
    expiresAt: null,
  });
  assert.equal((await ask({ ...elsewhere, 'x-api-key': service.key })).status, 200);
  assert.equal((await ask({ ...elsewhere, authorization: `Bearer ${service.key}` })).status, 200);
  assert.equal((await ask({ ...elsewhere, authorization: `Basic ${service.key}` })).status, 401);
  const without = await ask({ ...elsewhere, 'x-api-key': key });
  assert.equal(without.status, 403);
  assert.match(without.text, /does not have the scope `operator`/);

  const proxied = await startService({
    settings: { FLOWHOOK_TRUST_PROXY: 'loopback', FLOWHOOK_METRICS_ALLOW: '10.0.0.0/8' },
  });
  t.after(() => proxied.stop());
  const from = async (address?: string) => {
    const headers: Record<string, string> = address === undefined ? {} : { 'x-forwarded-for': address };
    return (await fetch(`${proxied.url}/metrics`, { headers })).status;
  };
  assert.equal(await from('10.1.2.3'), 200);
  assert.equal(await from('203.0.113.5'), 401);
  assert.equal(await from('10.1.2.3, 203.0.113.5'), 401);
  assert.equal(await from(), 401);
});

test('reports that the database is unavailable, and still has metrics of the process', async (t) => {
  const other = await startService();
  t.after(() => other.stop());
  await other.store.close();
  const { families } = await scrapeUntil(other.url, (found) => amountOf(found, 'flowhook_database_up') === 0);
  assert.ok((amountOf(families, 'process_resident_memory_bytes') ?? 0) > 1_000_000);
  assert.equal(amountOf(families, 'flowhook_jobs'), undefined);
  assert.equal(amountOf(families, 'flowhook_deliveries_waiting'), undefined);
});

test('/metrics does not exist if metrics are off', async (t) => {
  const other = await startService({ settings: { FLOWHOOK_METRICS: 'off' } });
  t.after(() => other.stop());
  await assert.rejects(scrape(other.url), /404/);
  assert.equal((await fetch(`${other.url}/metrics`, { headers: { 'x-api-key': other.key } })).status, 404);
});

test('the parser of the tests refuses invalid text', () => {
  const gauge = '# HELP a A.\n# TYPE a gauge\n';
  for (const [text, why] of [
    ['a 1\n', /has no HELP/],
    [`${gauge}b 1\n`, /belongs to another/],
    [`${gauge}a 1\na 1\n`, /appears twice/],
    [`${gauge}a{x="1} 1\n`, /labels/],
    [`${gauge}a one\n`, /not a number/],
    [`${gauge}a 1`, /does not end/],
    ['# HELP a A.\n# TYPE a counter\na 1\n', /_total/],
    [
      '# HELP a A.\n# TYPE a histogram\na_bucket{le="1"} 2\na_bucket{le="+Inf"} 1\na_sum 1\na_count 1\n',
      /is invalid/,
    ],
  ] as const) {
    assert.throws(() => parseExposition(text), why);
  }
  assert.throws(() => readExpression('sum(rate(a[5m])'), /does not parse/);
});

interface Box {
  x: number;
  y: number;
  w: number;
  h: number;
}

function overlap(a: Box, b: Box): boolean {
  return a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;
}

/** Labels that Prometheus adds to every value. */
const ADDED = ['job', 'instance'];

function checkExpression(expression: string, families: Families): Reading {
  const reading = readExpression(expression);
  const labels = new Set(ADDED);
  for (const { metric, labels: matched, equals } of reading.selected) {
    const family = families.get(metric) ?? families.get(metric.replace(/_(bucket|sum|count)$/, ''));
    assert.ok(family !== undefined, `${metric} does not exist: ${expression}`);
    const isPart = family.type !== 'histogram' || metric !== family.name;
    assert.ok(isPart, `${metric} is a histogram: ${expression}`);
    const own = new Set([...ADDED, ...family.samples.flatMap((sample) => Object.keys(sample.labels))]);
    for (const label of own) labels.add(label);
    for (const label of matched) assert.ok(own.has(label), `${metric} has no ${label}: ${expression}`);
    for (const { label, value } of equals) {
      const isThere = family.samples.some((sample) => sample.labels[label] === value);
      assert.ok(isThere, `${metric} has no ${label}="${value}": ${expression}`);
    }
  }
  for (const label of reading.grouping) assert.ok(labels.has(label), `no ${label}: ${expression}`);
  return reading;
}

/** Replaces Grafana's variables with values. */
function withoutVariables(expression: string): string {
  return expression.replaceAll('$__rate_interval', '5m').replaceAll(/\$(job|instance)\b/g, '.+');
}
