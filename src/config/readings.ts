/** How settings are read that are the only ones of their kind. */
import { parseRate, type Rate } from '../model/rate.ts';
import { type AddressPolicy, parseAllowNetworks } from '../net/address-policy.ts';
import { type NetworkList, parseNetworkList } from '../net/network-list.ts';
import { parseTrustedProxies, type TrustedProxies } from '../net/trusted-proxies.ts';
import { findRunAs, type RunAs } from '../sources/process/run-as.ts';
import { databaseUrlMistake } from '../store/database-url.ts';
import type { Reading } from './kinds.ts';

const NETWORKS = 'a list of loopback, private, CIDRs and addresses';

export const httpUrl: Reading<string> = {
  placeholder: 'url',
  expected: 'an http:// or https:// URL without query',
  read: (url) => (/^https?:\/\/[^/\s?#]+[^\s?#]*$/.test(url) && URL.canParse(url) ? url : undefined),
};

/** An entry of a list. */
export const origin = {
  expected: 'a list of origins such as https://app.example.com, or *',
  is: (one: string) => one === '*' || (URL.canParse(one) && new URL(one).origin === one),
};

export const databaseUrl: Reading<string> = {
  placeholder: 'url',
  expected: 'a sqlite: or postgres:// URL',
  read: (url) => (databaseUrlMistake(url) === undefined ? url : undefined),
  mistake: (url) => `must be ${databaseUrlMistake(url)}`,
};

export const bootstrapKey: Reading<string> = {
  placeholder: 'key',
  expected: '16 to 256 printable ASCII characters without spaces or commas',
  read: (key) => (/^[\x21-\x7e]{16,256}$/.test(key) ? key : undefined),
};

export const encryptionKey: Reading<Buffer> = {
  placeholder: 'key',
  expected: '32 bytes as base64 or as 64 hex digits',
  read: (key) => {
    const bytes = /^[0-9a-f]{64}$/i.test(key) ? Buffer.from(key, 'hex') : Buffer.from(key, 'base64');
    return bytes.length === 32 ? bytes : undefined;
  },
};

export const trustedProxies: Reading<TrustedProxies | false> = {
  placeholder: 'networks',
  expected: `true, false, or ${NETWORKS}`,
  read: parseTrustedProxies,
};

export const networksOrNone: Reading<NetworkList | 'none'> = {
  placeholder: 'list',
  expected: `${NETWORKS}, or none`,
  read: (text) => (text === 'none' ? text : parseNetworkList(text)),
};

export const addressPolicy: Reading<AddressPolicy> = {
  placeholder: 'list',
  expected: `${NETWORKS}, or none`,
  read: (text) => (addressMistake(text) === undefined ? parseAllowNetworks(text) : undefined),
  mistake: (text) => `is refused: ${addressMistake(text)}`,
};

export const systemUser: Reading<RunAs> = {
  placeholder: 'user',
  expected: 'the name of a system user, its number, or uid:gid',
  read: (text) => {
    const found = findRunAs(text);
    return 'mistake' in found ? undefined : found;
  },
  mistake: (text) => {
    const found = findRunAs(text);
    return 'mistake' in found ? found.mistake : '';
  },
};

/** `off` is read as null: no limit. */
export const rateOrOff: Reading<Rate | null> = {
  placeholder: 'rate|off',
  expected: 'off, or a number of requests and a time such as 600/1m or 10/s, of a second to a day',
  read: (text) => (text === 'off' ? null : parseRate(text)),
};

function addressMistake(text: string): string | undefined {
  try {
    parseAllowNetworks(text);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}
