/** Explains the signature of a message that an inspector received: who made it, or what is wrong with it. */
import { createHmac, createPublicKey, timingSafeEqual, verify } from 'node:crypto';
import type { InspectedSignature } from '../model/inspector.ts';
import type { WebhookDeps } from './deps.ts';
import { openSecretKey } from './secret.ts';

/** How far from their clock receivers accept a timestamp: Standard Webhooks 1.0. */
const TOLERANCE_S = 300;
/** Signatures of a message that are checked; nobody sends as many. */
const MAX_SIGNATURES = 16;
/** Webhooks whose secrets are tried; each costs an HMAC of the body. */
const MAX_SIGNERS = 50;

interface InspectedMessage {
  teamId: string;
  /** The URL of the inspector: webhooks with this URL may have signed it. */
  url: string;
  headers: Readonly<Record<string, string>>;
  body: Uint8Array;
  /** Whether `body` is only the start of the body. */
  truncated: boolean;
}

type Deps = Pick<WebhookDeps, 'store' | 'sealer'>;

/** Never throws because of the message: anybody may send anything to an inspector. */
export async function inspectSignature(deps: Deps, message: InspectedMessage): Promise<InspectedSignature> {
  const { headers, body } = message;
  const missing = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].filter((name) => !headers[name]);
  if (missing.length === 3) return judged('absent', 'It is not signed: it has no header webhook-signature');
  if (missing.length > 0) return judged('invalid', `It has no header ${missing.join(' and no header ')}`);
  if (message.truncated) {
    return judged(
      'invalid',
      'The body is longer than anything that is sent from here: nobody here signed it',
    );
  }
  const { 'webhook-id': id = '', 'webhook-timestamp': timestamp = '' } = headers;
  if (!/^\d{1,12}$/.test(timestamp)) {
    return judged('invalid', 'The header webhook-timestamp is no number of seconds since 1970');
  }
  const content = Buffer.concat([Buffer.from(`${id}.${timestamp}.`), body]);
  const signatures = (headers['webhook-signature'] ?? '').split(' ').slice(0, MAX_SIGNATURES);
  const webhook = await signerOf(deps, message, { content, signatures: ofVersion(signatures, 'v1') });
  const isOfTeam = await isByTeam(deps, message, { content, signatures: ofVersion(signatures, 'v1a') });
  const by = [
    ...(webhook === undefined ? [] : [`the ${webhook.which} of webhook ${webhook.id} (v1)`]),
    ...(isOfTeam ? ['the key of the team (v1a)'] : []),
  ];
  if (by.length === 0) {
    const sentence =
      'No webhook of this team and no key of it made this signature: the body or a header was changed on the way, ' +
      'or somebody else signed it';
    return judged('invalid', sentence);
  }
  const webhookId = webhook?.id ?? null;
  const made = `Signed with ${by.join(' and ')}`;
  const ageS = Math.round(deps.store.now() / 1_000) - Number(timestamp);
  if (Math.abs(ageS) <= TOLERANCE_S) return { ...judged('valid', made), webhookId };
  const away = ageS > 0 ? `${ageS} s ago` : `for ${-ageS} s from now`;
  const refused = `receivers refuse what is more than ${TOLERANCE_S} s away from their clock`;
  return { ...judged('expired', `${made}, but ${away}: ${refused}`), webhookId };
}

function judged(verdict: InspectedSignature['verdict'], message: string): InspectedSignature {
  return { verdict, message, webhookId: null };
}

function ofVersion(signatures: readonly string[], version: string): Buffer[] {
  return signatures
    .filter((one) => one.startsWith(`${version},`))
    .map((one) => Buffer.from(one.slice(version.length + 1), 'base64'));
}

interface Signed {
  content: Buffer;
  signatures: readonly Buffer[];
}

async function signerOf(
  { store, sealer }: Deps,
  { teamId, url, headers }: InspectedMessage,
  { content, signatures }: Signed,
): Promise<{ id: string; which: string } | undefined> {
  if (signatures.length === 0) return undefined;
  const eventId = headers['webhook-id'] ?? '';
  for (const { webhookId, secrets } of await store.inspectors.signers({
    teamId,
    eventId,
    url,
    limit: MAX_SIGNERS,
  })) {
    for (const [age, sealed] of secrets.entries()) {
      let key: Buffer;
      try {
        key = openSecretKey(sealer, { teamId, sealed });
      } catch {
        // Sealed with another encryption key, with which it signs nothing either.
        continue;
      }
      const expected = createHmac('sha256', key).update(content).digest();
      const isTheirs = signatures.some(
        (one) => one.length === expected.length && timingSafeEqual(one, expected),
      );
      if (isTheirs) return { id: webhookId, which: age === 0 ? 'secret' : 'secret before the last rotation' };
    }
  }
  return undefined;
}

async function isByTeam(
  { store }: Deps,
  { teamId }: InspectedMessage,
  { content, signatures }: Signed,
): Promise<boolean> {
  if (signatures.length === 0) return false;
  const keys = (await store.teams.signingKeys({ teamId })).map(({ publicKey }) =>
    createPublicKey({
      key: { kty: 'OKP', crv: 'Ed25519', x: Buffer.from(publicKey, 'base64').toString('base64url') },
      format: 'jwk',
    }),
  );
  return signatures.some((one) => one.length === 64 && keys.some((key) => verify(null, content, key, one)));
}
