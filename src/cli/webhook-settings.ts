/** The flags of `flowhook webhooks set` as settings; what is not named stays as it is. */
import type { WebhookSettings } from 'flowhook-client';
import { UsageError } from './exit.ts';
import type { Options } from './settings.ts';

/** @throws UsageError */
export function settingsFrom({ ordered, rate, timeout, header, headers }: Options): WebhookSettings {
  return {
    ...(ordered === undefined ? {} : { ordered: ordered === true }),
    ...(rate === undefined ? {} : { ratePerSecond: rate === 'none' ? null : Number(rate) }),
    ...(timeout === undefined ? {} : { timeoutMs: Math.round(Number(timeout) * 1_000) }),
    ...(headers === false ? { headers: null } : header === undefined ? {} : { headers: headersFrom(header) }),
  };
}

function headersFrom(lines: unknown): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const line of lines as string[]) {
    const [, name, value] = /^([^:]+):\s*(.*)$/.exec(line) ?? [];
    if (name === undefined) throw new UsageError(`--header must be name:value, found "${line}"`);
    headers[name] = value ?? '';
  }
  return headers;
}
