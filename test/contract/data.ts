/** The rows about reading data. */
import assert from 'node:assert/strict';
import type { Got } from '../support/net/wire.ts';
import {
  data,
  each,
  is,
  NO_WORKFLOW,
  names,
  QUEUED,
  queue,
  type Rows,
  type World,
  withBody,
} from './world.ts';

export function dataRows({ ask, get, post, keys, letFinish }: World): Rows {
  return {
    "GET data: known / unknown / another team's → 200 array / 404 / 404, the two 404s byte-identical": {
      'before the first published run': async () => is(await get(data('quiet')), 200, []),
      'published records, whole and in order': async () => {
        const queued = is(await post(queue('people')), 200, QUEUED);
        const ada = '{"id":7,"name":"Ada","email":"ada@example.com","born":1815}';
        await letFinish('people', queued, `${ada}\n{"id":"b","name":true,"email":null,"tags":["x"]}\n`);
        is(await get(data('people')), 200, [
          { id: '7', name: 'Ada', email: 'ada@example.com', born: 1815 },
          { id: 'b', name: 'true', tags: ['x'] },
        ]);
      },
      "unknown and another team's": async () => {
        const unknown = is(await get(data('unknown')), 404, NO_WORKFLOW);
        const theirs = is(await get(data('private')), 404, NO_WORKFLOW);
        const fixed = ({ headers, text }: Got) => ({ ...headers, date: '', 'x-request-id': '', text });
        assert.deepEqual(fixed(theirs), fixed(unknown));
        is(await ask({ method: 'GET', path: data('private') }, keys.others), 200, []);
      },
    },

    'GET data with %ZZ, %FF, %00, ..%2f, a 10 kB id, an emoji, a space as id → 404 {error}, never 5xx': each(
      [
        ...['%ZZ', '%FF', '%', '%2', '%00', 'quiet%00', '..%2f', '..', '.', '%2e%2e', '*', '%20'],
        ...['%F0%9F%98%80', 'a'.repeat(10_000)],
      ],
      async (id) => {
        is(await get(data(id)), 404, NO_WORKFLOW);
        is(await post(queue(id)), 404, NO_WORKFLOW);
      },
    ),

    '/v1/workflows//data, /v1/workflows/data → 404': each(
      ['/v1/workflows//data', '/v1/workflows/data', '/v1/workflows//queue'],
      async (path) => is(await get(path), 404),
    ),

    'A percent-encoded spelling of a real id → decoded once, 200': {
      '%71uiet': async () => is(await get(data('%71uiet')), 200, []),
      'an id that itself looks encoded': async () => is(await get(data('100%2525')), 200, []),
      'that id, which decoding twice would find': async () => is(await get(data('100%25')), 404, NO_WORKFLOW),
      'a spelling of the fixed part': async () => is(await get('/v1/workflows/quiet/d%61ta'), 200, []),
    },

    'GET data with unknown query parameters or a body → ignored': {
      'a known parameter with a bad value': async () => names(await get(`${data('quiet')}?limit=0`), 'limit'),
      parameters: async () => is(await get(`${data('quiet')}?limit=1&x=%ZZ&&=&__proto__=1`), 200, []),
      'a body': async () => is(await ask(withBody('GET', data('quiet'), '{"broken')), 200, []),
    },
  };
}
