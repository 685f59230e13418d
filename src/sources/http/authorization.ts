/** Authenticates requests, as `source.auth` says. */
import type { HttpAuth } from '../../model/http-source.ts';
import type { Client } from './client.ts';
import type { Redactor } from './redactor.ts';
import type { HttpRequest } from './request.ts';
import { SourceError } from './source-error.ts';

/** A token is renewed this long before it expires, but not before half of its life. */
const EARLY_MS = 60_000;
/** A token that is refused within this time after a renewal is not renewed again. */
const RENEWAL_MS = 10_000;
/** The life of tokens without `expires_in`. */
const LIFE_MS = 300_000;
const MAX_TOKEN_BYTES = 64 * 1024;

export interface Authorization {
  /** The request with its credentials. */
  sign(request: HttpRequest): Promise<HttpRequest>;
  /** To be called when the server answered 401. @returns whether to try again */
  refused(signed: HttpRequest): boolean;
}

/** @param deps.client sends token requests; all credentials are added to `deps.redactor` */
export function createAuthorization(
  auth: HttpAuth | null,
  deps: { client: Client; redactor: Redactor; now(): number },
): Authorization {
  const { redactor } = deps;
  function fixed(name: string, value: string, ...secrets: string[]): Authorization {
    redactor.add(value, ...secrets);
    return {
      sign: async (request) => ({ ...request, headers: { ...request.headers, [name]: value } }),
      refused: () => false,
    };
  }
  switch (auth?.type) {
    case undefined:
      return { sign: async (request) => request, refused: () => false };
    case 'bearer':
      return fixed('authorization', `Bearer ${auth.token}`, auth.token);
    case 'basic': {
      const proof = `${auth.username}:${auth.password}`;
      return fixed('authorization', `Basic ${Buffer.from(proof).toString('base64')}`, proof, auth.password);
    }
    case 'header':
      return fixed(auth.name.toLowerCase(), auth.value);
    case 'oauth2':
      return byClientCredentials(auth, deps);
  }
}

/** OAuth 2.0 client credentials, RFC 6749 section 4.4. */
function byClientCredentials(
  auth: Extract<HttpAuth, { type: 'oauth2' }>,
  { client, redactor, now }: { client: Client; redactor: Redactor; now(): number },
): Authorization {
  let token: Promise<{ value: string; until: number }> | undefined;
  let current: string | undefined;
  let renewedAt = Number.NEGATIVE_INFINITY;

  async function ask(): Promise<{ value: string; until: number }> {
    const form = new URLSearchParams({ grant_type: 'client_credentials' });
    if (auth.scope !== null) form.set('scope', auth.scope);
    if (auth.audience !== null) form.set('audience', auth.audience);
    const [id, secret] = [auth.clientId, auth.clientSecret].map((text) => encodeURIComponent(text));
    redactor.add(`${id}:${secret}`, auth.clientSecret);
    const answer = await client.send({
      method: 'POST',
      url: auth.tokenUrl,
      headers: {
        accept: 'application/json',
        'content-type': 'application/x-www-form-urlencoded',
        authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`,
        'accept-encoding': 'identity',
      },
      body: form.toString(),
    });
    let text = '';
    for await (const chunk of answer.body) {
      text += String(chunk);
      if (text.length > MAX_TOKEN_BYTES) break;
    }
    let said: { access_token?: unknown; expires_in?: unknown } = {};
    try {
      said = JSON.parse(text) as typeof said;
    } catch {
      // Reported below, without the text, which may hold a token.
    }
    if (typeof said.access_token !== 'string') {
      throw new SourceError(`${auth.tokenUrl} answered ${answer.status} without an \`access_token\``);
    }
    redactor.add(said.access_token);
    current = said.access_token;
    const life = Number(said.expires_in ?? Number.NaN) * 1_000 || LIFE_MS;
    return { value: said.access_token, until: now() + Math.max(life - EARLY_MS, life / 2) };
  }

  return {
    async sign(request) {
      if (token !== undefined && (await token).until <= now()) token = undefined;
      token ??= ask();
      const { value } = await token;
      return { ...request, headers: { ...request.headers, authorization: `Bearer ${value}` } };
    },
    refused({ headers }) {
      // Concurrent requests are refused together; the first of them has already renewed the token.
      if (headers.authorization !== `Bearer ${current}`) return true;
      // A new token that is refused would be refused again.
      if (now() - renewedAt < RENEWAL_MS) return false;
      renewedAt = now();
      token = undefined;
      current = undefined;
      return true;
    },
  };
}
