/** Where a webhook sends: the kinds of destinations, and checks of typed addresses. */
import { type UrlRemark, urlRemark } from './typed.ts';

export type DestinationKind = keyof typeof DESTINATIONS;

/** The destinations that are read by people, each with a format of its own. */
export type PeopleKind = Exclude<DestinationKind, 'http'>;

interface Destination {
  /** The choice in the dialog. */
  label: string;
  /** The label of the address. */
  asks: string;
  placeholder: string;
  /** What arrives there, or where to get the address. */
  help: string;
}

const DESTINATIONS = {
  http: {
    label: 'HTTP endpoint',
    asks: 'URL',
    placeholder: 'https://example.com/hooks/flowhook',
    help: 'Receives a POST request with JSON for every event',
  },
  mail: {
    label: 'Mail',
    asks: 'Mail address',
    placeholder: 'ops@example.org',
    help: 'Gets one mail with a link that confirms the address. Nothing else is sent before that.',
  },
  slack: {
    label: 'Slack',
    asks: 'URL of the incoming webhook',
    placeholder: 'https://hooks.slack.com/services/…',
    help: 'In Slack: open api.slack.com/apps, create or choose an app, turn on Incoming Webhooks, choose Add New Webhook, choose the channel, and copy the URL.',
  },
  discord: {
    label: 'Discord',
    asks: 'URL of the webhook',
    placeholder: 'https://discord.com/api/webhooks/…',
    help: 'In Discord: open the settings of the channel, choose Integrations, Webhooks, New Webhook, and then Copy Webhook URL.',
  },
  teams: {
    label: 'Teams',
    asks: 'URL of the workflow',
    placeholder: 'https://….logic.azure.com/workflows/…',
    help: 'In Teams: open the menu of the channel, choose Workflows, then the template that posts to a channel when a webhook request is received, and copy the URL at its end.',
  },
} as const satisfies Record<string, Destination>;

export function destinationOf(kind: DestinationKind): Destination {
  return DESTINATIONS[kind];
}

export const DESTINATION_KINDS = Object.keys(DESTINATIONS) as DestinationKind[];

/** The hosts of the addresses that each chat service gives out. */
const HOSTS: Record<Exclude<PeopleKind, 'mail'>, RegExp> = {
  slack: /^hooks\.slack(-gov)?\.com$/,
  discord: /^((ptb|canary)\.)?discord(app)?\.com$/,
  teams: /\.(webhook\.office\.com|logic\.azure\.(com|us)|powerplatform\.com)$/,
};

/** The chat service to which a URL belongs; undefined for any other. */
export function chatOf(url: string): PeopleKind | undefined {
  const host = URL.parse(url.trim())?.hostname ?? '';
  return (Object.keys(HOSTS) as (keyof typeof HOSTS)[]).find((kind) => HOSTS[kind].test(host));
}

/** The kind that fits a typed address better than the chosen one: a pasted URL of Slack, or a mail address. */
export function meantKind(kind: DestinationKind, address: string): DestinationKind {
  if (/^mailto:/i.test(address.trim())) return 'mail';
  const chat = chatOf(address);
  return kind === 'http' || chat !== undefined ? (chat ?? kind) : kind;
}

/** The URL of a webhook: `mailto:ops@example.org` for a mail address. */
export function urlFrom(kind: DestinationKind, address: string): string {
  if (kind !== 'mail') return address.trim();
  return /^mailto:/i.test(address.trim())
    ? address.trim()
    : `mailto:${address.trim().replaceAll(/[%?#/\\^`{|}]/g, encodeURIComponent)}`;
}

/** A mail address without `mailto:`; any other URL as it is. */
export function addressOf(url: string): string {
  if (!isMail(url.trim())) return url.trim();
  try {
    return decodeURIComponent(url.trim().slice('mailto:'.length));
  } catch {
    return url.trim();
  }
}

export function isMail(url: string): boolean {
  return /^mailto:/i.test(url);
}

/** What is wrong with a typed address, or worth a warning. */
export function addressRemark(kind: DestinationKind, address: string): UrlRemark {
  const text = address.trim();
  if (text === '') return {};
  if (kind === 'mail') {
    const isOne = /^[^\s@,;<>]+@[^\s@,;<>]+$/.test(addressOf(text));
    return isOne ? {} : { mistake: 'Enter one mail address, such as ops@example.org' };
  }
  // Deliveries to an inspector do not leave this service.
  const remark = text.includes('/inspect/insp_') ? {} : urlRemark(text);
  if (kind === 'http' || remark.mistake !== undefined || chatOf(text) === kind) return remark;
  const { label } = DESTINATIONS[kind];
  return {
    hint: `This is not an address of ${label}. It gets the JSON that ${label} expects; make sure that it understands it.`,
  };
}
