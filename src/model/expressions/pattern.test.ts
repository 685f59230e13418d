/** Regular expressions: agreement with JavaScript's, and time that grows with the text only. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { EvaluationMistake } from './mistakes.ts';
import { Pattern } from './pattern.ts';
import { Steps } from './steps.ts';

const matches = (pattern: string, text: string) => Pattern.of(pattern).matches(text, new Steps());

test('patterns match like those of JavaScript', () => {
  const atom = fc.constantFrom(
    'a',
    'b',
    'é',
    '.',
    '[ab]',
    '[^a]',
    '[a-c\\d]',
    '\\d',
    '\\w',
    '\\s',
    '\\b',
    '\\B',
    '^',
    '$',
    '\\.',
    '💡',
    '\\u0061',
    '\\x62',
    '[\\]é]',
    '\\p{L}',
  );
  const { pattern } = fc.letrec<{ pattern: string }>((tie) => ({
    pattern: fc.oneof(
      { maxDepth: 5, withCrossShrink: true },
      atom,
      fc.tuple(tie('pattern'), tie('pattern')).map(([a, b]) => a + b),
      fc.tuple(tie('pattern'), tie('pattern')).map(([a, b]) => `${a}|${b}`),
      fc
        .tuple(tie('pattern'), fc.constantFrom('*', '+', '?', '{2}', '{1,3}', '{0}', '{2,}', '*?', '+?'))
        .map(([a, b]) => `(?:${a})${b}`),
      tie('pattern').map((a) => `(${a})`),
      tie('pattern').map((a) => `(?<n>${a})`.replace('<n>', ':')),
    ),
  }));
  const text = fc.string({
    unit: fc.constantFrom('a', 'b', 'c', ' ', '\n', '1', 'é', '.'),
    maxLength: 12,
  });
  fc.assert(
    fc.property(pattern, text, (source, value) => {
      assert.equal(
        matches(source, value),
        new RegExp(source, 'u').test(value),
        `${source} on ${JSON.stringify(value)}`,
      );
    }),
    { numRuns: 3_000 },
  );
});

test('flags apply to a group or to the rest', () => {
  assert.equal(matches('(?i)red phone', 'A RED Phone'), true);
  assert.equal(matches('(?i)ÜBER', 'über'), true);
  assert.equal(matches('a(?i:b)c', 'aBc') && !matches('a(?i:b)c', 'aBC'), true);
  assert.equal(matches('(?s)a.b', 'a\nb') && !matches('a.b', 'a\nb'), true);
  assert.equal(matches('(?m)^b$', 'a\nb\nc') && !matches('^b$', 'a\nb\nc'), true);
  assert.equal(matches('(?i)a(?-i)b', 'Ab') && !matches('(?i)a(?-i)b', 'AB'), true);
  assert.equal(matches('(?P<word>a)', 'a') && matches('(?<word>a)', 'a'), true);
  assert.equal(matches('\\Aa\\z', 'a') && matches('\\x{1F4A1}', '💡') && matches('\\pL', 'é'), true);
});

test('a pattern that would keep JavaScript busy for centuries ends quickly', () => {
  const text = `${'a'.repeat(2_000)}!`;
  for (const pattern of [
    '(a+)+b',
    '(a|a)*b',
    '(a|aa)+$',
    '(.*a){20}b',
    '(a?){50}a{50}b',
    '^(([a-z])+.)+[A-Z]([a-z])+$',
  ]) {
    assert.equal(matches(pattern, text), false, pattern);
  }
});

test('what cannot be matched in linear time is refused, and so are mistakes', () => {
  const sentences: Record<string, RegExp> = {
    '(': /has an unmatched \(: /,
    ')': /has an unmatched \)/,
    '[a': /has an unmatched \[/,
    '*a': /has nothing to repeat before \*/,
    'a**': /has two quantifiers in a row/,
    'a{3,2}': /has \{3,2\} out of order/,
    '(?=a)': /looks ahead or behind/,
    '(?<!a)': /looks ahead or behind/,
    '(a)\\1': /refers back to a group/,
    '\\q': /has an unknown escape \\q/,
    '\\': /ends with a backslash/,
    '[b-a]': /has an invalid class/,
    '\\p{Nonsense}': /has an invalid class/,
    '[[:alpha:]]': /use \\p\{L\}/,
    '(((((a{50}){50}){50}){50}){50})': /is too long when its parts are repeated/,
    [`${'('.repeat(60)}a${')'.repeat(60)}`]: /groups more than 50 levels deep/,
    ['a'.repeat(1_001)]: /at most 1000 characters/,
  };
  for (const [pattern, sentence] of Object.entries(sentences)) {
    assert.throws(
      () => Pattern.of(pattern),
      (error) => error instanceof EvaluationMistake && sentence.test(error.message),
      pattern,
    );
  }
});

test('the steps of a match depend on the text and the pattern, not on earlier matches', () => {
  const stepsOf = (): number => {
    let taken = 0;
    const steps = { take: (count: number) => (taken += count) } as unknown as Steps;
    Pattern.of('(a|b)*c').matches('ababababab', steps);
    return taken;
  };
  assert.equal(stepsOf(), stepsOf());
});
