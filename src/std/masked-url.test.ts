/** URLs are shown without passwords. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { maskedUrl } from './printable.ts';

test('masks passwords before the host and in the query, and changes nothing else', () => {
  for (const [text, shown] of [
    ['postgres://me:hush%40@host:5433/db?sslmode=require', 'postgres://me:***@host:5433/db?sslmode=require'],
    ['postgres:///db?host=/run&password=hush', 'postgres:///db?host=%2Frun&password=***'],
    ['postgres://me@host/db', 'postgres://me@host/db'],
    ['sqlite:/a b/flowhook.db', 'sqlite:/a b/flowhook.db'],
    ['https://flowhook.example.com', 'https://flowhook.example.com'],
    ['no address', 'no address'],
  ] as const) {
    assert.equal(maskedUrl(text), shown);
  }
});
