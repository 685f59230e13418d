/**
 * Filters and templates: expressions of the Common Expression Language (CEL) over an event and one difference.
 *
 * A missing field is null. Comparisons of order with a null are false; arithmetic, functions and lists of a null are
 * null; null counts as false where a condition is expected. The generated reference of filters describes the language.
 */
import { Environment } from '@marcbachmann/cel-js';
import { Compiler, type Node } from './expressions/code.ts';
import { FUNCTIONS, METHODS } from './expressions/functions.ts';
import { EvaluationMistake, ExpressionMistake, mistakeAt } from './expressions/mistakes.ts';
import { isOfTypesOnly, mistakeOf, typeWords } from './expressions/sentences.ts';
import { Steps } from './expressions/steps.ts';
import { described } from './expressions/values.ts';
import { MAX_EXPRESSION } from './rule.ts';

export { EvaluationMistake, ExpressionMistake };

/** What an expression can read. */
export interface Names {
  event: {
    id: string;
    type: string;
    workflowId: string | null;
    jobId: string | null;
    /** ISO 8601 */
    timestamp: string;
    sequence: number;
  };
  /** The event's data, as `parseExactly` returned it. */
  data: unknown;
  change: 'added' | 'changed' | 'removed' | null;
  /** Id of the record. */
  id: string | null;
  /** The record after the change, as `parseExactly` returned it; null if it was removed. */
  record: unknown;
  /** The record before the change; null if it was added. */
  previous: unknown;
  /** Names of the fields that differ. */
  changed: string[];
}

export interface Expression {
  readonly source: string;
  /** Whether the expression reads a difference: `change`, `id`, `record`, `previous` or `changed`. */
  readonly readsRecord: boolean;
  /**
   * @param steps those that are left, if several expressions share them
   * @throws EvaluationMistake
   */
  evaluate(names: Names, steps?: Steps): unknown;
}

/** Names of an expression, and what they mean. */
export const NAMES: Readonly<Record<keyof Names, string>> = {
  event:
    'the event: `event.id`, `event.type`, `event.workflowId`, `event.jobId`, `event.timestamp`, `event.sequence`',
  data: 'the data of the event, such as `data.records.total` or `data.reason`',
  change: '`"added"`, `"changed"` or `"removed"`',
  id: 'the ID of the record',
  record: 'the record after the change; null if it was removed',
  previous: 'the record before the change; null if it was added',
  changed: 'the names of the fields that differ: `"price" in changed`',
};

const OF_RECORD = ['change', 'id', 'record', 'previous', 'changed'];
const EVENT_FIELDS = {
  id: 'string',
  type: 'string',
  workflowId: 'dyn',
  jobId: 'dyn',
  timestamp: 'string',
  sequence: 'double',
};

const filters = environment().registerVariable('record', 'dyn');
const templates = environment().registerVariable('record', 'dyn').registerVariable('differences', 'dyn');

/** The environment in which types are checked. The handlers are never called. */
function environment(): Environment {
  const checked = new Environment({
    homogeneousAggregateLiterals: false,
    limits: {
      maxAstNodes: 4_000,
      maxDepth: 60,
      maxListElements: 1_000,
      maxMapEntries: 100,
      maxCallArguments: 8,
    },
  });
  const unused = () => null;
  checked.registerType('Event', { fields: EVENT_FIELDS });
  checked.registerVariable('event', 'Event').registerVariable('changed', 'list<string>');
  for (const name of ['data', 'change', 'id', 'previous']) checked.registerVariable(name, 'dyn');
  for (const [name, { takes, ofNull }] of Object.entries(FUNCTIONS)) {
    if (ofNull === false)
      checked.registerFunction(`${name}(${Array(takes[0]).fill('dyn').join(', ')}): bool`, unused);
  }
  for (const { signatures = [] } of [...Object.values(FUNCTIONS), ...Object.values(METHODS)]) {
    for (const signature of signatures) checked.registerFunction(signature, unused);
  }
  // JSON has one kind of number.
  for (const operator of ['+', '-', '*', '/', '%']) {
    checked.registerOperator(`int ${operator} double: double`, unused);
    checked.registerOperator(`double ${operator} int: double`, unused);
  }
  checked.registerOperator('double % double: double', unused);
  checked.registerOperator('int == double: bool', () => false);
  for (const type of [
    'bool',
    'int',
    'double',
    'string',
    'list',
    'map',
    'google.protobuf.Timestamp',
    'google.protobuf.Duration',
  ]) {
    checked.registerOperator(`${type} == null: bool`, () => false);
  }
  return checked;
}

/**
 * Compiles a filter.
 *
 * @throws ExpressionMistake if it is not an expression, uses an unknown name or function, or is never true or false
 */
export function compile(source: string): Expression {
  const { expression, type, end } = compiled(source, filters, Object.keys(NAMES));
  if (type !== 'bool' && type !== 'dyn') {
    const sentence = `A filter is true or false, but the value of this expression is ${typeWords(type)}`;
    throw mistakeAt(source, sentence, { start: 0, end });
  }
  return expression;
}

/** Compiles an expression of a template, which may have any value and also reads `differences`. @throws ExpressionMistake */
export function compilePart(source: string): Expression {
  return compiled(source, templates, [...Object.keys(NAMES), 'differences']).expression;
}

function compiled(
  source: string,
  checked: Environment,
  names: readonly string[],
): { expression: Expression; type: string; end: number } {
  if (source.length > MAX_EXPRESSION) {
    const message = `An expression has at most ${MAX_EXPRESSION.toLocaleString('en')} characters; this one has ${source.length.toLocaleString('en')}`;
    throw new ExpressionMistake(message, { from: MAX_EXPRESSION, to: source.length });
  }
  if (source.trim() === '')
    throw new ExpressionMistake('The expression is empty', { from: 0, to: source.length });
  const parsed = orMistake(source, () => checked.parse(source));
  const compiler = new Compiler(source, names);
  const root = parsed.ast as unknown as Node;
  const code = compiler.code(root);
  const { valid, type = 'dyn', error } = orMistake(source, () => parsed.check());
  // The evaluation needs no types, and texts for humans often say something else instead of a number.
  if (!valid && !isOfTypesOnly(error)) throw mistakeOf(source, error, Object.keys(EVENT_FIELDS));
  const expression: Expression = {
    source,
    readsRecord: OF_RECORD.some((name) => compiler.read.has(name)),
    evaluate: (values, steps = new Steps()) => {
      try {
        return code({ names: values as unknown as Record<string, unknown>, locals: [], steps });
      } catch (error) {
        // A record is too deep for a comparison, or a text would be longer than JavaScript allows.
        if (error instanceof RangeError)
          throw new EvaluationMistake(`The evaluation failed: ${error.message}`);
        throw error;
      }
    },
  };
  return { expression, type, end: root.end };
}

/**
 * Evaluates a filter. Any value but true is no match; a null is the only other one that is no mistake.
 *
 * @returns `mistake` is a sentence if the filter could not be evaluated
 */
export function verdict(expression: Expression, names: Names): { matches: boolean; mistake: string | null } {
  try {
    const value = expression.evaluate(names);
    if (typeof value === 'boolean' || value === null) return { matches: value === true, mistake: null };
    return { matches: false, mistake: `A filter is true or false, but the value is ${described(value)}` };
  } catch (error) {
    if (error instanceof EvaluationMistake) return { matches: false, mistake: error.message };
    throw error;
  }
}

function orMistake<T>(source: string, run: () => T): T {
  try {
    return run();
  } catch (error) {
    throw mistakeOf(source, error, Object.keys(EVENT_FIELDS));
  }
}
