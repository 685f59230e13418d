/** Servers whose version is too old. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { administer, makeDatabase } from '../../../test/support/postgres.ts';
import { silentLogger } from '../../observe/log.ts';
import { openStore, readSchema } from '../open.ts';

const { url, server, name, drop } = await makeDatabase();
after(drop);

test('a PostgreSQL older than 15 is rejected before any table is created', async () => {
  // Fakes the server's version, which works because the database's functions come before the built-in ones.
  await administer(
    url,
    `create function public.current_setting(text) returns text language sql as $$ select '140019' $$`,
  );
  await administer(server, `alter database ${name} set search_path = public, pg_catalog`);
  const sentence =
    /runs PostgreSQL 14, but flowhook needs 15 or newer\. Upgrade the server, or .*FLOWHOOK_DATABASE/;
  await assert.rejects(openStore(url, { publicUrl: () => '', log: silentLogger, own: true }), sentence);
  await assert.rejects(readSchema(url), sentence);
  await administer(server, `alter database ${name} reset search_path`);
  assert.equal((await readSchema(url)).found, 0);
});
