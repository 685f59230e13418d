/** Numbers, times, messages and URLs as text. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  absolute,
  bytes,
  duration,
  lasting,
  lastLine,
  many,
  relative,
  sentenceParts,
  uncapitalized,
  urlParts,
} from './format.ts';

const NOW = Date.parse('2026-11-21T03:04:05.600Z');

test('formats relative times as people say them', () => {
  const written = (ms: number) => relative(new Date(NOW + ms).toISOString(), NOW);
  assert.deepEqual([-200, 300, -12_900, 181_000, -7_300_000, -100_000_000, -200_000_000].map(written), [
    'just now',
    'in a moment',
    '12 s ago',
    'in 3 min',
    '2 hours ago',
    '1 day ago',
    '2 days ago',
  ]);
  assert.equal(absolute('2026-11-21T03:04:05.600Z', 'utc'), '2026-11-21 03:04:05 UTC');
});

test('formats how long something has lasted', () => {
  const written = (ms: number) => lasting(new Date(NOW + ms).toISOString(), NOW);
  assert.deepEqual([500, -200, -5_000, -90_000_000].map(written), [
    'for a moment',
    'for a moment',
    'for 5 s',
    'for 1 day',
  ]);
});

test('formats sizes and counts with units', () => {
  assert.deepEqual([950, 999, 1_000, 12_345, 1_500_000, 123_456_789].map(bytes), [
    '950 B',
    '999 B',
    '1.0 kB',
    '12.3 kB',
    '1.5 MB',
    '123 MB',
  ]);
  assert.deepEqual(
    [many(1, 'run'), many(1_200, 'run'), many(2, 'delivery')],
    ['1 run', '1,200 runs', '2 deliveries'],
  );
});

test('formats durations with at most two units', () => {
  assert.deepEqual([12, 2_440, 45_600, 185_000, 7_800_000, 273_600_000].map(duration), [
    '12 ms',
    '2.4 s',
    '46 s',
    '3 min 5 s',
    '2 h 10 min',
    '3 days 4 h',
  ]);
});

test('finds code between backticks, and times, in a message', () => {
  assert.deepEqual(
    sentenceParts('Raise `limits.timeout`: it began 2026-11-15T20:57:18.041Z, and `a` ended.').map(
      ({ kind, text }) => [kind, text],
    ),
    [
      ['words', 'Raise '],
      ['code', 'limits.timeout'],
      ['words', ': it began '],
      ['time', '2026-11-15T20:57:18.041Z'],
      ['words', ', and '],
      ['code', 'a'],
      ['words', ' ended.'],
    ],
  );
});

test('keeps an unpaired backtick and an empty pair as they are', () => {
  assert.deepEqual(sentenceParts('sh: `foo: not found'), [{ kind: 'words', text: 'sh: `foo: not found' }]);
  assert.deepEqual(sentenceParts('``'), [{ kind: 'words', text: '``' }]);
  assert.deepEqual(sentenceParts(''), []);
});

test('starts a sentence in lower case for use inside another one', () => {
  assert.equal(uncapitalized('The endpoint has failed'), 'the endpoint has failed');
});

test('summarizes an error by its last line', () => {
  assert.equal(
    lastLine('It ended with exit code 1:\nTraceback …\nValueError: no such page\n'),
    'ValueError: no such page',
  );
  assert.equal(lastLine('The source returned 503'), 'The source returned 503');
});

test('skips the stack frames below an error', () => {
  assert.equal(
    lastLine('It ended:\nError: no such page\n    at run (file:///a.mts:2:1)\n    at next (<anonymous>)\n'),
    'Error: no such page',
  );
});

test('summarizes an error that has only stack frames by the last one', () => {
  assert.equal(lastLine('    at run (file:///a.mts:2:1)'), '    at run (file:///a.mts:2:1)');
});

test('separates the host and the end of a URL from the middle, which may be cut', () => {
  assert.deepEqual(urlParts('https://hooks.example.com/integrations/flowhook/receive/acme'), {
    scheme: 'https://',
    host: 'hooks.example.com',
    middle: '/integrations/flowhook/receive',
    end: '/acme',
  });
  assert.deepEqual(urlParts('http://127.0.0.1:9000/crm'), {
    scheme: 'http://',
    host: '127.0.0.1:9000',
    middle: '',
    end: '/crm',
  });
});

test('uses the last characters of a URL as its end if no slash is near', () => {
  const { middle, end } = urlParts('https://a.example/inspect/insp_06fgpm2xnc1tqm8j1yx4hq6p4w');
  assert.equal(end, '1yx4hq6p4w'.slice(-8));
  assert.ok(middle.startsWith('/inspect/insp_'));
});

test('splits any text so that the parts join to the same text', () => {
  for (const url of [
    'https://a.example',
    'https://a.example/',
    'nonsense',
    '',
    'https://a/?q=/x/y/z#1',
    '//a/b',
    'mailto:ops@example.org',
  ])
    assert.equal(Object.values(urlParts(url)).join(''), url);
});
