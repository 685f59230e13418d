/** What a sentence of the service is made of. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { plainSentence, sentenceParts, uncapitalized } from './sentence.ts';

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

test('in plain text the marks are gone, and times are written for people', () => {
  assert.equal(
    plainSentence('`id` is missing since 2026-11-15T20:57:18Z', () => 'Sunday'),
    'id is missing since Sunday',
  );
});
