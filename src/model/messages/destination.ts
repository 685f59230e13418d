/** Where people read messages: a mail address, or the URL of an incoming webhook of Slack, Discord or Teams. */
import { type FormatForPeople, isForPeople, type Rule } from '../rule.ts';
import { destinationMistake } from '../webhook.ts';
import { isMailUrl, mailUrl, readMailAddress } from './mail-address.ts';

export interface Destination {
  /** `webhookUrl` in requests. */
  url: string;
  format: FormatForPeople;
}

/** How people call the formats. */
export const PROGRAM_NAMES: Readonly<Record<FormatForPeople, string>> = {
  slack: 'Slack',
  discord: 'Discord',
  teams: 'Teams',
  mail: 'mail',
};

const EXAMPLE_URLS = {
  slack: 'https://hooks.slack.com/services/…',
  discord: 'https://discord.com/api/webhooks/…',
  teams: 'https://….environment.api.powerplatform.com/…',
};
const EXAMPLES = `ops@example.org, ${EXAMPLE_URLS.slack} or ${EXAMPLE_URLS.discord}`;

/**
 * Reads a destination as people write it: a mail address with or without `mailto:`, or a URL.
 *
 * @param format the program that receives at the URL; undefined: recognized by its host
 * @returns the destination, or a sentence that describes the mistake and says what to write instead
 */
export function destinationOf(written: string, format?: FormatForPeople): Destination | { mistake: string } {
  const text = written.trim();
  const isUrl = /^https?:/i.test(text);
  if (isMailUrl(text) || (!isUrl && text.includes('@'))) return mailDestination(text, format);
  if (format === 'mail') {
    return { mistake: `must be a mail address such as ops@example.org, found "${shown(written)}"` };
  }
  if (!isUrl) {
    const [what, examples] =
      format === undefined
        ? ['a mail address or a URL', EXAMPLES]
        : [`the URL of an incoming webhook of ${PROGRAM_NAMES[format]}`, EXAMPLE_URLS[format]];
    return { mistake: `must be ${what}, such as ${examples}, found "${shown(written)}"` };
  }
  const mistake = destinationMistake(text);
  if (mistake !== undefined) return { mistake: mistake.replace(/^`webhookUrl` /, '') };
  const known = programOf(text);
  if (format === undefined) {
    if (known !== undefined) return { url: text, format: known };
    return {
      mistake: `must say which program reads the messages, because ${new URL(text).host} is not known`,
    };
  }
  if (known === undefined || known === format) return { url: text, format };
  return {
    mistake: `must be an address of ${PROGRAM_NAMES[format]}, but ${new URL(text).host} belongs to ${PROGRAM_NAMES[known]}`,
  };
}

function mailDestination(text: string, format?: FormatForPeople): Destination | { mistake: string } {
  if (format !== undefined && format !== 'mail') {
    return { mistake: `must be a URL of ${PROGRAM_NAMES[format]}, found the mail address "${shown(text)}"` };
  }
  if (isMailUrl(text)) {
    const mistake = destinationMistake(text);
    return mistake === undefined
      ? { url: text, format: 'mail' }
      : { mistake: mistake.replace(/^`webhookUrl` /, '') };
  }
  const address = readMailAddress(text);
  return 'mistake' in address
    ? { mistake: address.mistake.replace('mailto:', '') }
    : { url: mailUrl(address), format: 'mail' };
}

/** The program to which a host belongs that only receives its messages; undefined if it may be any receiver. */
export function programOf(url: string): FormatForPeople | undefined {
  if (isMailUrl(url)) return 'mail';
  if (!URL.canParse(url)) return undefined;
  const { hostname, pathname } = new URL(url);
  if (/^hooks\.slack(-gov)?\.com$/.test(hostname)) return 'slack';
  if (/^((canary|ptb)\.)?discord(app)?\.com$/.test(hostname)) {
    if (!pathname.startsWith('/api/')) return undefined;
    // Discord also accepts the messages of Slack, at an address of its own.
    return /\/slack\/?$/.test(pathname) ? 'slack' : 'discord';
  }
  const isTeams = /\.(webhook\.office\.com|logic\.azure\.com|environment\.api\.powerplatform\.com)$/;
  return isTeams.test(hostname) ? 'teams' : undefined;
}

/**
 * The URL of a webhook as other webhooks may know it. Anyone who knows the whole address of a chat webhook can write to
 * it, so only its origin is left.
 */
export function toldUrl(url: string, rule: Pick<Rule, 'format'> | null): string {
  if (isMailUrl(url)) return url;
  const isOfChat = programOf(url) !== undefined || (rule !== null && isForPeople(rule.format));
  return isOfChat ? `${new URL(url).origin}/` : url;
}

/**
 * The URL of a webhook as it is shown to readers who may not manage webhooks, and in the audit log: without user,
 * password, fragment, the values of the query, the path of a chat webhook, and the name before the @ of a mail address.
 */
export function maskedUrl(url: string, rule: Pick<Rule, 'format'> | null): string {
  if (isMailUrl(url)) return url.replace(/:.*@/, ':***@');
  const told = toldUrl(url, rule);
  if (told !== url) return told;
  const [, start = '', query, fragment] = /^([^?#]*)(\?[^#]*)?(#.*)?$/s.exec(url) ?? [];
  return [
    start.replace(/(?<=:\/\/)[^/]*@/, '***@'),
    query?.replace(/[^?&]+/g, (pair) => (pair.includes('=') ? pair.replace(/=.*/s, '=***') : '***')) ?? '',
    fragment === undefined ? '' : '#***',
  ].join('');
}

/** A destination as people recognize it: the address, or the name of the program and its host. */
export function destinationWords(url: string, format: string): string {
  if (isMailUrl(url)) return url.replace(/^mailto:/i, '');
  const name = (PROGRAM_NAMES as Readonly<Record<string, string>>)[format];
  return name === undefined ? url : `${name} (${URL.canParse(url) ? new URL(url).host : url})`;
}

function shown(text: string): string {
  return text.slice(0, 100);
}
