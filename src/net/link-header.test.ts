/** Parsing of the `Link` header. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { linkTo } from './response-headers.ts';

test('finds the link of a relation in every syntax', () => {
  const cases: [header: string | undefined, target: string | undefined][] = [
    ['<https://x/?page=2>; rel="next", <https://x/?page=9>; rel="last"', 'https://x/?page=2'],
    ['<?a=1,2;3>; title="a, b; rel=next"; rel=next', '?a=1,2;3'],
    ['<a>;rel="prev NEXT"', 'a'],
    ['<a>; rel="nextish", <b>; REL = next', 'b'],
    ['<a>', undefined],
    ['', undefined],
    [undefined, undefined],
  ];
  for (const [header, target] of cases) assert.equal(linkTo('next', header), target, String(header));
});
