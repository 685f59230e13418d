/** Commands on a database run the operations that a server has at the same paths. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { routes } from '../http/routes.ts';
import { OPERATIONS } from './local-server.ts';

for (const { method, path, load } of OPERATIONS) {
  test(`${method} ${path} runs the operation of the server`, async () => {
    const route = routes.find((one) => one.method === method && one.path === path);
    assert.equal(await load(), route?.operation);
  });
}
