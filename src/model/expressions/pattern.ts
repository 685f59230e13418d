/**
 * Regular expressions in the syntax of RE2, which the Common Expression Language prescribes. Their time grows linearly
 * with the text; JavaScript's own would need centuries for `(a+)+b`, and has no limit.
 */
import { RE2JS, RE2JSException } from 're2js';
import { EvaluationMistake } from './mistakes.ts';
import type { Steps } from './steps.ts';
import { shortened } from './values.ts';

/** Maximum number of characters of a pattern. */
const MAX_PATTERN = 1_000;
/** Maximum number of instructions of a compiled pattern: `{n}` repeats those of its part. */
const MAX_INSTRUCTIONS = 2_000;
/** Maximum number of patterns that are kept, because compiling one costs more than matching a title. */
const MAX_KEPT = 50;

const kept = new Map<string, RE2JS>();

/** @throws EvaluationMistake if the pattern is invalid */
export function patternOf(source: string): RE2JS {
  const known = kept.get(source);
  if (known !== undefined) return known;
  const pattern = compiled(source);
  if (kept.size >= MAX_KEPT) kept.clear();
  kept.set(source, pattern);
  return pattern;
}

function compiled(source: string): RE2JS {
  if (source.length > MAX_PATTERN) {
    throw new EvaluationMistake(`A regular expression has at most ${MAX_PATTERN} characters`);
  }
  let pattern: RE2JS;
  try {
    pattern = RE2JS.compile(source);
  } catch (error) {
    if (!(error instanceof RE2JSException)) throw error;
    const reason = error.message.replace(/^error parsing regexp: /, '').replace(/: `.*/s, '');
    throw new EvaluationMistake(
      `The regular expression ${JSON.stringify(shortened(source))} is invalid: ${reason}`,
    );
  }
  if (pattern.programSize() <= MAX_INSTRUCTIONS) return pattern;
  throw new EvaluationMistake(`The regular expression ${JSON.stringify(shortened(source))} repeats too much`);
}

/** Whether a part of the text matches. @throws EvaluationMistake if the pattern is invalid */
export function hasMatch(text: string, source: string, steps: Steps): boolean {
  steps.pattern(source);
  const pattern = patternOf(source);
  // What the library remembers of earlier texts must not decide whether an evaluation has steps left.
  steps.take((text.length * pattern.programSize()) / 16);
  return pattern.test(text);
}
