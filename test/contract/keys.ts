/** The rows about keys. */
import {
  data,
  type Headers,
  is,
  LIST,
  OPERATIONS,
  queue,
  type Rows,
  SUBSCRIBE,
  UNSUBSCRIBE,
  type World,
  withBody,
} from './world.ts';

export function keyRows({ ask, askInBytes, keys }: World): Rows {
  const { good } = keys;
  const bad: Record<string, Headers> = {
    'no key': [],
    'an empty key': [['x-api-key', '']],
    'only spaces': [['x-api-key', '   ']],
    'a wrong key': [['x-api-key', 'wrong']],
    'a key of 8,000 characters': [['x-api-key', 'k'.repeat(8_000)]],
    'a revoked key': [['x-api-key', keys.revoked]],
    'an expired key': [['x-api-key', keys.expired]],
    'the same key twice': [
      ['x-api-key', good],
      ['x-api-key', good],
    ],
    'the key only as Bearer': [['authorization', `Bearer ${good}`]],
  };
  const refused = Object.entries(OPERATIONS).flatMap(([operation, sent]) => [
    ...Object.entries(bad).map(([name, headers]) => [
      `${operation}: ${name}`,
      async () => is(await ask({ ...sent, headers: [...(sent.headers ?? []), ...headers] }, null), 401),
    ]),
    [
      `${operation}: the key only in the query`,
      async () => {
        const path = `${sent.path}${sent.path.includes('?') ? '&' : '?'}x-api-key=${good}&api_key=${good}`;
        is(await ask({ ...sent, path }, null), 401);
      },
    ],
  ]);

  return {
    'Any operation: no key, empty, wrong, revoked, expired, two x-api-key headers, key only in the query or as Bearer → 401':
      Object.fromEntries(refused),

    'Missing, wrong, expired, revoked and out-of-scope keys get 401': {
      'queue with a key for read': async () =>
        is(await ask({ method: 'POST', path: queue('busy') }, keys.read), 401),
      'list with a key for read': async () => is(await ask({ method: 'GET', path: LIST }, keys.read), 401),
      'data with a key for webhooks': async () =>
        is(await ask({ method: 'GET', path: data('quiet') }, keys.webhooks), 401),
      'data with a key for read': async () =>
        is(await ask({ method: 'GET', path: data('quiet') }, keys.read), 200),
      'list with a key for webhooks': async () =>
        is(await ask({ method: 'GET', path: LIST }, keys.webhooks), 200),
    },

    'Header name in any case, spaces around the value → accepted': {
      'X-API-KEY': async () =>
        is(await ask({ method: 'GET', path: LIST, headers: [['X-API-KEY', good]] }, null), 200),
      'X-Api-Key, spaces and tabs': async () => {
        const text = `GET ${LIST} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Api-Key: \t ${good} \t \r\n\r\n`;
        is(await askInBytes(text), 200);
      },
    },

    'No key with a bad body; no key with an unknown workflow → 401': {
      'broken JSON': async () => is(await ask(withBody('POST', SUBSCRIBE, '{'), null), 401),
      'a body over the limit': async () =>
        is(await ask(withBody('POST', SUBSCRIBE, ' '.repeat(70_000)), null), 401),
      'an unknown workflow in the body': async () =>
        is(await ask(withBody('POST', SUBSCRIBE, { workflowId: 'unknown' }), null), 401),
      'data of an unknown workflow': async () =>
        is(await ask({ method: 'GET', path: data('unknown') }, null), 401),
      'data with a bad percent-encoding': async () =>
        is(await ask({ method: 'GET', path: data('%ZZ') }, null), 401),
      'queue of an unknown workflow': async () =>
        is(await ask({ method: 'POST', path: queue('unknown') }, null), 401),
      'unsubscribe of nothing': async () => is(await ask({ method: 'DELETE', path: UNSUBSCRIBE }, null), 401),
    },
  };
}
