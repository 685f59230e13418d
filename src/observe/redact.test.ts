/** Redaction of log lines, and that it is fast for any text. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { redactFields, redactText } from './redact.ts';

test('removes secrets and personal data, and keeps the rest of a sentence', () => {
  const cases: [text: string, shown: string][] = [
    [
      'could not connect to postgres://flow:hunter2@db:5432/flow?sslmode=off',
      'could not connect to postgres://db:5432/flow?***',
    ],
    ['postgres://flow:p@ss@db/flow', 'postgres://db/flow'],
    ['GET http://api.test/people?token=abc#part failed', 'GET http://api.test/people?*** failed'],
    ['no route for /v1/data?email=ada', 'no route for /v1/data?***'],
    ['the key fh_AbCdEfGh12345678_-x is revoked', 'the key fh_*** is revoked'],
    ['signed with whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', 'signed with whsec_***'],
    ['authorization: Bearer abc.def.ghi', 'authorization: Bearer ***'],
    ['ada.lovelace+x@mail.example.co.uk wrote', '*** wrote'],
    ['/people/ada%40example.com is gone', '/people/*** is gone'],
    ["zoë@exämple.de, o'hara@example.com", '***, ***'],
  ];
  for (const [text, shown] of cases) assert.equal(redactText(text), shown);
});

test('keeps text that only resembles secrets', () => {
  for (const text of [
    'undici@8.1.0 of @fastify/static in file:///srv/node_modules/undici/index.js:1:2',
    'job_01kadz8v3s7v0s8e1c3q5m2n4p',
    'what now?',
    'http://127.0.0.1:8080/v1/workflows',
    'basic sums',
  ]) {
    assert.equal(redactText(text), text);
  }
});

test('hides fields by name, at any depth, in lists and in errors with their causes', () => {
  const cause = Object.assign(new Error('row of ada@example.com'), { detail: 'Failing row contains (Ada)' });
  const err = new Error('insert failed', { cause });
  const fields = {
    'x-api-key': 'k',
    nested: [{ password: 'p', webhookSecret: 's', count: 1 }],
    err,
    ...{ cause },
  };
  const shown = JSON.stringify(redactFields(fields));
  for (const hidden of ['ada@', 'Failing row', '"k"', '"p"', '"s"']) {
    assert.ok(!shown.includes(hidden), `${hidden} in ${shown}`);
  }
  assert.match(shown, /"count":1/);
  assert.match(shown, /insert failed/);
  assert.deepEqual(redactFields({ keyId: 'key_1', secret: null, at: new Date(0) }), {
    keyId: 'key_1',
    secret: null,
    at: '1970-01-01T00:00:00.000Z',
  });
});

test('limits the size of a line', () => {
  const deep: Record<string, unknown> = {};
  deep.self = deep;
  const line = JSON.stringify(
    redactFields({
      deep,
      list: Array.from({ length: 10_000 }, String),
      bytes: Buffer.alloc(9),
      text: 'a'.repeat(99_999),
    }),
  );
  assert.ok(line.length < 12_000, `${line.length}`);
  assert.match(line, /"9 bytes"/);
});

test('counts nested errors towards the limit of their line', () => {
  const inner = () => Array.from({ length: 50 }, () => new Error('inner'));
  const outer = Array.from({ length: 50 }, () => Object.assign(new Error('outer'), { inner: inner() }));
  const line = JSON.stringify(redactFields({ outer }));
  assert.ok(line.split('Error: inner').length < 200);
});

test('is fast for any text', () => {
  // With patterns that backtrack without a limit, each of these would take minutes.
  for (const piece of ['a', 'a.', 'a@a.', 'a://', ' /a', '%40', 'bearer ']) {
    const text = `${piece.repeat(1_000_000)} @?`;
    assert.ok(redactText(text).length < 5_000);
  }
});
