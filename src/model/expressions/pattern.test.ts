/** Regular expressions: their bounds, and the sentences about their mistakes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EvaluationMistake, StepsMistake } from './mistakes.ts';
import { hasMatch, patternOf } from './pattern.ts';
import { Steps } from './steps.ts';

const matches = (pattern: string, text: string) => hasMatch(text, pattern, new Steps());

test('patterns may hold classes, groups, anchors, quantifiers and flags', () => {
  assert.equal(matches('(?i)red phone$', 'A RED Phone'), true);
  assert.equal(matches('(?i)ÜBER', 'über') && !matches('ÜBER', 'über'), true);
  assert.equal(matches('(?s)a.b', 'a\nb') && !matches('a.b', 'a\nb'), true);
  assert.equal(matches('(?m)^b$', 'a\nb\nc') && !matches('^b$', 'a\nb\nc'), true);
  assert.equal(matches('^\\d{4}-\\d\\d$', '2026-11') && matches('\\bred\\b', 'a red one'), true);
  assert.equal(matches('[[:alpha:]]\\pL', 'aé') && matches('^.$', '💡'), true);
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

test('a long text uses up the steps, whether or not the pattern has read it before', () => {
  const text = 'ab'.repeat(100_000);
  for (let time = 0; time < 3; time += 1) {
    assert.throws(() => matches('([ab]*a[ab]{200}|[ab]*b[ab]{150})[bc]', text), StepsMistake);
  }
});

test('many patterns use up the steps, because each is compiled', () => {
  const steps = new Steps();
  const part = '\\p{L}{1,9}'.repeat(90);
  assert.throws(() => {
    for (let n = 0; n < 50; n += 1) hasMatch('a', `${part}${n}`, steps);
  }, StepsMistake);
  const again = new Steps();
  for (let time = 0; time < 1_000; time += 1) hasMatch('a', '(red|green) phone', again);
});

test('what cannot be matched in linear time is refused, and so are mistakes', () => {
  const sentences: Record<string, string> = {
    '(': 'The regular expression "(" is invalid: missing closing )',
    '(?=a)': 'The regular expression "(?=a)" is invalid: invalid or unsupported Perl syntax',
    '(a)\\1': 'The regular expression "(a)\\\\1" is invalid: invalid escape sequence',
    'a{900}b{900}c{900}': 'The regular expression "a{900}b{900}c{900}" repeats too much',
    ['a'.repeat(1_001)]: 'A regular expression has at most 1000 characters',
  };
  for (const [pattern, sentence] of Object.entries(sentences)) {
    assert.throws(
      () => patternOf(pattern),
      (error) => error instanceof EvaluationMistake && error.message === sentence,
      pattern,
    );
  }
});
