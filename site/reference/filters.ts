/** Generates the reference of filters and templates from the tables of names and functions. */
import { NAMES } from '../../src/model/expression.ts';
import { FUNCTIONS, MACROS, METHODS } from '../../src/model/expressions/functions.ts';
import { table } from './table.ts';

const HEAD = `# Filters and templates

The names, functions and rules of expressions in filters and templates. Generated from \`src/model/expressions\`.

A filter is an expression of the [Common Expression Language](https://cel.dev) (CEL) that is true or false:
\`record.price < 50 && record.title.contains("phone")\`. A filter that reads \`change\`, \`id\`, \`record\`, \`previous\` or
\`changed\` is evaluated for every difference between two versions of a workflow's records. Any other filter is evaluated
once for each event, and a filter on differences never matches an event without differences, unless it says so:
\`event.type == "workflow_failed" || record.price < 50\`.

A template is JSON whose strings may hold \`\${…}\` with such expressions. A string that is only \`\${…}\` becomes the value
of the expression, such as a number or a list. In any other string, the value becomes text; null becomes an empty text. \`$\${\`
is a literal \`\${\`. The names of a record mean the first difference that is sent. A body that starts with \`{"specversion":\` is sent as
\`application/cloudevents+json\`, any other as \`application/json\`. In addition, templates can read
\`differences\`: a list of everything that is sent, each item with \`change\`, \`id\`, \`record\`, \`previous\`, \`changed\` and
\`fields\`.

\`\`\`json
{
  "text": "\${record.title} now costs \${record.price}",
  "all": "\${differences.map(d, d.id)}"
}
\`\`\`
`;

const RULES = `## Null

- A missing field, the item of a list at a position that it does not have, and any field of null, a text or a number are null.
- \`<\`, \`<=\`, \`>\` and \`>=\` with a null are false. \`==\` and \`!=\` compare null like any other value.
- Arithmetic, functions, methods and \`exists\`, \`all\`, \`map\` and \`filter\` of a null are null. \`crosses\`, \`fallsBelow\`,
  \`risesAbove\`, \`fallsBy\` and \`risesBy\` of a null are false. A division by 0 is null.
- Where a condition is expected, null counts as false: in \`&&\`, \`||\`, \`!\`, \`? :\`, and as the value of a filter. Therefore
  \`!(record.price < 50)\` is true of a record without a price, and \`record.price >= 50\` is false.
- \`has(record.price)\` is true if the field exists, even if it is null.

## Types

- There is one kind of number, as in JSON: \`7 / 2\` is 3.5, and \`1 == 1.0\`. A number with more digits than a double counts
  as the nearest double; a template that returns the number itself keeps all its digits.
- Values of different types are not equal. Texts are not compared with numbers: \`"9" < 10\` is a mistake. If a field holds
  numbers as texts, write \`double(record.price) < 50\`.
- What a filter shows to be wrong is refused when it is saved: unknown names and functions, wrong numbers of arguments, and
  operators between types that never fit. What only a record shows is no match, and the webhook then shows the mistake with
  the record. As in CEL, a mistake on one side of \`||\` or \`&&\` does not matter if the other side decides.

## Limits

An expression has at most 4,096 characters, 4,000 parts, 60 levels, and 1,000 items in a list. A regular expression has the
syntax of RE2 and at most 1,000 characters. A template has at most 16 KiB of JSON, 200 expressions and 20 levels, and makes at
most 256 KiB. An evaluation ends after 200,000 steps: a part that is evaluated for an item of a list is one step, and so are
16 characters of a text that is read. All expressions of a template share these steps. If a template cannot be evaluated, the
event is sent in the format \`standard\`, and the webhook shows the mistake.
`;

const functions = (title: string, of: Readonly<Record<string, { form: string; what: string }>>): string =>
  `## ${title}\n\n${table(
    ['Function', 'Result'],
    Object.values(of).map(({ form, what }) => [`\`${form}\``, what]),
  )}\n`;

export const filtersReference: string = [
  HEAD,
  `## Names\n\n${table(
    ['Name', 'Meaning'],
    Object.entries(NAMES).map(([name, meaning]) => [`\`${name}\``, meaning]),
  )}\n\nFor an event without differences, \`change\`, \`id\`, \`record\` and \`previous\` are null, and \`changed\` is empty. A field whose
name is no identifier is read as \`record["list price"]\`.\n`,
  functions('Functions', FUNCTIONS),
  `\`crosses(49, 50, 50)\` and \`crosses(50, 49, 50)\` are true: the limit itself belongs to the upper side. \`fallsBy\` and
\`risesBy\` allow for the rounding of doubles, so \`fallsBy(19.99, 18.9905, "5%")\` is true. A percentage of 0 is never
reached. \`timestamp(event.timestamp)\` is the time of the event.\n`,
  functions('Methods', METHODS),
  'A time without a time zone is UTC: `timestamp(event.timestamp).getHours("Europe/Berlin")`.\n',
  functions('Lists', MACROS),
  RULES,
].join('\n');
