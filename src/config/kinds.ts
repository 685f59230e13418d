/** The kinds of settings: how the text of a setting is parsed, into which type, and what a valid text looks like. */
import { resolve } from 'node:path';
import { parseRate, type Rate } from '../model/load-limit.ts';
import { type MailSender, readDomain, readMailAddress } from '../model/messages/mail-address.ts';
import { type AddressPolicy, parseAllowNetworks } from '../net/address-policy.ts';
import { type NetworkList, parseNetworkList, parseTrustedProxies, type TrustedProxies } from '../net/host.ts';
import { parseSmtpUrl, type SmtpServer } from '../net/smtp-url.ts';
import { findRunAs, type RunAs } from '../sources/process/environment.ts';
import { parseDuration, parseSize } from '../std/amounts.ts';
import { databaseUrlMistake } from '../store/database-url.ts';

/** How the text of a setting is parsed and described. */
interface Reading<T> {
  /** The name of the value in the help, such as `number` in `--port <number>`. */
  placeholder: string;
  /** Completes the sentence "must be …". */
  expected: string;
  /**
   * Returns the value, or undefined if the text is invalid.
   *
   * @param directory the absolute path of the directory that relative paths start from
   */
  read(text: string, directory: string): T | undefined;
  /** Returns a more precise ending for the error sentence than "must be <expected>". */
  mistake?(text: string): string;
  /** The value to use if the setting is not set. */
  absent?: T;
  /** The suffix of the field's name in `Config`. `Ms` means that the value is in milliseconds. */
  unit?: 'Ms';
}

/** One row of the table. */
export interface Setting<T> extends Reading<T> {
  sentence: string;
  /** The default, as text. Undefined if there is no default, or if the default depends on other settings. */
  default: string | undefined;
  /** The default in words, if it is not a fixed text. */
  byDefault?: string;
  /** A valid value to show in `flowhook.yaml`. */
  example: string;
  /** The value is never shown, has no flag, and may also come from the file named by `<variable>_FILE`. */
  secret?: true;
  /**
   * The value may contain a secret: errors do not quote it, and it may come from the file named by `<variable>_FILE`.
   * Unlike a secret, it has a flag.
   */
  mayHoldSecret?: true;
}

/** A default that is not a fixed text. */
interface Unset {
  byDefault: string;
  example: string;
}

/** The type of a setting's value. The value may be undefined if the setting has no fixed default. */
type Or<P, T> = P extends Unset ? T | undefined : T;

/** @param byDefault the default in words, such as `none` */
export function unset(byDefault: string, example: string): Unset {
  return { byDefault, example };
}

/** Makes a setting. Every function below that makes a kind of setting calls this one. */
export function setting<T, P extends string | Unset>(
  reading: Reading<T>,
  preset: P,
  sentence: string,
  more: { secret?: true; mayHoldSecret?: true } = {},
): Setting<Or<P, T>> {
  const initial =
    typeof preset === 'string'
      ? { default: preset, example: preset }
      : { default: undefined, byDefault: preset.byDefault, example: preset.example };
  return { ...reading, ...initial, ...more, sentence } as Setting<Or<P, T>>;
}

/** A whole number from `least` to `most`. */
export function whole<P extends number | Unset>(least: number, most: number, preset: P, sentence: string) {
  const reading: Reading<number> = {
    placeholder: 'number',
    expected: `a whole number from ${least} to ${most}`,
    read: (text) => {
      const number = Number(text);
      return /^\d+$/.test(text) && number >= least && number <= most ? number : undefined;
    },
  };
  return setting(reading, asText(preset), sentence) as Setting<Or<P, number>>;
}

/**
 * A setting that takes one of several words.
 *
 * @param placeholder text to show after the flag if there are too many words to list; `sentence` must then list the
 *   words
 */
export function oneOf<T extends string>(
  words: readonly T[],
  preset: NoInfer<T>,
  sentence: string,
  placeholder = words.join('|'),
) {
  const read = (text: string) => words.find((word) => word === text);
  const reading = { placeholder, expected: `one of ${words.join(', ')}`, read };
  return setting<T, string>(reading, preset, sentence);
}

/** `on` or `off`. */
export function onOff(preset: 'on' | 'off', sentence: string) {
  const read = (text: string) => (text === 'on' ? true : text === 'off' ? false : undefined);
  return setting<boolean, string>(
    { placeholder: 'on|off', expected: 'one of on, off', read },
    preset,
    sentence,
  );
}

/** A number of bytes. The bounds are sizes such as `10GB`. */
export function size<P extends string | Unset>(least: string, most: string, preset: P, sentence: string) {
  const [leastBytes, mostBytes] = [parseSize(least) ?? 0, parseSize(most) ?? 0];
  const reading: Reading<number> = {
    placeholder: 'size',
    expected: `a size from ${least} to ${most} such as 500MB or 10GB`,
    read: (text) => {
      const bytes = parseSize(text);
      return bytes !== undefined && bytes >= leastBytes && bytes <= mostBytes ? bytes : undefined;
    },
  };
  return setting<number, P>(reading, preset, sentence);
}

/** A duration in milliseconds. The setting's field in `Config` ends in `Ms`. The bounds are times such as `30s`. */
export function duration<P extends string | Unset>(least: string, most: string, preset: P, sentence: string) {
  return setting<number, P>(timeReading(least, most), preset, sentence) as Setting<Or<P, number>> & {
    unit: 'Ms';
  };
}

/** A duration in milliseconds, or null for `off`. */
export function durationOrOff(least: string, most: string, preset: string, sentence: string) {
  const time = timeReading(least, most);
  const reading: Reading<number | null> = {
    ...time,
    placeholder: 'time|off',
    expected: `off, or ${time.expected}`,
    read: (text, directory) => (text === 'off' ? null : time.read(text, directory)),
  };
  return setting(reading, preset, sentence) as Setting<number | null> & { unit: 'Ms' };
}

function timeReading(least: string, most: string): Reading<number> {
  const [leastMs, mostMs] = [parseDuration(least) ?? 0, parseDuration(most) ?? 0];
  return {
    placeholder: 'time',
    expected: `a time from ${least} to ${most} such as 30s, 15m or 24h`,
    read: (text) => {
      const ms = parseDuration(text);
      return ms !== undefined && ms >= leastMs && ms <= mostMs ? ms : undefined;
    },
    unit: 'Ms',
  };
}

/** An absolute path. */
export function path<P extends string | Unset>(kind: 'directory' | 'file', preset: P, sentence: string) {
  const read = (text: string, directory: string) => resolve(directory, text);
  return setting<string, P>({ placeholder: kind, expected: `the path of a ${kind}`, read }, preset, sentence);
}

/** A comma-separated list of origins, empty by default. */
export function origins(preset: Unset, sentence: string) {
  const isOrigin = (one: string) => one === '*' || (URL.canParse(one) && new URL(one).origin === one);
  const reading: Reading<string[]> = {
    placeholder: 'list',
    expected: 'a comma-separated list of origins such as https://app.example.com, or *',
    read(text) {
      const entries = text.split(',').map((one) => one.trim());
      const written = entries.filter((one) => one !== '');
      return written.every(isOrigin) ? written : undefined;
    },
    absent: [],
  };
  return setting(reading, preset, sentence) as Setting<string[]>;
}

/** A secret, which comes only from the environment or a file. */
export function secret<T>(reading: Reading<T>, byDefault: string, sentence: string) {
  return setting(reading, unset(byDefault, ''), sentence, { secret: true });
}

function asText(preset: number | Unset): string | Unset {
  return typeof preset === 'number' ? String(preset) : preset;
}

const NETWORKS = 'a comma-separated list of loopback, private, CIDRs and addresses';

export const listenHost: Reading<string> = {
  placeholder: 'address',
  expected: 'an address or hostname of this machine',
  read: (host) => (/^[^\s/?#@[\]]+$/.test(host) ? host : undefined),
};

export const httpUrl: Reading<string> = {
  placeholder: 'url',
  expected: 'an http:// or https:// URL without a query',
  read: (url) => (/^https?:\/\/[^/\s?#]+[^\s?#]*$/.test(url) && URL.canParse(url) ? url : undefined),
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

/** Null, for `off`: no limit. */
export const rateOrOff: Reading<Rate | null> = {
  placeholder: 'rate|off',
  expected: 'off, or a rate such as 600/1m or 10/s, over a period from 1 second to 1 day',
  read: (text) => (text === 'off' ? null : parseRate(text)),
};

export const smtpUrl: Reading<SmtpServer> = {
  placeholder: 'url',
  expected: 'an smtp:// or smtps:// URL',
  read: (text) => {
    const found = parseSmtpUrl(text);
    return 'expected' in found ? undefined : found;
  },
  mistake: (text) => {
    const found = parseSmtpUrl(text);
    return 'expected' in found ? `must be ${found.expected}` : '';
  },
};

export const mailSender: Reading<MailSender> = {
  placeholder: 'address',
  expected: 'a mail address such as flowhook@example.com, with or without a name',
  read: (text) => {
    const [, name, named] = /^([^<>"]*)<([^<>]*)>$/.exec(text.trim()) ?? [];
    const address = readMailAddress((named ?? text).trim());
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must be refused.
    if ('mistake' in address || /[\u0000-\u001f\u007f]/.test(name ?? '')) return undefined;
    return { name: (name ?? 'Flowhook').trim(), address };
  },
};

/** Domains of recipients, each with its subdomains. */
export const mailDomains: Reading<string[]> = {
  placeholder: 'list',
  expected: 'a comma-separated list of domains such as example.com',
  read: (text) => {
    const domains = text.split(',').map((one) => readDomain(one.trim()));
    return domains.some((one) => one === undefined) ? undefined : (domains as string[]);
  },
};

function addressMistake(text: string): string | undefined {
  try {
    parseAllowNetworks(text);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}
