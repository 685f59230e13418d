/** Recognizing people, and redacting texts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { changeSample, messageText } from '../../test/support/messages/samples.ts';
import { FORMATS_FOR_PEOPLE } from '../model/rule.ts';
import { TEXT_HOLDERS } from './find-person.ts';
import { createRedactor, isAddress, isTheirs, needlesOf, type Person } from './person.ts';

const person = (ids: string[] = [], email: string | null = 'Ada.L@Example.com'): Person => ({
  email,
  ids: new Map([['people', new Set(ids)]]),
});
const { lines, json, mentions } = createRedactor(person(['person-7f3a', '7']));

test('a record belongs to a person by its address in any case, or by its id in its workflow', () => {
  const theirs = (id: string, email: unknown, workflowId = 'people') =>
    isTheirs(person(['7']), { workflowId, id, body: JSON.stringify({ id, email }) });
  assert.ok(theirs('1', ' ADA.L@example.COM '));
  assert.ok(theirs('7', 'x@example.com'));
  assert.ok(!theirs('7', 'x@example.com', 'products'));
  assert.ok(!theirs('1', 'ada.l@example.com.au'));
  assert.ok(!theirs('1', ['ada.l@example.com']));
});

test('finds addresses and ids in any escaped form, but not inside longer words', () => {
  for (const text of [
    'ada.l@example.com',
    '<ADA.L@EXAMPLE.COM>',
    'mailto:ada.l@example.com.',
    '?to=ada.l%40example.com&x',
    '%3Dada.l%40example.com',
    '"\\nada.l@example.com"',
    '{"email":"ada.l@exam…',
    'line\nada.l@ex',
    'see person-7f3a!',
  ]) {
    assert.ok(mentions(text), text);
  }
  for (const text of [
    'hada.l@example.com',
    'x.ada.l@example.com',
    'ada.l@example.com.au',
    'ada.l@example.community',
    'person-7f3a9',
    'my-person-7f3a',
    'record 7',
    'ada.l@other.example',
  ]) {
    assert.ok(!mentions(text), text);
  }
});

test('erases lines of plain text that name the person', () => {
  assert.equal(lines('one\nRecord of Ada <ada.l@example.com> 1815\nthree'), 'one\n[erased]\nthree');
  assert.equal(lines('nobody\nhere'), 'nobody\nhere');
});

test('keeps the structure, other strings and all digits of a state', () => {
  const text =
    '{"n":12345678901234567890,"last":{"name":"Ada","email":"ADA.L@example.com","born":1815},"note":"to ada.l@example.com now","ada.l@example.com":"x","others":["b@example.com"]}';
  assert.equal(
    json(text),
    '{"n":12345678901234567890,"last":{"name":"[erased]","email":"[erased]","born":1815},"note":"to [erased] now","[erased]":"[erased]","others":["b@example.com"]}',
  );
});

test('removes differences of a person from an event, and sets `truncated`', () => {
  const event = (differences: unknown[], truncated: boolean) =>
    JSON.stringify({ id: 'evt_1', data: { workflowId: 'people', differences, truncated } });
  const field = (value: unknown, key = 'name') => ({ key, value });
  const others = [{ type: 'added', id: '8', fields: [field('Bob'), field('b@example.com', 'email')] }];
  const theirs = [
    { type: 'changed', id: '7', fields: [{ key: 'name', value: 'Ada K', previousValue: 'Ada' }] },
    { type: 'removed', id: '9', fields: [{ key: 'email', previousValue: 'ada.l@EXAMPLE.com' }] },
  ];
  const redactor = createRedactor(person(['7']));
  assert.equal(redactor.event(event([...others, ...theirs], false), 'people'), event(others, true));
  assert.equal(redactor.event(event(others, false), 'people'), event(others, false));
  assert.ok(redactor.concerns(event(theirs.slice(0, 1), false), 'people'));
  assert.ok(!redactor.concerns(event(theirs.slice(0, 1), false), 'products'));
});

test('keeps numbers, the envelope and ids of other people in an event, even if they match', () => {
  const record = (id: string) => ({
    type: 'added',
    id,
    fields: [
      { key: 'total', value: 2 },
      { key: 'born', value: '20260101' },
      { key: 'ref', value: 20260101 },
      { key: 'tags', value: { 17: '17', 2: 2, a: ['17', 17] } },
    ],
  });
  const event = (differences: unknown[], truncated: boolean) =>
    JSON.stringify({
      id: 'evt_20260101',
      teamId: '17',
      type: 'workflow_data_change',
      timestamp: '2026-01-01T17:02:17.000Z',
      sequence: 17,
      workflowId: '1@2',
      jobId: '20260101',
      data: {
        workflowId: '1@2',
        jobId: '20260101',
        version: 2,
        records: { total: 20260101, added: 17, changed: 2, removed: 0 },
        dataUrl: 'http://x/v1/workflows/1%402/data',
        differences,
        truncated,
      },
    });
  const others = ['170', '1', '17-1', 'a17', '20260101-1', '2'].map(record);
  const all = [...others.slice(0, 3), record('17'), record('20260101'), ...others.slice(3)];
  const { event: without } = createRedactor({
    email: '1@2',
    ids: new Map([['1@2', new Set(['17', '20260101', 'workflowId', 'differences'])]]),
  });
  assert.equal(without(event(all, false), '1@2'), event(others, true));
  assert.equal(without(event(others, false), '1@2'), event(others, false));
  // Ids identify records only within a workflow.
  assert.equal(without(event(all, false), 'other'), event(all, false));
});

test('removes an address from the texts of an event, and erases the line of an error', () => {
  const { event: without } = createRedactor(person());
  const event = (data: object) => JSON.stringify({ id: 'evt_1', type: 'workflow_failed', data });
  const field = (value: unknown) => ({
    differences: [{ type: 'added', id: '8', fields: [{ key: 'x', value }] }],
  });
  for (const [data, rest] of [
    [
      { error: 'one\nno ADA.L@example.com\n3', state: 'failed' },
      { error: 'one\n[erased]\n3', state: 'failed' },
    ],
    [{ reason: 'ada.l@example.com' }, { reason: '[erased]' }],
    [{ url: 'http://x/?to=ada.l%40example.com' }, { url: 'http://x/?to=[erased]' }],
    [field('ask ada.l@example.com, 7'), field('ask [erased], 7')],
    [
      field({ email: 'ada.l@example.com', name: 'Ada', n: 7 }),
      field({ email: '[erased]', name: '[erased]', n: 7 }),
    ],
  ] as const) {
    assert.equal(without(event(data), 'people'), event(rest));
  }
});

test('keeps numbers in a state, even one that equals an id of the person', () => {
  const { json: without } = createRedactor(person(['12345678']));
  assert.equal(
    without('{"12345678":{"n":1,"name":"Ada"},"next":12345678,"big":12345678901234567890,"of":"12345678"}'),
    '{"[erased]":{"n":1,"name":"[erased]"},"next":12345678,"big":12345678901234567890,"of":"[erased]"}',
  );
});

test('an address has an @ between other characters', () => {
  for (const text of ['1@2', ' ada.l@example.com ', 'ä@ö']) assert.ok(isAddress(text), text);
  for (const text of ['2', '0', '@', 'a@', '@b', 'a @ b', 'a@@', 'true', ''])
    assert.ok(!isAddress(text), text);
});

test('every text that names the person contains one of the needles', () => {
  const local = fc.stringMatching(/^[a-zäöüß+'"._-]{1,12}$/u);
  fc.assert(
    fc.property(
      local,
      fc.boolean(),
      fc.boolean(),
      fc.string(),
      fc.string(),
      (name, fullAddress, upper, before, after) => {
        const email = fullAddress ? `${name}@example.com` : name;
        const one = person([], email);
        const shown = upper ? email.toUpperCase() : email;
        // Letters whose lower and upper case differ in length are not compared.
        fc.pre(shown.toLowerCase() === email.toLowerCase());
        const record = JSON.stringify({ id: '1', before, email: shown, after });
        const needles = needlesOf(one, 'records');
        assert.ok(isTheirs(one, { workflowId: 'people', id: '1', body: record }));
        const found = record.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
        assert.ok(
          needles.some((needle) => found.includes(needle)),
          JSON.stringify({ record, needles }),
        );
      },
    ),
  );
});

test('a person is found in messages for people as these write the address, and the whole message is erased', () => {
  for (const email of [
    'ada.l@example.com',
    "ann_o'neil*@example.com",
    'a<b>&c@example.com',
    '_ada_@example.com',
  ]) {
    const record = { id: '1', name: 'Ada', contact: `Write to ${email}.` };
    const sample = changeSample('people', [[undefined, record]]);
    const ada = person([], email);
    const redactor = createRedactor(ada);
    for (const format of FORMATS_FOR_PEOPLE) {
      const text = messageText(format, sample, { id: 'wh_1', name: null });
      const needles = needlesOf(ada, 'texts');
      assert.ok(
        needles.some((needle) => text.toLowerCase().includes(needle)),
        `${format} ${email}`,
      );
      const held = { key: '', workflowId: 'people', text, about: sample.body };
      assert.equal(TEXT_HOLDERS.deliveryBody(held, redactor), '"[erased]"', `${format} ${email}`);
      const others = createRedactor(person([], 'bob@example.com'));
      assert.deepEqual(JSON.parse(TEXT_HOLDERS.deliveryBody(held, others)), JSON.parse(text));
    }
  }
});

test('a finding about a record of the person loses its ids and its value', () => {
  const finding = (found: unknown, examples: string[]) => ({
    expectation: 'type',
    field: 'price',
    found,
    limit: 'number',
    count: 2,
    examples,
    drift: false,
  });
  const findings = [finding('n/a', ['person-7f3a', '8']), finding('x', ['8'])];
  const erased = [finding('[erased]', ['[erased]', '8']), finding('x', ['8'])];
  const redactor = createRedactor(person(['person-7f3a']));
  assert.deepEqual(JSON.parse(redactor.findings(JSON.stringify(findings))), erased);
  const event = JSON.stringify({ data: { error: 'such as "n/a" of the record person-7f3a', findings } });
  assert.deepEqual(JSON.parse(redactor.event(event, 'people')), {
    data: { error: '[erased]', findings: erased },
  });
});
