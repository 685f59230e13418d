/**
 * The links in mails: to confirm an address, and to end the mails. Nothing about a link is stored: it is signed with a
 * key that is derived from the encryption key of the installation, for one purpose, webhook and address.
 */
import { timingSafeEqual } from 'node:crypto';
import { mac, type Sealer } from '../../std/seal.ts';

const MAIL_LINK_PURPOSES = ['verify', 'unsubscribe'] as const;
export type MailLinkPurpose = (typeof MAIL_LINK_PURPOSES)[number];

/** How long the link in a verification mail is valid. */
export const VERIFY_MS = 7 * 24 * 3_600_000;

interface Linked {
  teamId: string;
  webhookId: string;
  /** The `mailto:` URL of the webhook. The link does not contain it. */
  url: string;
}

/** The path of the page that confirms the address of a webhook. */
export function verifyPath(sealer: Sealer, webhook: Linked, nowMs: number): string {
  return `/mail/verify/${tokenOf(sealer, 'verify', webhook, nowMs + VERIFY_MS)}`;
}

/** The path of the page that ends the mails of a webhook. Old mails contain it, so it never expires. */
export function unsubscribePath(sealer: Sealer, webhook: Linked): string {
  return `/mail/unsubscribe/${tokenOf(sealer, 'unsubscribe', webhook, 0)}`;
}

/** What a token says. Nothing of it is proven until `isGenuine`. */
export interface MailToken {
  teamId: string;
  webhookId: string;
  /** Epoch milliseconds; 0: never. */
  expiresAt: number;
  signature: string;
}

/** Reads a token; undefined if it is not one. */
export function readMailToken(token: string): MailToken | undefined {
  const [teamId = '', webhookId = '', expires = '', signature = '', ...rest] = token.split('.');
  const isToken = /^[a-z0-9_]{1,64}$/.test(teamId) && /^wh_[a-z0-9]{1,64}$/.test(webhookId);
  if (!isToken || !/^[0-9a-z]{1,12}$/.test(expires) || !/^[0-9a-f]{64}$/.test(signature) || rest.length > 0) {
    return undefined;
  }
  return { teamId, webhookId, expiresAt: Number.parseInt(expires, 36), signature };
}

/** Whether this installation made the token for this purpose, and for the address that the webhook has now. */
export function isGenuine(sealer: Sealer, purpose: MailLinkPurpose, token: MailToken, url: string): boolean {
  const { teamId, webhookId, expiresAt, signature } = token;
  const own = signatureOf(sealer, purpose, { teamId, webhookId, url }, expiresAt);
  return timingSafeEqual(Buffer.from(own), Buffer.from(signature));
}

function tokenOf(sealer: Sealer, purpose: MailLinkPurpose, webhook: Linked, expiresAt: number): string {
  const { teamId, webhookId } = webhook;
  return [teamId, webhookId, expiresAt.toString(36), signatureOf(sealer, purpose, webhook, expiresAt)].join(
    '.',
  );
}

function signatureOf(sealer: Sealer, purpose: MailLinkPurpose, webhook: Linked, expiresAt: number): string {
  const { teamId, webhookId, url } = webhook;
  return mac(sealer.macKey('mail-link'), JSON.stringify([purpose, teamId, webhookId, url, expiresAt]));
}
