/** Filters: names, null rules, functions, mistakes and bounds. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compile, EvaluationMistake, ExpressionMistake, type Names, verdict } from './expression.ts';

const NAMES: Names = {
  event: {
    id: 'evt_1',
    type: 'workflow_data_change',
    workflowId: 'shop',
    jobId: 'job_1',
    timestamp: '2026-11-23T10:30:00.000Z',
    sequence: 7,
  },
  data: { version: 2, records: { total: 5 } },
  change: 'changed',
  id: '1',
  record: {
    id: '1',
    price: 47.5,
    title: 'Red Phone',
    sold: null,
    tags: ['new', 'sale'],
    offers: [{ shop: 'a', price: 40 }, { shop: 'b' }],
    exact: JSON.rawJSON('12345678901234567890'),
    exactList: [JSON.rawJSON('12345678901234567890')],
  },
  previous: { id: '1', price: 50, title: 'Red phone' },
  changed: ['price', 'title'],
};

function matches(source: string, names: Partial<Names> = {}): boolean {
  const { matches, mistake } = verdict(compile(source), { ...NAMES, ...names });
  assert.equal(mistake, null, `${source}: ${mistake}`);
  return matches;
}

function allMatch(...sources: string[]): void {
  for (const source of sources) assert.equal(matches(source), true, source);
}

function noneMatch(...sources: string[]): void {
  for (const source of sources) assert.equal(matches(source), false, source);
}

function mistakeOf(source: string): ExpressionMistake {
  try {
    compile(source);
  } catch (error) {
    if (error instanceof ExpressionMistake) return error;
    throw error;
  }
  return assert.fail(`${source} was accepted`);
}

function runtimeMistake(source: string): string | null {
  const { matches, mistake } = verdict(compile(source), NAMES);
  assert.equal(matches, false);
  return mistake;
}

test('a filter reads the event, its data, and the record before and after the change', () => {
  allMatch(
    'event.type == "workflow_data_change" && event.workflowId == "shop" && event.jobId != null',
    'event.sequence == 7 && event.id.startsWith("evt_")',
    'data.records.total > 3',
    'change == "changed" && id == "1"',
    'record.price < previous.price',
    'record["title"] != previous["title"]',
    '"price" in changed && !("sold" in changed)',
    'record.offers[0].price == 40',
  );
});

test('a missing field, a field of null, and a field of something that has none are null', () => {
  allMatch(
    'record.missing == null',
    'record.missing.deeper.still == null',
    'record.title.deeper == null',
    'record.tags.length == null',
    'record.tags[5] == null && record.tags[-1] == null && record.tags[0.5] == null',
    'record["missing"] == null',
    'record.sold == null',
    'record.sold != 1',
  );
  assert.equal(matches('previous == null && record.price > 5', { previous: null }), true);
  assert.equal(matches('record.price > 5', { record: null }), false);
});

test('a null is not less, not equal to and not greater than any number or text', () => {
  for (const operator of ['<', '<=', '>', '>=']) {
    noneMatch(
      `record.missing ${operator} 5`,
      `5 ${operator} record.missing`,
      `record.title ${operator} record.missing`,
    );
  }
  allMatch('!(record.missing < 5)', '!(record.missing >= 5)');
});

test('arithmetic, functions and lists of a null are null, and null counts as false', () => {
  allMatch(
    '(record.missing + 1) == null',
    '-record.missing == null',
    'size(record.missing) == null',
    'record.missing.lowerAscii() == null',
    '!record.missing.contains("x")',
    '!record.missing.exists(x, x == 1)',
    '!record.missing.all(x, x == 1)',
    '!record.missing',
    '!(1 in record.missing)',
    'record.missing || true',
    'record.missing ? false : true',
  );
  noneMatch('record.missing', 'record.missing && true', 'record.title.contains(record.missing)');
});

test('a division by zero is null', () => {
  allMatch('record.price / 0 == null', 'record.price % 0 == null', '!(1 / 0 > 5)');
});

test('there is one kind of number', () => {
  allMatch(
    'record.price * 2 == 95',
    'record.price + 0.5 == 48',
    '7 / 2 == 3.5',
    '2 * 1.5 == 3',
    '1 == 1.0',
    'size(record.tags) == 2.0',
    'size(record.tags) / 4 == 0.5',
    '7 % 2.5 == 2.0',
    'record.tags[1.0] == "sale"',
    '0x10 == 16',
  );
});

test('a number with more digits than a double counts as the nearest double', () => {
  allMatch(
    'record.exact > 1e19',
    'record.exact == 12345678901234567890.0',
    'record.exact + 1 > 1',
    'record.exactList.exists(x, x > 1e19)',
    'record.exact in record.exactList',
    'string(record.exact) == "12345678901234567890"',
    'risesBy(record.price, record.exact, 5)',
  );
});

test('lists have macros, which may be nested', () => {
  allMatch(
    'record.tags.exists(t, t == "sale")',
    'record.tags.all(t, size(t) > 2)',
    'record.tags.exists_one(t, t.startsWith("n"))',
    'record.offers.filter(o, o.price > 5).size() == 1',
    'record.offers.map(o, o.shop) == ["a", "b"]',
    'record.offers.map(o, o.price > 5, o.shop).join(",") == "a"',
    'record.tags.all(t, record.tags.exists(u, u == t))',
    'record.tags.exists(id, id == "sale")',
    '"new" in record.tags && !("old" in record.tags)',
    'record.offers[0].exists(key, key == "shop")',
    'record.offers.exists(o, record.tags.exists(t, t + o.shop == "saleb"))',
  );
});

test('has() distinguishes a missing field from a null one', () => {
  allMatch('has(record.sold)', '!has(record.missing)', '!has(record.missing.deeper)', 'has(record.title)');
});

test('texts have functions', () => {
  allMatch(
    'record.title.contains("Phone")',
    'record.title.startsWith("Red") && record.title.endsWith("one")',
    'record.title.lowerAscii() == "red phone" && record.title.upperAscii() == "RED PHONE"',
    'record.title.matches("^R.d\\\\b")',
    'record.title.size() == 9 && size(record.title) == 9',
    'record.title.indexOf("Phone") == 4 && record.title.indexOf("x") == -1',
    'record.title.lastIndexOf("e") == 8',
    'record.title.substring(4) == "Phone" && record.title.substring(0, 3) == "Red"',
    'record.title.split(" ") == ["Red", "Phone"]',
    'record.tags.join(", ") == "new, sale" && record.tags.join() == "newsale"',
    '"  x ".trim() == "x"',
    'string(record.price) + " €" == "47.5 €"',
    'round(record.price) == 48 && round(record.price / 3, 2) == 15.83 && round(record.missing) == null',
    'double("47.5") == record.price && int("3") == 3 && int(3.9) == 3 && bool("true")',
  );
});

test('times have functions, also in a time zone', () => {
  allMatch(
    'timestamp(event.timestamp).getDayOfWeek() == 1',
    'timestamp(event.timestamp).getHours() == 10',
    'timestamp(event.timestamp).getHours("Europe/Berlin") == 11',
    'timestamp(event.timestamp).getHours("Asia/Kolkata") == 16',
    'timestamp(event.timestamp).getMinutes("Asia/Kolkata") == 0',
    'timestamp(event.timestamp).getFullYear() == 2026 && timestamp(event.timestamp).getMonth() == 10',
    'timestamp(event.timestamp).getDate() == 23 && timestamp(event.timestamp).getDayOfMonth() == 22',
    'timestamp(event.timestamp).getDayOfYear() == 326',
    'timestamp(event.timestamp) - timestamp("2026-11-22T10:30:00Z") == duration("24h")',
    'timestamp(event.timestamp) - duration("1h30m") == timestamp("2026-11-23T09:00:00Z")',
    'timestamp("2026-11-23") < timestamp(event.timestamp)',
    'duration("90s") < duration("2m") && duration("90s").getMinutes() == 1',
    'timestamp(record.missing) == null',
  );
});

test('crosses() is true if the values are on different sides, and the limit belongs to the upper side', () => {
  const crosses = (a: number, b: number) => matches(`crosses(${a}, ${b}, 50)`);
  assert.deepEqual(
    [crosses(49, 50), crosses(49, 51), crosses(50, 49), crosses(51, 49)],
    [true, true, true, true],
  );
  assert.deepEqual(
    [crosses(50, 51), crosses(51, 50), crosses(48, 49), crosses(50, 50)],
    [false, false, false, false],
  );
});

test('fallsBelow() and risesAbove() name one direction', () => {
  allMatch(
    'fallsBelow(50, 49, 50)',
    'fallsBelow(51, 49, 50)',
    'risesAbove(50, 51, 50)',
    'risesAbove(49, 51, 50)',
  );
  noneMatch(
    'fallsBelow(51, 50, 50)',
    'fallsBelow(49, 48, 50)',
    'risesAbove(49, 50, 50)',
    'risesAbove(51, 52, 50)',
  );
});

test('fallsBy() and risesBy() take an amount or a percentage of the first value', () => {
  allMatch(
    'fallsBy(100, 95, 5)',
    'fallsBy(100, 95, "5%")',
    'fallsBy(19.99, 18.9905, "5%")',
    'fallsBy(0.3, 0.1, 0.2)',
    'risesBy(100, 105, "5%")',
    'risesBy(-100, -95, "5%")',
    'risesBy(0, 5, 5)',
    'fallsBy(previous.price, record.price, "5 %")',
  );
  noneMatch(
    'fallsBy(100, 95.01, "5%")',
    'fallsBy(100, 105, 5)',
    'risesBy(0, 5, "5%")',
    'risesBy(100, 104.99, 5)',
  );
});

test('a null makes the functions about limits false', () => {
  for (const name of ['crosses', 'fallsBelow', 'risesAbove', 'fallsBy', 'risesBy']) {
    noneMatch(`${name}(null, 5, 5)`, `${name}(5, record.missing, 5)`, `${name}(5, 6, record.missing)`);
  }
});

test('a type error at run time is no match, and is reported with the part of the expression', () => {
  assert.equal(
    runtimeMistake('record.title < 5'),
    'Cannot compare a string ("Red Phone") with a number (5), in `record.title < 5`',
  );
  assert.match(
    runtimeMistake('record.title + 1 == "x"') ?? '',
    /^"\+" cannot be applied to a string .* in `record/,
  );
  assert.match(
    runtimeMistake('record.title.contains(record.price)') ?? '',
    /^Expects a text, not a number \(47.5\)/,
  );
  assert.match(
    runtimeMistake('crosses(previous.title, record.title, 5)') ?? '',
    /^Expects a number, not a string/,
  );
  assert.match(runtimeMistake('(record.title + record.title * 1) < 5') ?? '', /"\*" cannot be applied/);
  const long = { ...NAMES, record: { title: `${'x'.repeat(60)}ada@example.com` } };
  assert.match(
    verdict(compile('record.title < 5'), long).mistake ?? '',
    /^Cannot compare a string of 75 characters with/,
  );
  assert.match(runtimeMistake('record.price && true') ?? '', /^Expects true or false, not a number/);
  assert.match(runtimeMistake('record.price.exists(x, x == 1)') ?? '', /^Expects a list, not a number/);
  assert.equal(runtimeMistake('record.price'), 'A filter is true or false, but the value is a number (47.5)');
  assert.equal(runtimeMistake('record.missing'), null);
});

test('a type error does not matter if the rest decides', () => {
  allMatch(
    'record.title < 5 || true',
    'true || record.title < 5',
    '!(record.title < 5 && false)',
    '[1, "a"].exists(x, x == "a" || x < 5)',
  );
  assert.equal(runtimeMistake('["a", 6].exists(x, x < 5)')?.startsWith('Cannot compare'), true);
});

test('a mistake is one sentence with the place and the nearest right name', () => {
  const sentences: Record<string, string> = {
    'rekord.price < 5': 'The name `rekord` is unknown (at character 1); did you mean "record"?',
    'true && crosss(1, 2, 3)': 'The function "crosss" is unknown (at character 9); did you mean "crosses"?',
    'event.tpye == "x"': 'An event has no field "tpye" (at character 7); did you mean "type"?',
    'record.price = 5': 'A single = has no meaning (at character 14); compare with ==',
    'record.price <': 'The expression is incomplete (at character 15)',
    '"a" < 1': '"<" cannot be applied to a text and a number (at character 1)',
    '1 + 2': 'A filter is true or false, but the value of this expression is a number (at character 1)',
    'contains("x")': 'The function contains is written text.contains(part) (at character 1)',
    'crosses(1, 2)':
      'crosses is called with 2 arguments, but is written crosses(a, b, limit) (at character 1)',
    'true &&\n  rekord.price < 5':
      'The name `rekord` is unknown (at line 2, character 3); did you mean "record"?',
    ' ': 'The expression is empty',
    'record.price < 5 and true': '"and" has no meaning (at character 18); write &&',
    'true && not record.sold': '"not" has no meaning (at character 9); write !',
    'record.price === 5': '"===" has no meaning (at character 14); write ==',
    'record.in == 1': '"in" is a reserved word (at character 8); write ["in"] instead of .in',
    'if (record.price) 5': '"if" is a reserved word (at character 1)',
    'record.price < 5;': '";" was not expected (at character 17)',
    'record.tags.exists(1, true)': 'exists is written list.exists(x, condition) (at character 20)',
    'record.tags.exists(t, 5)': 'A condition is true or false, but this one is a number (at character 23)',
    '"a" && true': 'A condition is true or false, but this one is a text (at character 1)',
    'has(record["a"].b)': 'has() takes a field of a name, such as has(record.price) (at character 5)',
    'size(5) > 1': 'size(value) cannot be applied to a number (at character 1)',
    'changed == "price"': '"==" cannot be applied to a list and a text (at character 1)',
    'event.id.length == 1': 'A text has no fields (at character 10)',
    'record.tags[1]["a"] == changed["a"]': 'The position in a list is a number, not a text (at character 24)',
  };
  for (const [source, sentence] of Object.entries(sentences))
    assert.equal(mistakeOf(source).message, sentence);
  assert.match(mistakeOf('price < 5').message, /fields are read as record\.price$/);
  const { from, to } = mistakeOf('true && rekord.price < 5');
  assert.deepEqual([from, to], [8, 14]);
});

test('an element of an empty list has no type', () => {
  for (const source of ['[].exists(x, 1 == x)', '[].map(x, 1 == x).size() == 0 || 1 == [][0]'])
    assert.equal(compile(source).source, source);
});

test('the branches of a choice may have different types', () => {
  allMatch('(record.sold ? 1 : "no") == "no"', '(true ? "x" : null) != null');
});

test('literal arguments are checked when the filter is saved', () => {
  assert.match(
    mistakeOf('record.title.matches("(")').message,
    /^The regular expression "\(" is invalid: missing closing \)/,
  );
  assert.match(
    mistakeOf('fallsBy(previous.price, record.price, "5")').message,
    /^An amount is a number greater than 0/,
  );
  assert.match(
    mistakeOf('fallsBy(previous.price, record.price, -5)').message,
    /^An amount is a number greater than 0/,
  );
  assert.match(
    mistakeOf('crosses(previous.price, record.price, "5")').message,
    /^Expects a number, not a string/,
  );
  assert.match(mistakeOf('timestamp("soon") > timestamp(event.timestamp)').message, /to a timestamp/);
  assert.match(mistakeOf('duration("5 days") > duration("1h")').message, /to a duration/);
  assert.match(mistakeOf('timestamp(event.timestamp).getHours("Berlin") > 5').message, /^No such time zone/);
});

test('a filter knows whether it reads a record', () => {
  const reads = (source: string) => compile(source).readsRecord;
  assert.equal(reads('event.type == "workflow_failed" && data.attempt > 1'), false);
  assert.equal(reads('data.list.exists(record, record == 1)'), false);
  for (const name of ['change == null', 'id == "1"', 'record.a', 'has(previous.a)', '"a" in changed']) {
    assert.equal(reads(name), true, name);
  }
});

test('an evaluation has a limited number of steps', () => {
  const record = {
    list: Array.from({ length: 1_000 }, (_, at) => at),
    text: 'x'.repeat(500_000),
    almost: `${'x'.repeat(9_000)}y${'x'.repeat(9_000)}`,
  };
  const sources = [
    'record.list.all(a, record.list.all(b, record.list.all(c, a + b + c >= 0)))',
    'record.list.exists(a, record.list.exists(b, a < 0 || "x" < b))',
    'record.list.all(a, !record.text.contains("y"))',
    'record.list.map(a, record.list).map(a, record.list.map(b, record.list)).size() > 1',
    'record.list.exists(a, record.text.matches("(x+x+)+y"))',
    'record.list.join(record.text) == ""',
    `string([${Array(400).fill('record').join()}]) == ""`,
    'record.text.contains(record.almost)',
    'record.text.split(record.almost).size() > 5',
    'record.list.exists(a, record.text == record.text + "x")',
    `record.list.exists(a, record.list.exists(b, ${Array(200).fill('b < 0').join(' || ')}))`,
    `${'[1,2,3,4,5,6,7,8,9,10].exists(a, '.repeat(8)}a > 10${')'.repeat(8)}`,
  ];
  for (const source of sources) {
    const { mistake } = verdict(compile(source), { ...NAMES, record });
    assert.match(mistake ?? '', /^The evaluation takes more than 200,000 steps/, source);
  }
});

test('an expression that is too long, too deep or too large is refused', () => {
  assert.match(
    mistakeOf(`"${'x'.repeat(4_095)}" == "x"`).message,
    /^An expression has at most 4,096 characters/,
  );
  for (const source of ['('.repeat(4_096), '['.repeat(4_096), '!'.repeat(4_096), '-'.repeat(4_096)])
    mistakeOf(source);
  mistakeOf(`${'('.repeat(2_000)}true${')'.repeat(2_000)}`);
  mistakeOf(`record${'.a'.repeat(2_000)} == 1`);
  mistakeOf(`${'true ? '.repeat(500)}true${' : true'.repeat(50)}`);
  assert.equal(matches(`${'false || '.repeat(40)}true`), true);
  assert.equal(
    matches(
      `id in [${Array.from({ length: 800 }, (_, at) => `"${at}"`).join()}]`
        .slice(0, 4_000)
        .replace(/,[^,]*$/, ']'),
    ),
    true,
  );
});

test('fields of the prototype are no fields', () => {
  allMatch(
    'record.constructor == null',
    'record.toString == null',
    'record["__proto__"] == null',
    '!has(record.valueOf)',
  );
  const record = JSON.parse('{"__proto__": {"a": 1}}');
  assert.equal(matches('record["__proto__"].a == 1', { record }), true);
  assert.match(mistakeOf('record.toString()').message, /is unknown|is written/);
  assert.match(mistakeOf('constructor("x")').message, /unknown/);
});

test('evaluate() throws only EvaluationMistake', () => {
  assert.throws(() => compile('record.title < 5').evaluate(NAMES), EvaluationMistake);
});
