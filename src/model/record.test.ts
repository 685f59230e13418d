/** Which records are accepted, and how they are stored. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { InvalidRecordError, readRecord } from './record.ts';

const cases: [what: string, line: string, key: string[], body: string][] = [
  [
    'passes a whole record through',
    '{"id":"1","name":"Ada","x":[1,{"y":null}]}',
    [],
    '{"id":"1","name":"Ada","x":[1,{"y":null}]}',
  ],
  ['turns a numeric id into a string', '{"id":7}', [], '{"id":"7"}'],
  [
    'keeps every digit of a large numeric id',
    '{"id":12345678901234567890}',
    [],
    '{"id":"12345678901234567890"}',
  ],
  [
    'turns name and email into strings',
    '{"id":"1","name":5,"email":true}',
    [],
    '{"id":"1","name":"5","email":"true"}',
  ],
  [
    'drops a null name and email, but no other null',
    '{"id":"1","name":null,"email":null,"z":null}',
    [],
    '{"id":"1","z":null}',
  ],
  ['does not validate email addresses', '{"id":"1","email":"nonsense"}', [], '{"id":"1","email":"nonsense"}'],
  ['takes the id from a key field and keeps the field', '{"n":3,"v":1}', ['n'], '{"id":"3","n":3,"v":1}'],
  [
    'keeps numbers that a double would change',
    '{"id":"1","big":9007199254740993123,"huge":1e999}',
    [],
    '{"id":"1","big":9007199254740993123,"huge":1e999}',
  ],
  [
    'keeps the digits on both sides of a long fraction',
    '{"id":"1","at":123456789.123456789}',
    [],
    '{"id":"1","at":123456789.123456789}',
  ],
  ['keeps a field called __proto__', '{"id":"1","__proto__":{"a":1}}', [], '{"id":"1","__proto__":{"a":1}}'],
];
for (const [what, line, key, body] of cases) {
  test(what, () => assert.equal(readRecord(line, key).body, body));
}

test('the hash of several key fields depends on their order and boundaries', () => {
  const id = (line: string) => readRecord(line, ['a', 'b']).id;
  assert.match(id('{"a":"x","b":1}'), /^[0-9a-f]{32}$/);
  assert.equal(id('{"a":"x","b":1}'), id('{"b":1,"a":"x","c":2}'));
  assert.notEqual(id('{"a":"xy","b":"z"}'), id('{"a":"x","b":"yz"}'));
});

const refused: [what: string, line: string, key: string[], says: RegExp][] = [
  ['no JSON', '{"id":', [], /not valid JSON/],
  ['an array', '[1]', [], /not a JSON object/],
  ['a missing id', '{"name":"x"}', [], /`id`.*is missing.*`key`/],
  ['a null id', '{"id":null}', [], /`id`.*is null/],
  ['an empty id', '{"id":""}', [], /`id` is empty/],
  ['an id that is an object', '{"id":{}}', [], /`id`.*object/],
  ['a missing key field', '{"id":"1"}', ['n'], /`n`.*is missing/],
  ['a name that is an object', '{"id":"1","name":{"first":"A"}}', [], /`name` must be a string/],
  ['an email that is a list', '{"id":"1","email":["a"]}', [], /`email` must be a string/],
  ['a record over 1 MiB', `{"id":"1","x":"${'y'.repeat(1_048_576)}"}`, [], /has \d+ bytes/],
  [
    'more than 5,000 fields',
    `{"id":"1",${Array.from({ length: 5_000 }, (_, n) => `"f${n}":0`).join(',')}}`,
    [],
    /has 5001 fields; at most 5000/,
  ],
  ['more than 500 levels', `{"id":"1","x":${'['.repeat(500)}${']'.repeat(500)}}`, [], /too deeply/],
  [
    'a record too deep to be searched for long numbers',
    `{"id":1234567890123456789,"x":${'['.repeat(200_000)}${']'.repeat(200_000)}}`,
    [],
    /too deeply/,
  ],
  ['an id with a NUL', '{"id":"a\\u0000b"}', [], /NUL/],
  ['an id with a lone surrogate', '{"id":"a\\ud800"}', [], /`id` is not valid Unicode/],
];
test('accepts 5,000 fields, and any number of colons', () => {
  const fields = Array.from({ length: 4_998 }, (_, n) => `"f${n}":0`);
  const line = `{"id":"1",${fields.join(',')},"x":"${':'.repeat(9_000)}"}`;
  assert.equal(readRecord(line, []).fields.length, 5_000);
});

test('accepts 500 levels, and any number of lists side by side', () => {
  const deep = `{"id":"1","x":${'['.repeat(499)}${']'.repeat(499)}}`;
  const wide = `{"id":"1","x":[${'[],{},'.repeat(1_000)}12345678901234567890]}`;
  for (const line of [deep, wide]) assert.equal(readRecord(line, []).body, line);
});

for (const [what, line, key, says] of refused) {
  test(`rejects ${what}`, () => {
    assert.throws(
      () => readRecord(line, key),
      (error: Error) => error instanceof InvalidRecordError && says.test(error.message),
    );
  });
}

test('names the invalid field, and lists the fields of a record', () => {
  const fault = (line: string) => {
    try {
      readRecord(line, ['n']);
    } catch (error) {
      return (error as InvalidRecordError).field;
    }
    return undefined;
  };
  assert.equal(fault('{"n":null}'), 'n');
  assert.equal(fault('{"n":1,"email":[]}'), 'email');
  assert.equal(fault('[]'), null);
  const { fields, bytes } = readRecord('{"n":1,"name":null,"é":2}', ['n']);
  assert.deepEqual(fields, ['id', 'n', 'é']);
  assert.equal(bytes, Buffer.byteLength('{"id":"1","n":1,"é":2}'));
});
