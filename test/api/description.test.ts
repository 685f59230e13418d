/** The API description as a page, as YAML and as JSON. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { parse } from 'yaml';
import { startService } from '../support/service.ts';

const service = await startService();
after(() => service.stop());

const fetchText = async (path: string) => {
  const response = await fetch(service.url + path);
  assert.equal(response.status, 200);
  return { text: await response.text(), headers: response.headers };
};

test('the YAML equals the JSON', async () => {
  const { text, headers } = await fetchText('/openapi.yaml');
  assert.equal(headers.get('content-type'), 'application/yaml; charset=utf-8');
  const document = JSON.parse((await fetchText('/openapi.json')).text) as unknown;
  assert.deepEqual(parse(text), document);
  // Many parsers read YAML 1.1, in which `Yes` is true and 2026-11-21 a date.
  assert.deepEqual(parse(text, { version: '1.1' }), document);
});

test('the page shows every operation, runs no script and loads nothing', async () => {
  const { text, headers } = await fetchText('/docs');
  const { paths } = JSON.parse((await fetchText('/openapi.json')).text) as {
    paths: Record<string, Record<string, { operationId: string }>>;
  };
  for (const methods of Object.values(paths)) {
    for (const { operationId } of Object.values(methods))
      assert.ok(text.includes(`id="${operationId}"`), operationId);
  }
  assert.match(headers.get('content-security-policy') ?? '', /default-src 'none'/);
  assert.doesNotMatch(text, /<(script|link|img|iframe|object)\b|@import|url\(/i);
  for (const [, address] of text.matchAll(/(?:href|src)="([^"]*)"/g)) assert.match(address ?? '', /^[/#]/);
});
