/** The rows about unsubscribing webhooks. */
import assert from 'node:assert/strict';
import { type Got, parsed, report } from '../support/net/wire.ts';
import { each, is, NO_WEBHOOK, names, queue, type Rows, UNSUBSCRIBE, type World, withBody } from './world.ts';

export function unsubscribeRows(world: World): Rows {
  const { ask, get, post, remove, keys, subscribe, listed, newUrl, newWebhook } = world;
  const isListed = async (id: string) => (await listed()).some((one) => one.id === id);

  /** Subscribes a webhook, unsubscribes it as given, and checks that it is no longer listed. */
  async function gone(unsubscribe: (id: string) => Promise<Got>): Promise<void> {
    const id = await newWebhook();
    assert.ok(await isListed(id));
    const got = is(await unsubscribe(id), 200);
    assert.deepEqual(Object.keys(parsed(got) as object), ['message'], report(got));
    assert.ok(!(await isListed(id)), `still listed\n${report(got)}`);
  }

  return {
    'DELETE unsubscribe with the id in path, query or JSON body → 200 {message}, gone from the list immediately':
      {
        path: () => gone((id) => remove(`${UNSUBSCRIBE}/${id}`)),
        'path, percent-encoded': () => gone((id) => remove(`${UNSUBSCRIBE}/${id.replace('_', '%5F')}`)),
        query: () => gone((id) => remove(`${UNSUBSCRIBE}?webhookId=${id}`)),
        'JSON body': () => gone((webhookId) => ask(withBody('DELETE', UNSUBSCRIBE, { webhookId }))),
        'all three, agreeing': () =>
          gone((id) =>
            ask(
              withBody('DELETE', `${UNSUBSCRIBE}/${id}?webhookId=${id}&webhookId=${id}`, { webhookId: id }),
            ),
          ),
        'path, with bodies that say nothing': async () => {
          for (const body of ['{}', '{', 'null'])
            await gone((id) => ask(withBody('DELETE', `${UNSUBSCRIBE}/${id}`, body)));
          await gone((id) => ask(withBody('DELETE', `${UNSUBSCRIBE}/${id}`, 'hello', 'text/plain')));
        },
        '?webhookUrl= (with an optional ?workflowId=)': async () => {
          const webhookUrl = `${newUrl()}?a=b c&d`.replace(' ', '+');
          const path = `${UNSUBSCRIBE}?webhookUrl=${encodeURIComponent(webhookUrl)}`;
          is(await subscribe({ webhookUrl }), 200);
          is(await subscribe({ webhookUrl, workflowId: 'people' }), 200);
          is(await remove(`${path}&workflowId=people`), 200);
          assert.equal((await listed()).filter((one) => one.url === webhookUrl).length, 1);
          is(await remove(path), 200);
          is(await remove(path), 404, NO_WEBHOOK);
        },
      },

    'DELETE with no id, ?webhookId=, ?webhookId=a&webhookId=b, path ≠ query → 400': {
      ...each(
        [
          '',
          '/',
          '?webhookId=',
          '?webhookId',
          '?webhookId=wh_a&webhookId=wh_b',
          '?webhookId=wh_a&webhookId=',
        ],
        async (rest) => names(await remove(UNSUBSCRIBE + rest), 'webhookId'),
      ),
      'path and query differ': async () => {
        const [one, two] = [await newWebhook(), await newWebhook()];
        names(await remove(`${UNSUBSCRIBE}/${one}?webhookId=${two}`), 'webhookId');
        assert.ok((await isListed(one)) && (await isListed(two)));
      },
      'path and body differ': async () =>
        names(await ask(withBody('DELETE', `${UNSUBSCRIBE}/wh_a`, { webhookId: 'wh_b' })), 'webhookId'),
      'an id and a URL': async () =>
        names(await remove(`${UNSUBSCRIBE}/wh_a?webhookUrl=http://x`), 'webhookId'),
      'an empty URL': async () => names(await remove(`${UNSUBSCRIBE}?webhookUrl=`), 'webhookUrl'),
      ...each(
        ['{}', '[]', 'null', '{', '{"webhookId":""}', '{"webhookId":7}', '{"webhookId":null}'],
        async (body) => names(await ask(withBody('DELETE', UNSUBSCRIBE, body)), 'webhookId'),
      ),
    },

    "DELETE unknown, already deleted, another team's, malformed id → 404": {
      unknown: async () => is(await remove(`${UNSUBSCRIBE}/wh_01kadz8v3s7v0s8e1c3q5m2n4p`), 404, NO_WEBHOOK),
      'already deleted': async () => {
        const id = await newWebhook();
        is(await remove(`${UNSUBSCRIBE}/${id}`), 200);
        is(await remove(`${UNSUBSCRIBE}/${id}`), 404, NO_WEBHOOK);
        is(await remove(`${UNSUBSCRIBE}?webhookId=${id}`), 404, NO_WEBHOOK);
      },
      "another team's": async () => {
        const id = await newWebhook('private', keys.others);
        is(await remove(`${UNSUBSCRIBE}/${id}`), 404, NO_WEBHOOK);
        is(await get(`/v1/integrations/webhooks/${id}`), 404, NO_WEBHOOK);
        is(await get(`/v1/integrations/webhooks/${id}/secret`), 404, NO_WEBHOOK);
        is(await ask({ method: 'DELETE', path: `${UNSUBSCRIBE}/${id}` }, keys.others), 200);
      },
      ...each(
        ['nonsense', '%00', 'wh_%00', '..%2f', '..', 'wh_', '%20', '%F0%9F%98%80', 'w'.repeat(10_000)],
        async (id) => is(await remove(`${UNSUBSCRIBE}/${id}`), 404, NO_WEBHOOK),
      ),
    },

    'DELETE with undecodable percent-encoding → 400': each(['%ZZ', '%FF', 'wh_%', '%C3%28'], async (id) => {
      is(await remove(`${UNSUBSCRIBE}/${id}`), 400);
      is(await remove(`${UNSUBSCRIBE}?webhookId=${id}`), 400);
    }),

    'DELETE with a JSON content type and an empty body → as if there were no body': {
      'with an id': () => gone((id) => ask(withBody('DELETE', `${UNSUBSCRIBE}/${id}`, ''))),
      'without an id': async () => names(await ask(withBody('DELETE', UNSUBSCRIBE, '')), 'webhookId'),
    },

    'DELETE while a job is queued → 200': {
      'a webhook of the busy workflow': async () => {
        is(await post(queue('busy')), 200);
        is(await remove(`${UNSUBSCRIBE}/${await newWebhook('busy')}`), 200);
      },
    },
  };
}
