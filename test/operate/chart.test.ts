/** The files of the Helm chart agree with each other, with the settings and with the image. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { Ajv } from 'ajv';
import { parse } from 'yaml';
import { SETTINGS } from '../../src/config/settings.ts';
import { environmentName } from '../../src/config/sources.ts';
import { routesOfNode } from '../../src/http/routes.ts';

const ROOT = join(import.meta.dirname, '../..');
const CHART = join(ROOT, 'deploy/helm/flowhook');
const read = (name: string) => readFileSync(join(CHART, name), 'utf8');

interface Schema {
  $ref?: string;
  properties?: Record<string, Schema>;
}

const values = parse(read('values.yaml'));
const schema = JSON.parse(read('values.schema.json')) as Schema & { definitions: Record<string, Schema> };
const dockerfile = await readFile(join(ROOT, 'Dockerfile'), 'utf8');
const names = (await readdir(join(CHART, 'templates'))).sort();
const templates = names.map((name) => read(join('templates', name))).join('\n');

/** Settings that the chart sets itself, or that a container cannot use. */
const FIXED = ['bootstrapKey', 'data', 'database', 'encryptionKey', 'host', 'port', 'role', 'workflows'];
const UNUSABLE = ['runAs', 'tlsCert', 'tlsKey'];

test('the chart has the version of the package', () => {
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  const chart = parse(read('Chart.yaml'));
  assert.deepEqual([chart.version, chart.appVersion], [version, version]);
});

test('values.yaml shows every value that the schema allows, and the schema accepts it', () => {
  const validate = new Ajv({ strict: false }).compile(schema);
  assert.ok(validate(values), JSON.stringify(validate.errors));
  assert.deepEqual(namesIn(values, schema), []);
});

/** The values that only one of the two files has. Below `settings` and `pod`, only the schema lists the names. */
function namesIn(value: unknown, { $ref, ...inline }: Schema, path = ''): string[] {
  const { properties } =
    $ref === undefined ? inline : (schema.definitions[$ref.replace('#/definitions/', '')] ?? {});
  if (properties === undefined || /\b(settings|pod)$/.test(path)) return [];
  const here = new Set([...Object.keys(properties), ...Object.keys(value as object)]);
  return [...here].flatMap((name) => {
    const at = path === '' ? name : `${path}.${name}`;
    // Helm itself adds `global`.
    if (at === 'global') return [];
    const found = (value as Record<string, unknown>)[name];
    const described = properties[name];
    return found === undefined || described === undefined ? [at] : namesIn(found, described, at);
  });
}

test('the chart accepts exactly the settings that it does not set itself', () => {
  const expected = SETTINGS.map(({ name }) => name).filter((name) => ![...FIXED, ...UNUSABLE].includes(name));
  assert.deepEqual(Object.keys(schema.properties?.settings?.properties ?? {}).sort(), expected.sort());
});

test('the templates use existing settings, paths, commands and roles', () => {
  const variables = SETTINGS.map(({ name }) => environmentName(name));
  const used = [...new Set(templates.match(/\bFLOWHOOK_[A-Z_]+\b/g))];
  assert.deepEqual(
    used.filter((name) => !variables.includes(name)),
    [],
  );
  assert.ok(used.length >= 5, used.join());
  const paths = routesOfNode.map(({ path }) => path);
  const probed = [...templates.matchAll(/httpGet: \{ path: (\S+), port: http \}/g)].map(([, path]) => path);
  assert.deepEqual(probed, ['/livez', '/livez', '/readyz']);
  for (const path of [...probed, '/metrics']) assert.ok(paths.includes(path ?? ''), path);
});

test('the pods use the port, the user and the directories of the image', () => {
  for (const [inChart, inImage] of [
    ['containerPort: 8080', 'FLOWHOOK_PORT=8080'],
    ['args: {{ default (list "serve") .args', 'ENTRYPOINT ["tini", "--", "flowhook"]'],
    ['mountPath: /data }', 'VOLUME /data'],
    ['value: /data/flowhook }', 'XDG_CACHE_HOME=/data/.cache'],
    ['mountPath: /flowhook/workflows', 'WORKDIR /flowhook'],
    // The number of the user `node` in the images of Node.
    ['runAsUser: 1000', 'USER node'],
  ] as const) {
    assert.ok(templates.includes(inChart), inChart);
    assert.ok(dockerfile.includes(inImage), inImage);
  }
});
