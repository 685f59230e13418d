/** The rows about methods, paths and HTTP itself. */
import assert from 'node:assert/strict';
import { report } from '../support/net/wire.ts';
import {
  allows,
  data,
  each,
  is,
  LIST,
  NO_WEBHOOK,
  OPERATIONS,
  queue,
  type Rows,
  SUBSCRIBE,
  UNSUBSCRIBE,
  VALID_BODY,
  type World,
  withBody,
} from './world.ts';

const PATHS: Record<string, string> = {
  [data('quiet')]: 'GET, HEAD, OPTIONS',
  [LIST]: 'GET, HEAD, OPTIONS',
  [queue('quiet')]: 'POST, OPTIONS',
  [SUBSCRIBE]: 'POST, OPTIONS',
  [UNSUBSCRIBE]: 'DELETE, OPTIONS',
  [`${UNSUBSCRIBE}/wh_x`]: 'DELETE, OPTIONS',
};
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'TRACE', 'PROPFIND', 'PURGE', 'QUERY'];

export function httpRows({ ask, askInBytes, exchange, get, post, remove, keys }: World): Rows {
  const paths = Object.entries(PATHS);
  const otherMethods = paths.flatMap(([path, allow]) =>
    METHODS.filter((method) => !allow.split(', ').includes(method)).map((method) => ({
      method,
      path,
      allow,
    })),
  );

  return {
    'HEAD data, HEAD list → as GET, no body': {
      data: async () => is(await ask({ method: 'HEAD', path: data('quiet') }), 200),
      'data, unknown': async () => is(await ask({ method: 'HEAD', path: data('unknown') }), 404),
      'data, no key': async () => is(await ask({ method: 'HEAD', path: data('quiet') }, null), 401),
      list: async () => is(await ask({ method: 'HEAD', path: LIST }), 200),
    },

    'OPTIONS on a known path → 204 with Allow, no key needed': each(paths, async ([path, allow]) => {
      const got = is(await ask({ method: 'OPTIONS', path }, null), 204);
      assert.equal(got.headers.allow, allow, report(got));
    }),

    'HEAD on the POST and DELETE routes, any other method on a known path → 405 {error} with an exact Allow':
      {
        ...each(otherMethods, async ({ method, path, allow }) => {
          allows(await ask({ method, path }), allow);
          allows(await ask({ method, path }, null), allow);
        }),
        'a method that no parser knows': async () => {
          const sent = (path: string) => askInBytes(`FETCH ${path} HTTP/1.1\r\nhost: x\r\n\r\n`);
          allows(await sent(LIST), 'GET, HEAD, OPTIONS');
          is(await sent('/nothing'), 404);
        },
        CONNECT: async () =>
          allows(await askInBytes(`CONNECT ${LIST} HTTP/1.1\r\nhost: x\r\n\r\n`), 'GET, HEAD, OPTIONS'),
      },

    'One trailing slash → as without it': {
      'data/': async () => is(await get(`${data('quiet')}/`), 200),
      'data/ with a query': async () => is(await get(`${data('quiet')}/?x=/`), 200),
      'list/': async () => is(await get(`${LIST}/`), 200),
      'subscribe/': async () => is(await ask(withBody('POST', `${SUBSCRIBE}/`, VALID_BODY)), 200),
      'unsubscribe/{id}/': async () => is(await remove(`${UNSUBSCRIBE}/wh_x/`), 404, NO_WEBHOOK),
    },

    'A double slash, another letter case in the path → 404': each(
      [
        ...[`${data('quiet')}//`, `/${LIST}`, '/v1/integrations//webhooks/list', `${LIST}//`],
        ...[
          '/V1/workflows/quiet/data',
          '/v1/Workflows/quiet/data',
          '/v1/workflows/quiet/DATA',
          `${LIST}`.toUpperCase(),
        ],
        '/v1/integrations/webhooks/List',
      ],
      async (path) => is(await get(path), 404),
    ),

    'Unknown path, with or without a key → 404 {error}': each(
      [
        ...[
          '/',
          '/v1',
          '/v1/workflows/quiet/other',
          '/v1/workflows/quiet/data/more',
          '/v1/integrations',
          '/?x',
        ],
        ...[
          '/v1/integrations/webhooks/other',
          '/v2/workflows/quiet/data',
          '/readWorkflowData',
          '/-',
          '/%ZZ',
          '/%FF',
        ],
        ...['/v1/workflows%2Fquiet/data', `/${'x'.repeat(10_000)}`],
      ],
      async (path) => {
        for (const method of ['GET', 'HEAD', 'POST', 'DELETE', 'OPTIONS', 'PURGE']) {
          is(await ask({ method, path }), 404);
          is(await ask({ method, path }, null), 404);
        }
      },
    ),

    'X-HTTP-Method-Override → ignored': {
      'GET that says DELETE': async () => is(await get(LIST, [['x-http-method-override', 'DELETE']]), 200),
      'POST that says GET': async () =>
        allows(await post(LIST, [['x-http-method-override', 'GET']]), 'GET, HEAD, OPTIONS'),
      '?_method=GET': async () => allows(await post(`${LIST}?_method=GET`), 'GET, HEAD, OPTIONS'),
    },

    'Accept: text/html, application/xml or */* on the five operations → JSON': each(
      ['text/html', 'application/xml', '*/*', 'nonsense', 'application/json;q=0'],
      async (accept) => {
        for (const sent of Object.values(OPERATIONS)) {
          const plain = await ask(sent);
          const got = await ask({ ...sent, headers: [...(sent.headers ?? []), ['accept', accept]] });
          // Only the first queue call succeeds, so only its response may differ.
          is(got, sent.path === queue('busy') ? 400 : plain.status);
        }
      },
    ),

    'Malformed HTTP, headers over 16 KiB → 400 or 431 with a JSON body': {
      ...each(
        [
          'nonsense\r\n\r\n',
          `GET ${LIST} HTTP/x\r\n\r\n`,
          'GET /a b HTTP/1.1\r\nhost: x\r\n\r\n',
          `GET ${LIST} HTTP/1.1\r\nhost: x\r\nnonsense\r\n\r\n`,
          `GET ${LIST} HTTP/1.1\r\nx-api-key: ${keys.good}\r\nconnection: close\r\n\r\n`,
          `POST ${SUBSCRIBE} HTTP/1.1\r\nhost: x\r\ncontent-length: x\r\n\r\n`,
          `POST ${SUBSCRIBE} HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
          `POST ${SUBSCRIBE} HTTP/1.1\r\nhost: x\r\nx-api-key: ${keys.good}\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n`,
        ],
        async (text) => is(await askInBytes(text), 400),
      ),
      'an earlier request in the same packet gets its response first': async () => {
        const asked = `GET ${LIST} HTTP/1.1\r\nhost: x\r\nx-api-key: ${keys.good}\r\n\r\n`;
        const got = await exchange(`${asked}\u0001nonsense\r\n\r\n`);
        assert.equal(got.status, 200, report(got));
        assert.match(got.text, /^\{"webhooks":.*\}HTTP\/1\.1 400 .*"error":/s, report(got));
      },
      'headers over 16 KiB': async () =>
        is(await askInBytes(`GET ${LIST} HTTP/1.1\r\nhost: x\r\nx-a: ${'a'.repeat(17_000)}\r\n\r\n`), 431),
      'headers of 1 MiB': async () =>
        is(await askInBytes(`GET ${LIST} HTTP/1.1\r\nhost: x\r\nx-a: ${'a'.repeat(1_048_576)}\r\n\r\n`), 431),
      'an expectation that nobody knows': async () =>
        is(await get(LIST, [['expect', 'the-unexpected']]), 200),
    },
  };
}
