/** Sessions of the dashboard: signing in with a key or a link, authentication of requests, signing out. */

import type { Author } from '../../model/audit.ts';
import { Problem } from '../../model/error.ts';
import { allows, type Scope } from '../../model/team.ts';
import { toIso } from '../../std/clock.ts';
import { anyObject } from '../../std/shape.ts';
import { type Caller, callerOf } from '../../teams/keys.ts';
import type { Begun, SignedIn } from '../../teams/sessions.ts';
import { bodyFields } from '../body.ts';
import { jsonBody, jsonResponse } from '../openapi/content.ts';
import type { Call, Operation } from '../route.ts';
import { authorOf, clientAddress } from '../server/caller.ts';
import type { Reply, Request } from '../server/exchange.ts';
import { invalid } from '../values.ts';
import { requireOwnOrigin } from './own-origin.ts';
import { type UiServices, uiOf } from './services.ts';
import { dropSecret, keepSecret, sessionSecret } from './session-cookie.ts';

/**
 * A key fits into the headers, which may have 16 KiB. Anybody may send this body, without a key: a longer one would let
 * them hold more memory on each connection.
 */
const MAX_SIGN_IN_BYTES = 16 * 1_024;

const shape = jsonResponse('Who is signed in', anyObject());

/** GET /ui/api/session */
export const readSession: Operation<Call> = {
  id: 'readSession',
  group: 'Service',
  summary: 'Who is signed in',
  answer: shape,

  async handle(call) {
    return shown(call, await signedIn(uiOf(call), call));
  },
};

/** POST /ui/api/session */
export const beginSession: Operation<Call> = {
  id: 'beginSession',
  group: 'Service',
  summary: 'Signs in with `key`, or with the `token` of a link that works once',
  requestBody: jsonBody({
    type: 'object',
    properties: { key: { type: 'string' }, token: { type: 'string' } },
  }),
  answer: shape,

  async handle(call) {
    const ui = uiOf(call);
    const { request, reply } = call;
    requireOwnOrigin(ui, request);
    const { key, token } = await bodyFields(call, 'the key, or the token of a link', MAX_SIGN_IN_BYTES);
    const { sessions } = ui;
    if (key !== undefined && token !== undefined) invalid('Give `key` or `token`, not both');
    const begun =
      token === undefined
        ? await tried(call, key, 'key', (text, author) => sessions.begin(text.trim(), author))
        : await tried(call, token, 'token', (text, author) => sessions.redeem(text, author));
    const before = sessionSecret(request);
    if (before !== undefined) await sessions.end(before);
    keepSecret(ui, reply, begun.secret);
    return shown(call, begun);
  },
};

/** DELETE /ui/api/session */
export const endSession: Operation<Call> = {
  id: 'endSession',
  group: 'Service',
  summary: 'Signs out',
  answer: shape,

  async handle(call) {
    const ui = uiOf(call);
    requireOwnOrigin(ui, call.request);
    const secret = sessionSecret(call.request);
    if (secret !== undefined) await ui.sessions.end(secret);
    dropSecret(ui, call.reply);
    return call.reply.code(204).send();
  },
};

/**
 * The caller of a request below `/ui/api/v1/`, where a session takes the place of a key.
 *
 * @throws Problem `origin_refused` when the request comes from a foreign page; `session_missing`; `scope_missing`
 */
export async function authenticateSession(
  ui: UiServices,
  call: { request: Request; reply: Reply },
  scope: Scope | 'any',
): Promise<Caller> {
  requireOwnOrigin(ui, call.request);
  const { key, secret } = await signedIn(ui, call);
  if (scope !== 'any' && !allows(key.scopes, scope)) {
    throw new Problem('scope_missing', {
      sentence: `The key that you signed in with does not have the scope \`${scope}\`, which this needs`,
    });
  }
  return callerOf(key, (options) => ui.sessions.isAlive(secret, options));
}

async function signedIn(
  ui: UiServices,
  { request, reply }: { request: Request; reply: Reply },
): Promise<Begun> {
  const secret = sessionSecret(request);
  const found = secret === undefined ? undefined : await ui.sessions.find(secret);
  if (secret === undefined || found === undefined) throw new Problem('session_missing');
  if (found.isRenewed) keepSecret(ui, reply, secret);
  return { ...found, secret };
}

/** Signs in. The attempt is counted before it is checked, so that concurrent attempts cannot exceed the limit. */
async function tried(
  { services, request }: Call,
  value: unknown,
  name: 'key' | 'token',
  begin: (text: string, author: Author) => Promise<Begun | undefined>,
): Promise<Begun> {
  if (typeof value !== 'string') return invalid(`\`${name}\` must be a string`);
  const { limit, refused } = uiOf({ services });
  const address = clientAddress(request);
  const waitMs = limit.take(address, services.store.now());
  if (waitMs > 0) {
    throw new Problem('sign_in_limited', { headers: { 'retry-after': String(Math.ceil(waitMs / 1_000)) } });
  }
  const author = authorOf(request, { kind: 'session', id: null });
  const begun = await begin(value, author);
  if (begun === undefined) {
    await refused.note({ ...author, kind: 'unknown' });
    throw new Problem(name === 'key' ? 'key_refused' : 'link_refused');
  }
  limit.give(address);
  return begun;
}

async function shown({ services: { store } }: Call, { session, key }: SignedIn) {
  const team = await store.teams.get({ teamId: session.teamId });
  if (team === undefined) throw new Problem('session_missing');
  return {
    team: { id: team.id, name: team.slug, slug: team.slug },
    key: { id: key.id, name: key.name, scopes: key.scopes },
    expiresAt: toIso(session.expiresAt),
  };
}
