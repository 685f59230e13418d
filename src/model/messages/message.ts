/** The body that a webhook for people sends. */
import type { FormatForPeople } from '../rule.ts';
import { discordMessage } from './discord.ts';
import { letterOf } from './mail.ts';
import type { Notice } from './notice.ts';
import { slackMessage } from './slack.ts';
import { teamsMessage } from './teams.ts';

const MAKERS: Readonly<Record<FormatForPeople, (notice: Notice) => unknown>> = {
  slack: slackMessage,
  discord: discordMessage,
  teams: teamsMessage,
  mail: letterOf,
};

/** Returns JSON: a message of Slack, Discord or Teams, or a `Letter`. */
export function messageBody(format: FormatForPeople, notice: Notice): string {
  return JSON.stringify(MAKERS[format](notice));
}

/** Whether JSON text is a message that `messageBody` may have made. */
export function isMessageForPeople(body: string): boolean {
  const value: unknown = JSON.parse(body);
  if (typeof value !== 'object' || value === null) return false;
  return ['html', 'blocks', 'embeds', 'attachments'].some((name) => Object.hasOwn(value, name));
}
