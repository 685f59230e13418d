/** Fields: paths, templates, conversions, and warnings about fields that match nothing. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { site, take } from '../../../test/support/jobs/source-site.ts';
import { piecesOf, readDate, readNumber } from './fields.ts';

test('fields of JSON are paths, names, templates and conversions', async (t) => {
  const { url } = await site(t, {
    '/': [
      {
        'E-Mail': ' ada@x.org ',
        name: { first: 'Ada', last: null },
        tags: [{ t: 'a' }, { t: 'b' }],
        price: '1.234,50 €',
        at: '31.01.2026',
        link: '/ada',
        on: true,
        nothing: null,
        deep: { x: [1] },
      },
    ],
  });
  const { records, said } = await take({
    source: { url: `${url}/` },
    fields: {
      id: '{{$.name.first}}-{{$.tags[0].t}}',
      email: { from: 'E-Mail', trim: true },
      full: '{{$.name.first}} {{$.name.last}}',
      none: '{{$.gone}} {{$.nothing}}',
      tags: { from: '$.tags[*].t', all: true },
      first: '$.tags[?@.t != "x"].t',
      price: { from: 'price', number: ',' },
      at: { from: 'at', date: 'DD.MM.YYYY' },
      badDate: { from: 'price', date: true },
      link: { from: 'link', absolute: true },
      slug: { from: 'link', replace: ['^/(\\w)\\w*$', '$1!'] },
      on: 'on',
      deep: '$.deep',
      otherwise: { from: 'gone', default: 'n/a' },
    },
  });
  assert.deepEqual(records, [
    {
      id: 'Ada-a',
      email: 'ada@x.org',
      full: 'Ada',
      tags: ['a', 'b'],
      first: 'a',
      price: 1234.5,
      at: '2026-01-31',
      link: `${url}/ada`,
      slug: 'a!',
      on: true,
      deep: { x: [1] },
      otherwise: 'n/a',
    },
  ]);
  assert.deepEqual(said, [
    'warn The field `none` was found in none of 1 records',
    'warn The field `badDate` was found in none of 1 records; 1 could not be converted, such as "1.234,50 €"',
    'warn The field `otherwise` was found in none of 1 records',
  ]);
});

test('fields of HTML are texts as browsers show them, attributes and lists', async (t) => {
  const { url } = await site(t, {
    '/x/': `<base href="/y/"><article data-id=" 7 "><h2>Ada&nbsp;
      <em>L.</em></h2><p>One<br>two</p><p>three<script>no()</script></p><img src="a.png" srcset="b 2x">
      <a href="#top">up</a><ul><li>x<li>y</ul></article>`,
  });
  const { records } = await take({
    source: { url: `${url}/x/`, parse: 'html', records: 'article' },
    fields: {
      id: '@data-id',
      name: 'h2',
      text: { from: 'p', all: true },
      raw: { from: 'h2', trim: false },
      image: 'img@src',
      set: 'img@srcset',
      link: { from: 'a@href', absolute: false },
      items: { from: 'li', all: true },
      both: '{{h2}} ({{@data-id}})',
    },
  });
  assert.deepEqual(records, [
    {
      id: '7',
      name: 'Ada L.',
      text: ['One two', 'three'],
      raw: 'Ada\u00a0\n      L.',
      image: `${url}/y/a.png`,
      set: 'b 2x',
      link: '#top',
      items: ['x', 'y'],
      both: 'Ada L. (7)',
    },
  ]);
});

test('numbers are parsed in common notations', () => {
  const cases: [text: string, decimal: '.' | ',', number: number | undefined][] = [
    ['1,234.50', '.', 1234.5],
    ['$ 1 234', '.', 1234],
    ["CHF 1'234.05", '.', 1234.05],
    ['−3', '.', -3],
    ['-1.234,5 €', ',', -1234.5],
    ['.5', '.', 0.5],
    ['2e3', '.', 2000],
    ['12 of 20', '.', undefined],
    ['none', '.', undefined],
    ['- 3', '.', -3],
    ['1,234,567', '.', 1234567],
    ['12,50 €', '.', undefined],
    ['12.50 €', ',', undefined],
    ['1.234', ',', 1234],
    ['1,2345', '.', undefined],
    ['1 23', '.', undefined],
    ["1,234'567", '.', undefined],
    ['9007199254740991', '.', 9007199254740991],
    ['9007199254740993', '.', undefined],
    ['-9,007,199,254,740,993.0', '.', undefined],
  ];
  for (const [text, decimal, number] of cases) assert.equal(readNumber(text, decimal), number, text);
});

test('dates are parsed by their pattern, and impossible dates are refused', () => {
  const cases: [text: string, pattern: string, date: string | undefined][] = [
    ['0050-03-01', 'YYYY-MM-DD', undefined],
    ['01.03.2026 10:20:75', 'DD.MM.YYYY HH:mm:ss', undefined],
    ['01.03.2026 10:20:59', 'DD.MM.YYYY HH:mm:ss', '2026-03-01T10:20:59.000Z'],
    ['2026-01-31', 'auto', '2026-01-31'],
    ['2026-01-31T10:00:00+02:00', 'auto', '2026-01-31T08:00:00.000Z'],
    ['Sat, 31 Jan 2026 10:00:00 GMT', 'auto', '2026-01-31T10:00:00.000Z'],
    ['1769853600', 'auto', '2026-01-31T10:00:00.000Z'],
    ['2026-01-31 10:00', 'auto', undefined],
    ['31.1.26', 'D.M.YY', '2026-01-31'],
    ['Jan 31, 2026', 'MMM D, YYYY', '2026-01-31'],
    ['31 January 2026 23:59', 'DD MMMM YYYY HH:mm', '2026-01-31T23:59:00.000Z'],
    ['31.02.2026', 'DD.MM.YYYY', undefined],
    ['31 Foo 2026', 'DD MMM YYYY', undefined],
  ];
  for (const [text, pattern, date] of cases)
    assert.equal(readDate(text, pattern), date, `${text} as ${pattern}`);
});

test('a template has the content of braces at odd indexes, and unclosed braces are text', () => {
  for (const [text, pieces] of [
    ['a', ['a']],
    ['{{a}}', ['', 'a', '']],
    ['{{ a }} ({{b}})', ['', ' a ', ' (', 'b', ')']],
    ['{{}}', ['{{}}']],
    ['{{}}}}', ['', '}', '}']],
    ['{{a}} {{b', ['', 'a', ' {{b']],
    ['{{a{{b}}', ['', 'a{{b', '']],
  ] as const) {
    assert.deepEqual(piecesOf(text), pieces, text);
  }
});
