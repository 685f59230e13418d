/** Times as they are written for people. */
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

test('times are told as one says them', () => {
  const told = (ms: number) => relative(new Date(NOW + ms).toISOString(), NOW);
  assert.deepEqual([-200, 300, -12_900, 181_000, -7_300_000, -200_000_000].map(told), [
    'just now',
    'in a moment',
    '12 s ago',
    'in 3 min',
    '2 h ago',
    '2 d ago',
  ]);
  assert.equal(absolute('2026-11-21T03:04:05.600Z', 'utc'), '2026-11-21 03:04:05 UTC');
});

test('what goes on is told by how long it has lasted', () => {
  const told = (ms: number) => lasting(new Date(NOW + ms).toISOString(), NOW);
  assert.deepEqual([500, -200, -5_000, -90_000_000].map(told), [
    'for a moment',
    'for a moment',
    'for 5 s',
    'for 1 d',
  ]);
});

test('numbers have their units', () => {
  assert.deepEqual([950, 999, 1_000, 12_345, 1_500_000, 123_456_789].map(bytes), [
    '950 B',
    '999 B',
    '1.0 kB',
    '12.3 kB',
    '1.5 MB',
    '123 MB',
  ]);
  assert.deepEqual(
    [many(1, 'run'), many(1_200, 'run'), many(2, 'delivery', 'deliveries')],
    ['1 run', '1,200 runs', '2 deliveries'],
  );
});

test('lengths of time have two units at most', () => {
  assert.deepEqual([12, 2_440, 45_600, 185_000, 7_800_000, 273_600_000].map(duration), [
    '12 ms',
    '2.4 s',
    '46 s',
    '3 min 5 s',
    '2 h 10 min',
    '3 d 4 h',
  ]);
});

test('code stands between backticks, and times are found', () => {
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

test('a backtick alone and an empty pair are characters like any other', () => {
  assert.deepEqual(sentenceParts('sh: `foo: not found'), [{ kind: 'words', text: 'sh: `foo: not found' }]);
  assert.deepEqual(sentenceParts('``'), [{ kind: 'words', text: '``' }]);
  assert.deepEqual(sentenceParts(''), []);
});

test('a sentence goes on in another one', () => {
  assert.equal(uncapitalized('The endpoint has failed'), 'the endpoint has failed');
});

test('a failure is told by what was said last', () => {
  assert.equal(
    lastLine('It ended with exit code 1:\nTraceback …\nValueError: no such page\n'),
    'ValueError: no such page',
  );
  assert.equal(lastLine('The source answered 503'), 'The source answered 503');
});

test('the frames below an error are not what was said', () => {
  assert.equal(
    lastLine('It ended:\nError: no such page\n    at run (file:///a.mts:2:1)\n    at next (<anonymous>)\n'),
    'Error: no such page',
  );
});

test('of nothing but frames the last one is told', () => {
  assert.equal(lastLine('    at run (file:///a.mts:2:1)'), '    at run (file:///a.mts:2:1)');
});

test('the host and the end are kept apart from what may be cut', () => {
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

test('an end without a slash nearby is its last letters', () => {
  const { middle, end } = urlParts('https://a.example/inspect/insp_06fgpm2xnc1tqm8j1yx4hq6p4w');
  assert.equal(end, '1yx4hq6p4w'.slice(-8));
  assert.ok(middle.startsWith('/inspect/insp_'));
});

test('together the parts are the whole, whatever the text is', () => {
  for (const url of [
    'https://a.example',
    'https://a.example/',
    'nonsense',
    '',
    'https://a/?q=/x/y/z#1',
    '//a/b',
  ])
    assert.equal(Object.values(urlParts(url)).join(''), url);
});
