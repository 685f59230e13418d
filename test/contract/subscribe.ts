/** The rows about subscribing webhooks. */
import assert from 'node:assert/strict';
import { type Got, parsed, report } from '../support/net/wire.ts';
import {
  each,
  is,
  NO_WORKFLOW,
  names,
  type Rows,
  SUBSCRIBE,
  UNSUBSCRIBE,
  VALID_BODY,
  type World,
  withBody,
} from './world.ts';

export function subscribeRows({ ask, get, post, subscribe, listed, newUrl }: World): Rows {
  const subscribeBody = (body: string, type?: string) => ask(withBody('POST', SUBSCRIBE, body, type));
  const closed = (got: Got) => {
    is(got, 400);
    assert.equal(got.headers.connection, 'close', report(got));
  };
  const listedWith = async (url: string) => (await listed()).filter((one) => one.url === url);

  return {
    'POST subscribe, valid → 200 {message}, never 201': {
      'the message carries the id, the headers name the webhook': async () => {
        const got = is(await subscribe({ webhookUrl: newUrl() }), 200);
        const id = got.headers['x-webhook-id'] as string;
        const { message, ...rest } = parsed(got) as { message: string };
        assert.deepEqual(rest, {});
        assert.ok(message.includes(id), report(got));
        assert.equal(got.headers.location, `/v1/integrations/webhooks/${id}`);
        const webhook = parsed(is(await get(got.headers.location), 200)) as Record<string, unknown>;
        assert.deepEqual([webhook.id, webhook.workflowId, webhook.state], [id, 'quiet', 'active']);
      },
      'the message says which names never fire': async () => {
        const got = is(
          await subscribe({ webhookUrl: newUrl(), events: ['workflow_finished', 'sunrise', 'job.finishd'] }),
          200,
        );
        const { message } = parsed(got) as { message: string };
        assert.match(message, /"sunrise" never fires here\./);
        assert.match(message, /"job\.finishd" never fires here; did you mean "job\.finished"\?/);
      },
    },

    'POST subscribe: no body, {}, [], null, "x", broken JSON → 400': {
      'no body': async () => is(await post(SUBSCRIBE), 400),
      'no body, said to be JSON': async () =>
        is(await post(SUBSCRIBE, [['content-type', 'application/json']]), 400),
      ...each(['{}', '[]', 'null', '"x"', '1', '{', '{"workflowId":', '\u0000', ' '], async (body) =>
        is(await subscribeBody(body), 400),
      ),
      'bytes that are not UTF-8': async () => {
        const body = Buffer.from(VALID_BODY.replace('"x"', '"\xff"'), 'latin1');
        is(await ask({ ...withBody('POST', SUBSCRIBE, ''), body }), 400);
      },
    },

    'POST subscribe with a UTF-8 byte order mark → accepted': {
      'a mark before the object': async () => is(await subscribeBody(`\ufeff${VALID_BODY}`), 200),
    },

    'POST subscribe as text/plain, form data or no content type → 400': {
      'no content type': async () =>
        is(await ask({ method: 'POST', path: SUBSCRIBE, body: VALID_BODY }), 400),
      ...each(
        [
          ...['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', ''],
          ...['text/json', 'application/jsonp', 'nonsense'],
        ],
        async (type) => is(await subscribeBody(VALID_BODY, type), 400),
      ),
    },

    'POST subscribe: application/json; charset=utf-8 and application/*+json accepted': each(
      [
        ...[
          'application/json; charset=utf-8',
          'Application/JSON ;charset="UTF-8"',
          'application/vnd.api+json',
        ],
        'application/ld+json; profile="x"',
      ],
      async (type) => is(await subscribeBody(VALID_BODY, type), 200),
    ),

    'A subscribe or unsubscribe body over the limit (64 KiB) → 400, connection closed': {
      'exactly 64 KiB': async () => is(await subscribeBody(VALID_BODY.padEnd(65_536)), 200),
      ...each([65_537, 1_048_576], async (size) => {
        closed(await subscribeBody(VALID_BODY.padEnd(size)));
        closed(await ask(withBody('DELETE', UNSUBSCRIBE, '{}'.padEnd(size))));
        closed(await ask(withBody('DELETE', `${UNSUBSCRIBE}/wh_x`, '{}'.padEnd(size), 'text/plain')));
      }),
      'chunked, without content-length': async () => {
        const sent = withBody('POST', SUBSCRIBE, VALID_BODY.padEnd(70_000));
        closed(await ask({ ...sent, headers: [...(sent.headers ?? []), ['transfer-encoding', 'chunked']] }));
      },
    },

    'workflowId missing, null, a number, "" → 400': each(
      [undefined, null, 7, '', true, ['quiet'], {}],
      async (workflowId) => names(await subscribe({ workflowId }), '`workflowId`'),
    ),

    "workflowId unknown or another team's → 404": each(
      ['unknown', 'private', '\u0000', 'a/b', 'x'.repeat(201), '\ud800'],
      async (workflowId) => is(await subscribe({ workflowId }), 404, NO_WORKFLOW),
    ),

    'A bad URL and an unknown workflow together → 400': {
      both: async () =>
        names(await subscribe({ workflowId: 'unknown', webhookUrl: 'nonsense' }), '`webhookUrl`'),
    },

    'webhookUrl relative, //x, ftp:, javascript:, http:example.com, with spaces, without a host, over 2,048 characters, not a string → 400':
      each(
        [
          ...[undefined, null, 7, true, [], {}, '', 'hook', '/hook', '//x', '//x.example/hook'],
          ...['ftp://x.example/', 'javascript:alert(1)', 'mailto:a@x.example', 'http:example.com'],
          ...[
            'http:/example.com',
            'http://',
            'http:///path',
            'https://?x',
            'http://#x',
            'http:\\\\x.example',
          ],
          ...[
            ' http://x.example/',
            'http://x.example/ ',
            'http://x.example/a b',
            'http://x y/',
            'http://x.example/\n',
          ],
          ...['http://x.example:99999/', 'http://[::1/', 'http://x.example/\ud800'],
          `http://x.example/${'a'.repeat(2_032)}`,
        ],
        async (webhookUrl) => names(await subscribe({ webhookUrl }), '`webhookUrl`'),
      ),

    'webhookUrl with localhost, an IP literal, IPv6, a port, a query, a fragment, user:password → 200, listed verbatim':
      each(
        [
          ...['http://localhost/x', 'https://127.0.0.1', 'http://10.0.0.1/', 'http://169.254.169.254/latest'],
          ...[
            'http://[::1]:9/x',
            'HTTP://127.0.0.1:1/Port',
            'http://127.0.0.1/q?a=b&c=%20d',
            'http://127.0.0.1/#f',
          ],
          ...['http://user:pass%20word@127.0.0.1/', `http://127.0.0.1/${'a'.repeat(2_031)}`],
        ],
        async (webhookUrl) => {
          is(await subscribe({ webhookUrl }), 200);
          assert.equal((await listedWith(webhookUrl)).length, 1);
        },
      ),

    'webhookUrl with an address that policy refuses → 200, and the message says so': {
      'link-local': async () => {
        const got = is(await subscribe({ webhookUrl: 'http://169.254.169.254/' }), 200);
        assert.match((parsed(got) as { message: string }).message, /FLOWHOOK_ALLOW_NETWORKS/, report(got));
      },
    },

    'events missing, null, a string, an object, [], 101 items → 400': each(
      [undefined, null, 'x', {}, { 0: 'x', length: 1 }, [], Array(101).fill('x'), 7],
      async (events) => names(await subscribe({ events }), '`events`'),
    ),

    'events with "", a number, null, an object, a 257-character name inside → 400, no coercion': each(
      ['', 7, null, {}, ['x'], true, 'n'.repeat(257)],
      async (bad) => names(await subscribe({ events: ['x', bad] }), '`events[1]`'),
    ),

    'events with unknown names, duplicates, one item, 100 items → 200, verbatim': each(
      [
        ...[['never.heard.of.it'], ['a', 'a', 'b'], ['workflow_finished'], ['n'.repeat(256)]],
        ['"', "'", '\\', '\u0000', '\ud800', '☃', ' '],
        Array.from({ length: 100 }, (_, at) => `event ${100 - at}`),
      ],
      async (events) => {
        const webhookUrl = newUrl();
        is(await subscribe({ webhookUrl, events }), 200);
        assert.deepEqual((await listedWith(webhookUrl))[0]?.events, events);
      },
    ),

    'Unknown body fields, __proto__, constructor → ignored': {
      'all of them': async () => {
        const more =
          '"__proto__":{"workflowId":"unknown"},"constructor":{"prototype":{"events":[]}},"more":[1]';
        is(await subscribeBody(`{${more},${VALID_BODY.slice(1)}`), 200);
      },
      'fields that only the prototype would bring': async () =>
        names(await subscribeBody(`{"__proto__":${VALID_BODY}}`), '`workflowId`'),
    },

    'Settings that only POST /v1/integrations/webhooks takes → 400 that names that route': {
      ...each(
        [
          'filter',
          'format',
          'template',
          'firstVersion',
          'cooldown',
          'digest',
          'headers',
          'ordered',
          'ratePerSecond',
          'timeoutMs',
        ],
        async (name) => {
          const webhookUrl = newUrl();
          const got = await subscribe({ webhookUrl, [name]: null });
          names(got, `\`${name}\``);
          names(got, 'POST /v1/integrations/webhooks');
          assert.deepEqual(await listedWith(webhookUrl), []);
          // An unknown workflow changes nothing: fields come before the look-up.
          is(await subscribe({ workflowId: 'unknown', webhookUrl, [name]: 1 }), 400);
        },
      ),
    },

    'The same subscribe twice → 200, 200; one item listed': {
      'the same, and the same set in another order': async () => {
        const webhookUrl = newUrl();
        const lists = [
          ['a', 'b'],
          ['a', 'b'],
          ['b', 'a', 'a'],
        ];
        const ids = new Set<unknown>();
        for (const events of lists)
          ids.add(is(await subscribe({ webhookUrl, events }), 200).headers['x-webhook-id']);
        assert.equal(ids.size, 1);
        assert.deepEqual(
          (await listedWith(webhookUrl)).map((one) => one.events),
          [['a', 'b']],
        );
      },
    },

    'The same URL with another workflow or other events → 200; two items listed': each(
      [{ workflowId: 'people' }, { events: ['y'] }, { events: ['x', 'y'] }],
      async (other) => {
        const webhookUrl = newUrl();
        is(await subscribe({ webhookUrl }), 200);
        is(await subscribe({ webhookUrl, ...other }), 200);
        assert.equal((await listedWith(webhookUrl)).length, 2);
      },
    ),
  };
}
