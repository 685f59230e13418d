/** Headers that a webhook may have of its own, and what the log shows of headers. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { headersMistake, loggedRequest, loggedResponse } from './headers.ts';

function many(count: number, length = 1): Record<string, string> {
  return Object.fromEntries(Array.from({ length: count }, (_, index) => [`x-${index}`, 'v'.repeat(length)]));
}

test('takes what a receiver may need', () => {
  for (const headers of [
    {},
    { Authorization: 'Bearer abc.def', 'x-source': 'flow hook', 'User-Agent': 'us' },
    { 'x-empty': '' },
    { "!#$%&'*+.^_`|~1": 'every sign of a token' },
    { 'x-tab': 'a\tb' },
    JSON.parse('{"__proto__":"x","constructor":"y"}'),
    many(20),
    { x: 'v'.repeat(4_095) },
  ]) {
    assert.equal(headersMistake(headers), undefined, JSON.stringify(headers).slice(0, 80));
  }
});

test('refuses what belongs to the delivery itself, in any case', () => {
  for (const name of [
    'host',
    'Host',
    'content-length',
    'Content-Type',
    'content-encoding',
    'connection',
    'keep-alive',
    'transfer-encoding',
    'trailer',
    'expect',
    'te',
    'upgrade',
    'webhook-id',
    'Webhook-Signature',
    'webhook-anything',
    'proxy-authorization',
    'proxy-connection',
  ]) {
    assert.match(headersMistake({ [name]: 'x' }) ?? '', /cannot be set.*another name/, name);
  }
});

test('refuses names and values that are not valid, or too many, with a sentence', () => {
  for (const [headers, expected] of [
    [undefined, /must be an object/],
    [null, /must be an object/],
    [['a'], /must be an object/],
    ['a: b', /must be an object/],
    [{ '': 'x' }, /no header name/],
    [{ 'a b': 'x' }, /no header name/],
    [{ 'a:': 'x' }, /no header name/],
    [{ 'x\r\ny': 'x' }, /no header name/],
    [{ 'x-ü': 'x' }, /no header name/],
    [{ a: 1 }, /must be text/],
    [{ a: null }, /must be text/],
    [{ a: ['b'] }, /must be text/],
    [{ a: 'x\r\nb: y' }, /visible ASCII/],
    [{ a: 'x\ny' }, /visible ASCII/],
    [{ a: 'x\0' }, /visible ASCII/],
    [{ a: ' x' }, /visible ASCII/],
    [{ a: 'x ' }, /visible ASCII/],
    [{ a: 'Zoë' }, /visible ASCII.*base64/],
    [{ a: '\x7f' }, /visible ASCII/],
    [{ 'X-A': '1', 'x-a': '2' }, /there twice/],
    [many(21), /at most 20 names; there are 21/],
    [many(20, 300), /at most 4096 characters.*they have 6070/],
  ] as const) {
    assert.match(headersMistake(headers) ?? '', expected, JSON.stringify(headers)?.slice(0, 80));
  }
});

test('the log shows no credentials, and of the own headers only the names', () => {
  const sent = { host: 'a.example', authorization: 'Basic x', 'x-key': 'secret', 'webhook-id': 'evt_1' };
  assert.deepEqual(loggedRequest(sent, { 'X-Key': 'secret' }), {
    host: 'a.example',
    authorization: '***',
    'x-key': '***',
    'webhook-id': 'evt_1',
  });
});

test('the log holds at most 50 names and 4,096 characters of an answer', () => {
  assert.deepEqual(loggedResponse({ a: 'b', 'set-cookie': ['c', 'd'], nul: '\0' }), {
    a: 'b',
    'set-cookie': 'c, d',
    nul: '\ufffd',
  });
  assert.equal(Object.keys(loggedResponse(many(60))).length, 50);
  const logged = loggedResponse({ ...many(3, 2_000), last: 'x' });
  const text = Object.entries(logged).flat().join('');
  assert.equal(text.length, 4_096);
  assert.equal(logged.last, undefined);
});
