/** How a source authenticates, and that credentials do not leak. */
import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { test } from 'node:test';
import { site, take } from '../../../test/support/jobs/source-site.ts';

const LIST = '[{"id":1}]';
const json = (response: ServerResponse, text = LIST) =>
  response.setHeader('content-type', 'application/json').end(text);

test('bearer, basic and header credentials are sent', async (t) => {
  const { url, requests } = await site(t, (_request, response) => json(response));
  const cases: [auth: object, name: string, value: string][] = [
    [{ type: 'bearer', token: 'abc' }, 'authorization', 'Bearer abc'],
    [
      { type: 'basic', username: 'ada', password: 'pä' },
      'authorization',
      `Basic ${Buffer.from('ada:pä').toString('base64')}`,
    ],
    [{ type: 'header', name: 'X-Key', value: 'abc' }, 'x-key', 'abc'],
  ];
  for (const [auth, name, value] of cases) {
    await take({ source: { url, auth } });
    assert.equal(requests.at(-1)?.headers[name], value);
  }
});

test('an OAuth 2 token is used for the whole run, and renewed when it is refused', async (t) => {
  const tokens: string[] = [];
  const { url, requests } = await site(t, async (request, response) => {
    if (request.url === '/token') {
      let form = '';
      for await (const chunk of request) form += String(chunk);
      tokens.push(form);
      assert.equal(request.headers.authorization, `Basic ${Buffer.from('me%2Fx:s%3As').toString('base64')}`);
      return json(
        response,
        JSON.stringify({ access_token: `t${tokens.length}`, expires_in: 3600, token_type: 'bearer' }),
      );
    }
    // The first token is revoked after one page.
    if (request.url === '/?page=2' && request.headers.authorization === 'Bearer t1')
      return response.writeHead(401).end();
    json(response, JSON.stringify(request.url === '/?page=3' ? [] : [{ id: request.url }]));
  });
  const auth = {
    type: 'oauth2',
    tokenUrl: `${url}/token`,
    clientId: 'me/x',
    clientSecret: 's:s',
    scope: 'read all',
  };
  const { records } = await take({ source: { url, auth, paginate: { type: 'page' } } });
  assert.equal(records.length, 2);
  assert.deepEqual(tokens, Array(2).fill('grant_type=client_credentials&scope=read+all'));
  assert.equal(requests.at(-1)?.headers.authorization, 'Bearer t2');

  const refusing = await site(t, (request, response) =>
    request.url === '/token' ? json(response, '{"error":"invalid_client"}') : json(response),
  );
  const other = { ...auth, tokenUrl: `${refusing.url}/token` };
  await assert.rejects(
    take({ source: { url: refusing.url, auth: other } }),
    /\/token returned 200 without an `access_token`/,
  );
});

test('a server that slowly refuses every new token fails the run', async (t) => {
  let nowMs = 0;
  const { url, asked } = await site(t, (request, response) => {
    if (request.url === '/token') return json(response, `{"access_token":"t${asked.length}"}`);
    nowMs += 20_000;
    response.writeHead(401).end();
  });
  const auth = { type: 'oauth2', tokenUrl: `${url}/token`, clientId: 'a', clientSecret: 'b' };
  await assert.rejects(take({ source: { url, auth } }, { deps: { now: () => nowMs } }), /401 Unauthorized/);
  assert.equal(asked.filter((one) => one === 'GET /').length, 5);
});

test('requests that are refused together renew the token once', async (t) => {
  let issued = 0;
  let valid = 1;
  let refused: (() => void)[] = [];
  const { url } = await site(t, (request, response) => {
    if (request.url === '/token') {
      issued += 1;
      return json(response, JSON.stringify({ access_token: `token-${issued}`, expires_in: 3600 }));
    }
    if (request.url === '/list') {
      json(response, JSON.stringify([1, 2, 3, 4].map((id) => ({ id, url: `/${id}` }))));
      valid = 2;
      return;
    }
    if (request.headers.authorization === `Bearer token-${valid}`) return json(response, '{"x":1}');
    refused.push(() => void response.writeHead(401).end());
    if (refused.length < 4) return;
    for (const refuse of refused) refuse();
    refused = [];
  });
  const auth = { type: 'oauth2', tokenUrl: `${url}/token`, clientId: 'a', clientSecret: 'b' };
  const follow = { url: '$.url', parse: 'json', concurrency: 4, fields: { x: '$.x' } };
  const { records } = await take({
    source: { url: `${url}/list`, perHost: 4, auth, follow },
    fields: { id: '$.id' },
  });
  assert.deepEqual(
    records.map(({ x }) => x),
    [1, 1, 1, 1],
  );
  assert.equal(issued, 2);
});

test('credentials are masked when a host echoes them', async (t) => {
  const token = `access-${'x'.repeat(40)}`;
  const { url } = await site(t, (request, response) => {
    if (request.url === '/token') return json(response, JSON.stringify({ access_token: token }));
    response
      .writeHead(400)
      .end(`no: ${request.headers.authorization ?? request.headers['x-key']} ${'.'.repeat(60)}`);
  });
  const proofs: object[] = [
    { type: 'basic', username: 'admin', password: 'hunter2hunter2' },
    { type: 'bearer', token: 'sesame-sesame' },
    { type: 'header', name: 'x-key', value: `key-${'k'.repeat(300)}` },
    { type: 'oauth2', tokenUrl: `${url}/token`, clientId: 'a', clientSecret: 'b' },
  ];
  for (const auth of proofs) {
    await assert.rejects(
      take({ source: { url, auth } }),
      /returned 400 Bad Request: no: \*\*\* \.{60}$|Bearer \*\*\* \.{60}$/,
    );
  }
});
