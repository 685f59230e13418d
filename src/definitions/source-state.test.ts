/** Which states can be set for which sources. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { definitionOf } from '../../test/support/jobs/source-site.ts';
import { stateMistake } from './source-state.ts';

const tap = { type: 'command', command: ['tap'], protocol: 'singer' };
const command = { type: 'command', command: ['sh'] };
const http = {
  type: 'http',
  url: `https://example.org/$\{state.since}`,
  state: { since: { from: '$.changed', take: 'max', initial: '2026-01-01' } },
};
const module = { source: { type: 'module', file: 'a/b.mts' } } as const;
const of = (source: object) => definitionOf({ source, mode: 'upsert' });

test('accepts what the source itself could store', () => {
  for (const [definition, state] of [
    [of(tap), { bookmarks: { people: { since: 3 } } }],
    [of(command), 'any'],
    [of(command), [1]],
    [module, { since: 3 }],
    [of(http), {}],
    [of(http), { values: { since: '2025-01-01' } }],
    [of(http), { values: {}, answers: { of: 'a1', validators: {} } }],
    [of({ type: 'push' }), null],
  ] as const) {
    assert.equal(stateMistake(definition, state), undefined);
    assert.equal(stateMistake(definition, null), undefined);
  }
});

test('refuses anything else, and says what to write instead', () => {
  const deep = JSON.parse(`${'['.repeat(501)}${']'.repeat(501)}`);
  for (const [definition, state, sentence] of [
    [of({ type: 'push' }), {}, /receives its records by push, so its source has no state/],
    [of(tap), JSON.rawJSON('12345678901234567890'), /must be a JSON object/],
    [of(tap), '3', /state of a Singer tap must be a JSON object/],
    [module, [3], /keys and values of `ctx\.state`/],
    [of(command), deep, /at most 500 levels/],
    [of(command), 'é'.repeat(524_288), /larger than 1 MiB/],
    [of(http), 'x', /state of an http source must be a JSON object/],
    [of(http), { since: '2025-01-01' }, /no `since`\. Write \{"values": \{"since": …\}\}/],
    [of(http), { valeus: {} }, /no `valeus`\. It has only `values`/],
    [of(http), { values: ['x'] }, /must be JSON objects/],
    [of(http), { values: { sinc: 'x' } }, /no `sinc`\. Did you mean `since`\?/],
    [of(http), { values: { since: 3 } }, /`values\.since` must be text, such as "3"/],
    [
      of(http),
      { values: { since: JSON.rawJSON('12345678901234567890') } },
      /must be text, such as "12345678901234567890"/,
    ],
    [of({ type: 'http', url: 'https://example.org' }), { values: { a: 'x' } }, /It has no values/],
  ] as const) {
    assert.match(stateMistake(definition, state) ?? '', sentence);
  }
});
