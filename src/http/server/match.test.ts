/** Matching of request targets with paths. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { routes } from '../routes.ts';
import { createMatcher, splitTarget } from './match.ts';

const match = createMatcher(routes);
const found = (path: string) => {
  const result = match(path);
  return result === undefined ? undefined : [result.known.path, result.params];
};
const data = '/v1/workflows/{workflowId}/data';

test('decodes a parameter once', () => {
  assert.deepEqual(found('/v1/workflows/a%2520b/data'), [data, { workflowId: 'a%20b' }]);
  assert.deepEqual(found('/v1/workflows/a%2Fb/data'), [data, { workflowId: 'a/b' }]);
});

test('matches a parameter with invalid percent-encoding, without a value', () => {
  assert.deepEqual(found('/v1/workflows/%ZZ/data'), [data, { workflowId: undefined }]);
});

test('accepts one trailing slash, but no empty segment', () => {
  assert.deepEqual(found('/v1/workflows/x/data/'), [data, { workflowId: 'x' }]);
  for (const path of [
    '/v1/workflows/x/data//',
    '//v1/workflows/x/data',
    '/v1/workflows//data',
    '/',
    '//',
    '',
    '*',
  ]) {
    assert.equal(found(path), undefined, path);
  }
});

test('prefers the path with fewer parameters, so that list, subscribe and unsubscribe keep their methods', () => {
  const allow = (path: string) => match(path)?.known.allow;
  assert.equal(allow('/v1/integrations/webhooks/list'), 'GET, HEAD, OPTIONS');
  assert.equal(allow('/v1/integrations/webhooks/subscribe'), 'POST, OPTIONS');
  assert.equal(allow('/v1/integrations/webhooks/unsubscribe'), 'DELETE, OPTIONS');
  assert.equal(allow('/v1/integrations/webhooks/unsubscribe/secret'), 'DELETE, OPTIONS');
});

test('matches a webhook only by an id with the prefix of webhook ids', () => {
  const webhook = '/v1/integrations/webhooks/{webhookId}';
  assert.deepEqual(found('/v1/integrations/webhooks/wh_1'), [webhook, { webhookId: 'wh_1' }]);
  assert.deepEqual(found('/v1/integrations/webhooks/wh%5F1'), [webhook, { webhookId: 'wh_1' }]);
  for (const id of ['other', 'List', 'wh', '%ZZ']) {
    assert.equal(found(`/v1/integrations/webhooks/${id}`), undefined, id);
  }
});

test('finds every path of the table under its own name', () => {
  for (const { path, method } of routes) {
    const example = path.replace(/\{\w+(?:=(\w*)\*)?\}/g, '$1x');
    assert.equal(match(example)?.known.routes.get(method)?.path, path);
  }
});

test('treats a target with scheme and host as a path', () => {
  assert.deepEqual(splitTarget('http://host:1/a/b?c=d?e'), { path: '/a/b', query: 'c=d?e' });
  assert.deepEqual(splitTarget('/a?'), { path: '/a', query: '' });
  assert.deepEqual(splitTarget('http://host?c'), { path: '/', query: 'c' });
  assert.deepEqual(splitTarget('http://host'), { path: '/', query: '', isServer: true });
  assert.deepEqual(splitTarget('*'), { path: '*', query: '', isServer: true });
});
