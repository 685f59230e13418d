/** The secret addresses of feeds. A token names its team, so that a feed is looked up where the team's rows are. */
import { createHash, randomBytes } from 'node:crypto';
import type { Feed } from '../../model/messages/feed.ts';
import type { Logger } from '../../observe/log.ts';
import type { Sealer } from '../../std/seal.ts';
import type { FeedToken } from '../../store/operations/feeds/addresses.ts';

const FEED_FORMATS = ['atom', 'json', 'html'] as const;
export type FeedFormat = (typeof FEED_FORMATS)[number];
export type FeedUrls = Record<FeedFormat, string>;

const TEAM_PREFIX = 'team_';
const TEAM_DIGITS = 26;
const SECRET_BYTES = 20;
const ADDRESS = new RegExp(`^([0-9a-z]{${TEAM_DIGITS}}[0-9a-f]{${2 * SECRET_BYTES}})(?:\\.(atom|json))?$`);

/** What an address says. */
export interface FeedAddress {
  teamId: string;
  token: string;
  hash: string;
  format: FeedFormat;
}

/** Reads the last segment of an address: `{token}.atom`, `{token}.json`, or `{token}` for the page. */
export function readAddress(segment: string | undefined): FeedAddress | undefined {
  const [, token, format] = ADDRESS.exec(segment ?? '') ?? [];
  if (token === undefined) return undefined;
  return {
    teamId: TEAM_PREFIX + token.slice(0, TEAM_DIGITS),
    token,
    hash: hashOf(token),
    format: (format as FeedFormat | undefined) ?? 'html',
  };
}

export class FeedAddresses {
  readonly #sealer: Pick<Sealer, 'seal' | 'open'>;
  readonly #publicUrl: () => string;
  readonly #log: Logger;

  /** @param of.publicUrl the URL at which readers reach this service */
  constructor(of: { sealer: Pick<Sealer, 'seal' | 'open'>; publicUrl(): string; log: Logger }) {
    this.#sealer = of.sealer;
    this.#publicUrl = of.publicUrl;
    this.#log = of.log;
  }

  get publicUrl(): string {
    return this.#publicUrl();
  }

  /** Makes the token of a new address. */
  newToken(teamId: string): FeedToken {
    const token = teamId.slice(TEAM_PREFIX.length) + randomBytes(SECRET_BYTES).toString('hex');
    return { hash: hashOf(token), sealed: this.#sealer.seal(token, contextOf(teamId)) };
  }

  /** The addresses of a feed; null if its token cannot be decrypted, because the encryption key has changed. */
  urlsOf({ teamId, id, token }: Pick<Feed, 'teamId' | 'id' | 'token'>): FeedUrls | null {
    try {
      return this.urlsWith(this.#sealer.open(token, contextOf(teamId)).toString('utf8'));
    } catch (error) {
      this.#log.warn({ err: error, teamId, feedId: id }, 'feed.address_not_opened');
      return null;
    }
  }

  urlsWith(token: string): FeedUrls {
    const html = `${this.publicUrl}/feeds/${token}`;
    return { atom: `${html}.atom`, json: `${html}.json`, html };
  }
}

function hashOf(token: string): string {
  return createHash('sha256').update(token).digest('base64url');
}

/** A token is bound only to its team, because the feed has no id yet when the token is made. */
function contextOf(teamId: string): string {
  return `feed-token/${teamId}`;
}
