/** The rows about listing webhooks. */
import assert from 'node:assert/strict';
import { is, LIST, NO_WORKFLOW, names, type Rows, type World } from './world.ts';

export function listRows({ ask, get, keys, subscribe, listed, newWebhook }: World): Rows {
  return {
    'GET list without webhooks → 200 {"webhooks":[]}': {
      'of a team that has none': async () => {
        const got = is(await ask({ method: 'GET', path: LIST }, keys.others), 200);
        assert.equal(got.text, '{"webhooks":[]}');
      },
    },

    'GET list right after a subscribe → the item, url and events verbatim': {
      'exactly four keys, oldest first': async () => {
        const url = 'http://LOCALHOST:80/a/../b?x=%7e#Frag';
        const events = ['zeta', 'job.completed', 'Ünï ☃', 'zeta'];
        const got = is(await subscribe({ webhookUrl: url, events }), 200);
        const all = await listed();
        const { createdAt, ...rest } = all.at(-1) ?? {};
        assert.deepEqual(rest, { id: got.headers['x-webhook-id'], url, events });
        assert.match(createdAt ?? '', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
        const times = all.map((one) => one.createdAt);
        assert.deepEqual(times, times.toSorted());
      },
    },

    'GET list ?workflowId= known / unknown / empty or repeated → narrowed / 404 / 400': {
      known: async () => {
        const id = await newWebhook('second');
        const narrowed = await listed('?workflowId=second');
        assert.deepEqual(
          narrowed.map((one) => one.id),
          [id],
        );
      },
      unknown: async () => is(await get(`${LIST}?workflowId=unknown`), 404, NO_WORKFLOW),
      "another team's": async () => is(await get(`${LIST}?workflowId=private`), 404, NO_WORKFLOW),
      'a NUL': async () => is(await get(`${LIST}?workflowId=%00`), 404, NO_WORKFLOW),
      empty: async () => names(await get(`${LIST}?workflowId=`), '`workflowId`'),
      repeated: async () => names(await get(`${LIST}?workflowId=second&workflowId=second`), '`workflowId`'),
      undecodable: async () => names(await get(`${LIST}?workflowId=%FF`), '`workflowId`'),
    },
  };
}
