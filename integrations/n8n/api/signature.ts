/** Verifies that a request was signed by the team, and recently: Standard Webhooks 1.0, `v1a` (ed25519). */
import { createPublicKey, verify } from 'node:crypto';
import type { IDataObject } from 'n8n-workflow';
import { ask, type Caller } from './ask.ts';

const TOLERANCE_S = 300;
/** The service sends few, and each one costs a check. */
const MAX_SIGNATURES = 16;
/** The DER prefix of the 32 bytes of an ed25519 key (RFC 8410). */
const KEY_PREFIX = Buffer.from('302a300506032b6570032100', 'hex');

export interface Arrived {
  /** The received bytes, unparsed. */
  body: Uint8Array;
  /** Names in lower case. */
  headers: Readonly<Record<string, string | string[] | undefined>>;
}

/**
 * @param publicKeys `whpk_…`
 * @param nowMs epoch milliseconds
 */
export function isSigned({ body, headers }: Arrived, publicKeys: readonly string[], nowMs: number): boolean {
  const id = headers['webhook-id'];
  const timestamp = headers['webhook-timestamp'];
  const signatures = headers['webhook-signature'];
  if (typeof id !== 'string' || typeof timestamp !== 'string' || typeof signatures !== 'string') return false;
  if (!/^\d{1,12}$/.test(timestamp) || Math.abs(nowMs / 1_000 - Number(timestamp)) > TOLERANCE_S)
    return false;
  const signed = Buffer.concat([Buffer.from(`${id}.${timestamp}.`), body]);
  const keys = publicKeys.map(bytesOfKey).filter((key) => key.length === 32);
  return signatures
    .split(' ')
    .slice(0, MAX_SIGNATURES)
    .filter((one) => one.startsWith('v1a,'))
    .map((one) => Buffer.from(one.slice(4), 'base64'))
    .some((signature) => signature.length === 64 && keys.some((key) => matches(key, signed, signature)));
}

/** The public keys of the credential's team. Any API key may read them. */
export async function signingKeys(caller: Caller): Promise<string[]> {
  const me = await ask<{ team: { id: string } }>(caller, { path: '/v1/me' });
  const teamId = encodeURIComponent(me.body.team.id);
  const { body } = await ask<{ keys: IDataObject[] }>(caller, {
    path: `/.well-known/webhook-signing-keys/${teamId}`,
  });
  return body.keys.filter((one) => one.type === 'ed25519').map((one) => String(one.key));
}

function bytesOfKey(key: string): Buffer {
  return Buffer.from(key.replace(/^whpk_/, ''), 'base64');
}

function matches(key: Buffer, signed: Buffer, signature: Buffer): boolean {
  const publicKey = createPublicKey({ key: Buffer.concat([KEY_PREFIX, key]), format: 'der', type: 'spki' });
  return verify(null, signed, publicKey, signature);
}
