/** Completion of names in filters and templates. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { suggestionsAt } from './completion.ts';
import { fieldsIn } from './starts.ts';

const known = {
  fields: fieldsIn([{ id: '1', price: 3, title: 'Lamp', 'unit price': 1 }]),
  data: ['version', 'records.added'],
};

/** The texts that are offered at the cursor `|`, and the text that the first one makes. */
function offered(marked: string, isTemplate = false) {
  const at = marked.indexOf('|');
  const source = marked.replace('|', '');
  const { from, options } = suggestionsAt(source, at, { known, isTemplate });
  const [first] = options;
  return {
    texts: options.map(({ text }) => text),
    made: first === undefined ? undefined : source.slice(0, from) + first.text + source.slice(at),
  };
}

test('completes fields, names of the event and functions', () => {
  assert.equal(offered('record.pr| < 50').made, 'record.price < 50');
  assert.deepEqual(offered('previous.|').texts.slice(0, 4), [
    'previous.id',
    'previous.price',
    'previous.title',
    'previous["unit price"]',
  ]);
  assert.equal(offered('record.unit|').made, 'record["unit price"]');
  assert.equal(offered('record["unit pr|').made, 'record["unit price"]');
  assert.equal(offered('record.stock > 0 && ev|').made, 'record.stock > 0 && event.type');
  assert.equal(offered('data.records.|').made, 'data.records.added');
  assert.equal(offered('fallsBy(previous.price, rec|').made, 'fallsBy(previous.price, record.id');
  assert.equal(offered('falls|').made, 'fallsBy(');
});

test('finds a field by its name alone', () => {
  assert.deepEqual(offered('price|').texts.slice(0, 2), ['record.price', 'record["unit price"]']);
});

test('offers methods after a field or a result, but not after a name of fields', () => {
  assert.equal(offered('record.title.con|').made, 'record.title.contains(');
  assert.equal(offered('timestamp(event.timestamp).getD|').made, 'timestamp(event.timestamp).getDayOfWeek(');
  assert.equal(offered('record.title.lowerA|').made, 'record.title.lowerAscii()');
  assert.ok(!offered('record.|').texts.some((text) => text.includes('contains')));
});

test('offers nothing within a text, nor what is already there', () => {
  assert.deepEqual(offered('record.title == "rec|').texts, []);
  assert.ok(!offered('change|').texts.includes('change'));
});

test('completes in a template only between its braces', () => {
  assert.deepEqual(offered(`{"text": "rec|"}`, true).texts, []);
  assert.equal(offered(`{"text": "\${rec|}"}`, true).made, `{"text": "\${record.id}"}`);
  assert.deepEqual(offered(`{"text": "\${id} rec|"}`, true).texts, []);
  assert.ok(offered(`{"all": "\${diff|}"}`, true).texts.includes('differences'));
});
