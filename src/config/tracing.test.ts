/** OpenTelemetry's variables: their effect, and the errors for invalid ones. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readTracing } from './tracing.ts';

function read(environment: Record<string, string>) {
  const mistakes: string[] = [];
  return { settings: readTracing(environment, mistakes), mistakes };
}

const ENDPOINT = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318/' };

test('tracing is off without an endpoint, and where a variable turns it off', () => {
  for (const environment of [
    {},
    { OTEL_SERVICE_NAME: 'x', OTEL_TRACES_SAMPLER: 'nonsense' },
    { OTEL_EXPORTER_OTLP_ENDPOINT: ' ' },
    { ...ENDPOINT, OTEL_SDK_DISABLED: 'TRUE' },
    { ...ENDPOINT, OTEL_TRACES_EXPORTER: 'none' },
  ]) {
    assert.deepEqual(read(environment), { settings: null, mistakes: [] });
  }
});

test('an endpoint is the only required variable', () => {
  const { settings, mistakes } = read(ENDPOINT);
  assert.deepEqual(mistakes, []);
  assert.equal(settings?.resource['service.name'], 'flowhook');
  assert.match(String(settings?.resource['service.version']), /^\d+\.\d+\.\d+/);
  assert.deepEqual(
    { ...settings, resource: {} },
    {
      url: 'http://127.0.0.1:4318/v1/traces',
      headers: {},
      timeoutMs: 10_000,
      compression: 'none',
      share: 1,
      heedsParent: true,
      resource: {},
      delayMs: 5_000,
      maxSpans: 2_048,
    },
  );
});

test('a variable for traces overrides the variable for all signals', () => {
  const { settings, mistakes } = read({
    ...ENDPOINT,
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://traces.test/otlp',
    OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Basic%20abc=, x-a=1',
    OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'x-a=2',
    OTEL_EXPORTER_OTLP_TIMEOUT: '500',
    OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip',
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf',
    OTEL_RESOURCE_ATTRIBUTES: 'service.name=by-attribute,host.name=h%2C1',
    OTEL_SERVICE_NAME: 'by-name',
    OTEL_TRACES_SAMPLER: 'traceidratio',
    OTEL_TRACES_SAMPLER_ARG: '0.25',
  });
  assert.deepEqual(mistakes, []);
  assert.equal(settings?.url, 'https://traces.test/otlp');
  assert.deepEqual(settings?.headers, { authorization: 'Basic abc=', 'x-a': '2' });
  assert.deepEqual([settings?.timeoutMs, settings?.compression], [500, 'gzip']);
  assert.deepEqual([settings?.share, settings?.heedsParent], [0.25, false]);
  assert.equal(settings?.resource['service.name'], 'by-name');
  assert.equal(settings?.resource['host.name'], 'h,1');
});

test('lists every mistake, and quotes no header', () => {
  const { mistakes } = read({
    OTEL_EXPORTER_OTLP_ENDPOINT: '127.0.0.1:4318',
    OTEL_TRACES_EXPORTER: 'zipkin',
    OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
  });
  assert.deepEqual(mistakes, [
    'OTEL_TRACES_EXPORTER must be one of otlp, none, found "zipkin"',
    'OTEL_EXPORTER_OTLP_PROTOCOL must be one of http/json, http/protobuf, found "grpc"',
    'OTEL_EXPORTER_OTLP_ENDPOINT must be an http:// or https:// URL, such as http://127.0.0.1:4318',
  ]);
  const others = read({
    ...ENDPOINT,
    OTEL_EXPORTER_OTLP_HEADERS: 'secret-without-a-name',
    OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
    OTEL_TRACES_SAMPLER_ARG: '2',
    OTEL_BSP_SCHEDULE_DELAY: '-1',
  }).mistakes;
  assert.equal(others.length, 3);
  assert.ok(!others.join().includes('secret-without'));
});
