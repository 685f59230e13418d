/** Which custom headers are valid. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { headersMistake } from './sealed.ts';

function many(count: number, length = 1): Record<string, string> {
  return Object.fromEntries(Array.from({ length: count }, (_, index) => [`x-${index}`, 'v'.repeat(length)]));
}

test('accepts common headers of receivers', () => {
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

test('rejects headers that belong to the delivery itself, in any case', () => {
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

test('explains invalid names and values, and too many of them', () => {
  for (const [headers, expected] of [
    [undefined, /must be an object/],
    [null, /must be an object/],
    [['a'], /must be an object/],
    ['a: b', /must be an object/],
    [{ '': 'x' }, /not a valid header name/],
    [{ 'a b': 'x' }, /not a valid header name/],
    [{ 'a:': 'x' }, /not a valid header name/],
    [{ 'x\r\ny': 'x' }, /not a valid header name/],
    [{ 'x-ü': 'x' }, /not a valid header name/],
    [{ a: 1 }, /must be a string/],
    [{ a: null }, /must be a string/],
    [{ a: ['b'] }, /must be a string/],
    [{ a: 'x\r\nb: y' }, /visible ASCII/],
    [{ a: 'x\ny' }, /visible ASCII/],
    [{ a: 'x\0' }, /visible ASCII/],
    [{ a: ' x' }, /visible ASCII/],
    [{ a: 'x ' }, /visible ASCII/],
    [{ a: 'Zoë' }, /visible ASCII.*base64/],
    [{ a: '\x7f' }, /visible ASCII/],
    [{ 'X-A': '1', 'x-a': '2' }, /appears twice/],
    [many(21), /at most 20 names, found 21/],
    [many(20, 300), /at most 4096 characters.*found 6070/],
  ] as const) {
    assert.match(headersMistake(headers) ?? '', expected, JSON.stringify(headers)?.slice(0, 80));
  }
});
