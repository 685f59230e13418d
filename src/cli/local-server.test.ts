/** The operations that answer commands on a database are those that a server has at the same paths. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { routes } from '../http/routes.ts';
import { OPERATIONS } from './local-server.ts';

for (const { method, path, load } of OPERATIONS) {
  test(`${method} ${path} is answered in the process as by a server`, async () => {
    const route = routes.find((one) => one.method === method && one.path === path);
    assert.equal(await load(), route?.operation);
  });
}
