/** The mail address of a webhook whose URL is `mailto:…`: which addresses are accepted, and in which form. */
import { isIP } from 'node:net';
import { domainToASCII } from 'node:url';

/** An address in the form that is sent: the domain in lower case and in ASCII, the local part as it was written. */
export interface MailAddress {
  local: string;
  domain: string;
  /** `local@domain`. */
  text: string;
}

/** The sender of mails. */
export interface MailSender {
  /** Empty for none. */
  name: string;
  address: MailAddress;
}

/** Octets that SMTP allows (RFC 5321, 4.5.3.1): of the part before the @, and of the whole address. */
const MAX_LOCAL = 64;
const MAX_ADDRESS = 254;
const MAX_LABEL = 63;

/** RFC 5322 `dot-atom`, and RFC 6532 for characters beyond ASCII. */
const LOCAL = /^[^\s\p{C}\p{Z}"(),.:;<>@[\\\]]+(?:\.[^\s\p{C}\p{Z}"(),.:;<>@[\\\]]+)*$/u;
const LABEL = /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/;
const SCHEME = /^mailto:/i;
const RIGHT_FORM = 'Use one address, such as mailto:ops@example.org';

/** Whether a URL names a mail address. The URL need not be valid. */
export function isMailUrl(url: string): boolean {
  return SCHEME.test(url);
}

/**
 * Reads the URL of a webhook that sends mail. Exactly one address is accepted, without a name and without header fields.
 *
 * @returns the address, or a sentence that describes the mistake and the nearest right form
 */
export function readMailUrl(url: string): MailAddress | { mistake: string } {
  const written = url.replace(SCHEME, '');
  if (/[?#]/.test(written)) {
    return {
      mistake: `must end after the address, without "?" and "#". ${nearest(written.split(/[?#]/)[0])}`,
    };
  }
  if (written.startsWith('//')) {
    return { mistake: `must have no slashes after "mailto:". ${nearest(written.slice(2))}` };
  }
  let plain: string;
  try {
    plain = decodeURIComponent(written);
  } catch {
    return { mistake: `has an invalid percent escape. Write a percent sign as %25. ${RIGHT_FORM}` };
  }
  return readMailAddress(plain);
}

/** Like `readMailUrl`, for the address alone. */
export function readMailAddress(plain: string): MailAddress | { mistake: string } {
  const mistake = (what: string, suggestion = RIGHT_FORM) => ({ mistake: `${what}. ${suggestion}` });
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must be refused.
  if (!plain.isWellFormed() || /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/.test(plain)) {
    return mistake('must not contain line breaks or other control characters');
  }
  const named = /<([^<>]*)>\s*$/.exec(plain)?.[1];
  if (named !== undefined) return mistake('must be an address without a name', nearest(named));
  if (plain.includes('"')) {
    return mistake('must not have a quoted part before the @, which many mail servers misread');
  }
  const first = /[,;]/.test(plain) ? plain.split(/[,;]/)[0] : undefined;
  if (first !== undefined) {
    return mistake(
      'must be a single address. Create a webhook for each address, or use the address of a list',
      nearest(first),
    );
  }
  const at = plain.lastIndexOf('@');
  const [local, host] = [plain.slice(0, at), plain.slice(at + 1)];
  if (at <= 0 || host === '') return mistake('must be an address with an @ between its two parts');
  if (local.includes('@')) return mistake('must contain a single @');
  if (/^\[.*\]$/.test(host) || isIP(host) !== 0) {
    return mistake('must have the name of a domain after the @, not the address of a machine');
  }
  // The function reads a host as the beginning of a URL does, and ignores what follows.
  const domain = /[^\p{L}\p{M}\p{N}.\u3002\uff0e\uff61-]/u.test(host) ? '' : domainToASCII(host);
  const labels = domain.split('.');
  const isDomain = labels.every((label) => label.length <= MAX_LABEL && LABEL.test(label));
  if (!LOCAL.test(local) || !isDomain || isIP(domain) !== 0) return mistake('must be a valid mail address');
  const text = `${local}@${domain}`;
  if (Buffer.byteLength(local) > MAX_LOCAL) {
    return mistake(`must have at most ${MAX_LOCAL} bytes before the @, found ${Buffer.byteLength(local)}`);
  }
  if (Buffer.byteLength(text) > MAX_ADDRESS) {
    return mistake(`must have at most ${MAX_ADDRESS} bytes, found ${Buffer.byteLength(text)}`);
  }
  return { local, domain, text };
}

function nearest(written = ''): string {
  const found = readMailAddress(written.trim());
  return 'mistake' in found ? RIGHT_FORM : `Use ${mailUrl(found)}`;
}

/** The URL of a webhook that sends to an address. Equal addresses have equal URLs. */
export function mailUrl({ local, domain }: MailAddress): string {
  return `mailto:${local.replace(/[%?#/\\^`{|}]/g, encodeURIComponent)}@${domain}`;
}

/** The domain of a sender or a recipient as settings and addresses write it; undefined if it is not valid. */
export function readDomain(text: string): string | undefined {
  const found = readMailAddress(`postmaster@${text}`);
  return 'mistake' in found ? undefined : found.domain;
}
