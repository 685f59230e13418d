/** Random expressions over random records: they are refused with a sentence, or they evaluate without surprises. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseExactly } from '../../std/exact-json.ts';
import {
  compile,
  compilePart,
  EvaluationMistake,
  type Expression,
  ExpressionMistake,
  type Names,
  verdict,
} from '../expression.ts';
import { MAX_EXPRESSION } from '../rule.ts';
import { FUNCTIONS, MACROS, METHODS } from './functions.ts';

const FIELDS = ['price', 'title', 'tags', 'sold', 'nested', 'big', 'missing', 'constructor', '__proto__'];

const { expression } = fc.letrec<{ expression: string }>((tie) => {
  const any = tie('expression');
  return {
    expression: fc.oneof(
      { maxDepth: 5, withCrossShrink: true },
      fc.constantFrom(
        '1',
        '0',
        '2.5',
        '-3',
        '"a"',
        '"5%"',
        '"2026-01-01T00:00:00Z"',
        'true',
        'null',
        '[]',
        '[1, "a", null]',
        '{"a": 1}',
        'x',
      ),
      fc.constantFrom(
        'record',
        'previous',
        'changed',
        'change',
        'id',
        'data',
        'event',
        'event.type',
        'event.timestamp',
      ),
      fc
        .tuple(fc.constantFrom('record', 'previous', 'record.nested'), fc.constantFrom(...FIELDS))
        .map(([of, field]) => `${of}.${field}`),
      fc.tuple(any, fc.constantFrom(...FIELDS)).map(([of, field]) => `${of}.${field}`),
      fc.tuple(any, any).map(([of, key]) => `${of}[${key}]`),
      fc
        .tuple(
          any,
          fc.constantFrom('==', '!=', '<', '<=', '>', '>=', '+', '-', '*', '/', '%', '&&', '||', 'in'),
          any,
        )
        .map(([a, operator, b]) => `(${a} ${operator} ${b})`),
      fc.tuple(any, any, any).map(([a, b, c]) => `(${a} ? ${b} : ${c})`),
      fc.tuple(fc.constantFrom('!', '-'), any).map(([sign, a]) => `${sign}${a}`),
      fc
        .tuple(fc.constantFrom(...Object.keys(FUNCTIONS)), fc.array(any, { minLength: 1, maxLength: 3 }))
        .map(([name, args]) => `${name}(${args.join(', ')})`),
      fc
        .tuple(any, fc.constantFrom(...Object.keys(METHODS)), fc.array(any, { maxLength: 2 }))
        .map(([of, name, args]) => `${of}.${name}(${args.join(', ')})`),
      fc
        .tuple(any, fc.constantFrom(...Object.keys(MACROS)), any)
        .map(([of, name, body]) => `${of}.${name}(x, ${body})`),
      fc.array(any, { maxLength: 3 }).map((items) => `[${items.join(', ')}]`),
    ),
  };
});

const value = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom(
      'null',
      'true',
      '5',
      '-0.5',
      '0',
      '12345678901234567890',
      '1e400',
      '"a"',
      '"red phone"',
      '"2026-01-01T00:00:00Z"',
      '"("',
      '""',
    ),
    fc.array(tie('value'), { maxLength: 4 }).map((items) => `[${items.join()}]`),
    fc
      .array(fc.tuple(fc.constantFrom(...FIELDS, 'a'), tie('value')), { maxLength: 5 })
      .map((fields) => `{${fields.map(([key, one]) => `"${key}":${one}`).join()}}`),
  ),
})).value as fc.Arbitrary<string>;

const names: fc.Arbitrary<Names> = fc
  .record({
    record: value,
    previous: value,
    data: value,
    change: fc.constantFrom('added', 'changed', 'removed', null),
    changed: fc.subarray(FIELDS),
  })
  .map(({ record, previous, data, change, changed }) => ({
    event: {
      id: 'evt_1',
      type: 'workflow_data_change',
      workflowId: null,
      jobId: null,
      timestamp: '2026-01-01T00:00:00.000Z',
      sequence: 1,
    },
    data: parseExactly(data),
    change,
    id: '1',
    record: parseExactly(record),
    previous: parseExactly(previous),
    changed,
  }));

function compiledOrRefused(source: string, how: (source: string) => Expression): Expression | undefined {
  try {
    return how(source);
  } catch (error) {
    assert.ok(error instanceof ExpressionMistake, `${source}: ${(error as Error).stack}`);
    assert.ok(error.from >= 0 && error.from <= error.to && error.to <= source.length, source);
    assert.ok(!/\n|overload|\bAST|maxAst|'dyn|dyn>|EOF/.test(error.message), `${source}: ${error.message}`);
    return undefined;
  }
}

test('random filters and parts of templates have the same result every time, and throw nothing else', () => {
  let evaluated = 0;
  fc.assert(
    fc.property(expression, names, (source, facts) => {
      const filter = compiledOrRefused(source, compile);
      if (filter !== undefined) {
        const before = JSON.stringify(facts);
        const first = verdict(filter, facts);
        assert.deepEqual(verdict(filter, facts), first);
        assert.deepEqual(verdict(compile(source), facts), first);
        assert.ok(!(first.matches && first.mistake !== null));
        assert.equal(JSON.stringify(facts), before, 'nothing that is read is changed');
        evaluated += 1;
      }
      try {
        JSON.stringify(compiledOrRefused(source, compilePart)?.evaluate(facts));
      } catch (error) {
        assert.ok(error instanceof EvaluationMistake, `${source}: ${(error as Error).stack}`);
      }
    }),
    { numRuns: 5_000 },
  );
  assert.ok(evaluated > 500, `${evaluated} were evaluated`);
});

test('random texts are refused with a sentence, or are expressions', () => {
  const token = fc.constantFrom(
    ...'()[]{}.,:?!=<>&|+-*/%"\'\\#$`\n é💡0x9eu',
    'record',
    'r"',
    'b"',
    '"""',
    '1u',
    '//',
    'in',
    'has(',
    'x',
    '.map(',
    '==',
    '&&',
  );
  fc.assert(
    fc.property(fc.array(token, { maxLength: 30 }), (tokens) => {
      compiledOrRefused(tokens.join(''), compile);
    }),
    { numRuns: 5_000 },
  );
});

test('an expression that is repeated up to the maximum length is refused, or compiled', () => {
  const parts = [
    '(',
    '[',
    '{',
    '!',
    '-',
    '1+',
    '"a"+',
    'a.',
    'a(',
    'true?',
    '1,',
    '[1],',
    '{"a":',
    'record.a[',
    '[].exists(x,',
    'has(',
    '"',
    '\\',
    '//',
    '\n',
  ];
  for (const part of parts) {
    for (const start of ['', 'record.x == ', '[', 'record.exists(x, ']) {
      compiledOrRefused((start + part.repeat(MAX_EXPRESSION)).slice(0, MAX_EXPRESSION), compile);
    }
  }
});
