/**
 * The encrypted parts of a webhook: its secret, which is the key of its `v1` signatures, and the custom headers of
 * its requests, which often contain credentials of the receiver.
 */
import { randomBytes } from 'node:crypto';
import { Problem } from '../model/error.ts';
import type { AddressPolicy } from '../net/address-policy.ts';
import type { Resolver } from '../net/resolver.ts';
import type { Logger } from '../observe/log.ts';
import type { Sealer } from '../std/seal.ts';
import type { Store } from '../store/store.ts';
import type { Mailing } from './mail/mailing.ts';

/** The dependencies of the operations on webhooks. */
export interface WebhookDeps {
  store: Store;
  sealer: Sealer;
  policy: AddressPolicy;
  resolver: Resolver;
  /** Default: this process cannot send mail. */
  mailing?: Mailing | undefined;
  /**
   * Logs that headers cannot be decrypted. The command line passes no logger, because it reports this problem itself.
   */
  log?: Logger;
  /** Maximum number of webhooks per workflow, set with FLOWHOOK_MAX_WEBHOOKS_PER_WORKFLOW. */
  limit: number;
}

const PREFIX = 'whsec_';
const SECRET_BYTES = 32;

/**
 * The secret of a webhook in the form of Standard Webhooks 1.0: `whsec_` and the key in base64.
 *
 * @throws Problem `webhook_not_found`
 */
export async function webhookSecret(
  deps: Pick<WebhookDeps, 'store' | 'sealer'>,
  webhook: { teamId: string; id: string },
): Promise<string> {
  const sealed = (await deps.store.webhooks.sealed(webhook))?.secret;
  if (sealed === undefined) throw new Problem('webhook_not_found');
  return deps.sealer.open(sealed, contextOf(webhook.teamId)).toString('utf8');
}

/** Creates a new secret, sealed for the store. */
export function newSealedSecret(sealer: Sealer, teamId: string): string {
  return sealer.seal(PREFIX + randomBytes(SECRET_BYTES).toString('base64'), contextOf(teamId));
}

/** Decrypts a sealed secret, and returns its HMAC key. */
export function openSecretKey(sealer: Sealer, input: { teamId: string; sealed: string }): Buffer {
  const secret = sealer.open(input.sealed, contextOf(input.teamId)).toString('utf8');
  return Buffer.from(secret.slice(PREFIX.length), 'base64');
}

/** A secret is bound only to its team, because the webhook has no id yet when the secret is created. */
function contextOf(teamId: string): string {
  return `webhook-secret/${teamId}`;
}

const MAX_HEADERS = 20;
const MAX_CHARACTERS = 4_096;
/**
 * Names of headers that users cannot set, because they frame the message, the service sets them itself, or a proxy
 * would act on them.
 */
const DENIED =
  /^(?:host|connection|keep-alive|transfer-encoding|trailer|expect|te|upgrade|(?:content|webhook|proxy|flowhook)-.*)$/;
const NAME = /^[!#$%&'*+.^_`|~0-9a-z-]+$/i;
const VALUE = /^(?:[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?)?$/;

/**
 * Validates custom headers: an object of at most 20 names with string values, 4,096 characters in total.
 *
 * @returns a sentence that describes the first error; undefined if the headers are valid
 */
export function headersMistake(headers: unknown): string | undefined {
  if (typeof headers !== 'object' || headers === null || Array.isArray(headers)) {
    return 'headers must be an object of names and string values, such as { "x-source": "flowhook" }';
  }
  const entries = Object.entries(headers as Record<string, unknown>);
  if (entries.length > MAX_HEADERS) {
    return `headers must contain at most ${MAX_HEADERS} names, found ${entries.length}. Remove some`;
  }
  const names = new Set<string>();
  let characters = 0;
  for (const [name, value] of entries) {
    const shown = JSON.stringify(name.slice(0, 100));
    if (!NAME.test(name)) {
      return `headers: ${shown} is not a valid header name. Use letters, digits and hyphens`;
    }
    const lower = name.toLowerCase();
    if (DENIED.test(lower)) {
      return `headers: ${shown} cannot be set, because the service or a proxy uses it. Use another name, such as x-${lower}`;
    }
    if (names.has(lower)) {
      return `headers: ${shown} appears twice (names are case-insensitive). Remove one`;
    }
    names.add(lower);
    if (typeof value !== 'string') return `headers: the value of ${shown} must be a string`;
    if (!VALUE.test(value)) {
      return (
        `headers: the value of ${shown} must consist of visible ASCII characters, with spaces only between them. ` +
        'Encode anything else, for example as base64'
      );
    }
    characters += name.length + value.length;
  }
  if (characters > MAX_CHARACTERS) {
    return `headers must have at most ${MAX_CHARACTERS} characters in total, found ${characters}. Shorten them`;
  }
  return undefined;
}

/** @param headers validated by `headersMistake` */
export function sealHeaders(sealer: Sealer, teamId: string, headers: Record<string, string>): string {
  return sealer.seal(JSON.stringify(headers), headersContextOf(teamId));
}

/** @param input.sealed the headers as stored; null if there are none */
export function openHeaders(
  sealer: Sealer,
  input: { teamId: string; sealed: string | null },
): Record<string, string> {
  if (input.sealed === null) return {};
  return JSON.parse(sealer.open(input.sealed, headersContextOf(input.teamId)).toString('utf8'));
}

/**
 * The names of a webhook's custom headers. The values are never shown.
 *
 * @returns null if the headers cannot be decrypted, for example because the encryption key has changed: the user must
 *   then set the headers again
 */
export async function headerNames(
  { store, sealer, log }: Pick<WebhookDeps, 'store' | 'sealer' | 'log'>,
  { teamId, id }: { teamId: string; id: string },
): Promise<string[] | null> {
  const sealed = (await store.webhooks.sealed({ teamId, id }))?.headers ?? null;
  try {
    return Object.keys(openHeaders(sealer, { teamId, sealed }));
  } catch (error) {
    log?.warn({ err: error, teamId, webhookId: id }, 'webhook.headers_not_opened');
    return null;
  }
}

function headersContextOf(teamId: string): string {
  return `webhook-headers/${teamId}`;
}
