/** What can be wrong with an expression, when it is compiled and when it is evaluated. */

/** An expression cannot be used as it is written. The message is one sentence, without a full stop. */
export class ExpressionMistake extends Error {
  override readonly name = 'ExpressionMistake';
  /** Position of the mistake in the expression, in characters; `to` is after the last one. */
  readonly from: number;
  readonly to: number;

  constructor(message: string, place: { from: number; to: number }) {
    super(message);
    this.from = place.from;
    this.to = place.to;
  }
}

/** A mistake with its place: `…, at character 5`, or `…, at line 2, character 5`. */
export function mistakeAt(
  source: string,
  message: string,
  { start, end }: { start: number; end: number },
): ExpressionMistake {
  const before = source.slice(0, start).split('\n');
  const character = [...(before.at(-1) ?? '')].length + 1;
  const place = source.includes('\n')
    ? `line ${before.length}, character ${character}`
    : `character ${character}`;
  const [what = '', ...rest] = message.split('; ');
  const sentence = [`${what} (at ${place})`, ...rest].join('; ');
  return new ExpressionMistake(sentence, { from: start, to: Math.max(end, start) });
}

/**
 * An expression cannot be evaluated for certain values, such as `"a" < 1` or more than `MAX_STEPS` steps. The message
 * is one sentence without a full stop.
 */
export class EvaluationMistake extends Error {
  override readonly name: string = 'EvaluationMistake';
  /** Whether the message already quotes the part of the expression. */
  isPlaced = false;
}

/** An expression has used all its steps, so that no part of it may continue. */
export class StepsMistake extends EvaluationMistake {
  override readonly name = 'StepsMistake';
}
