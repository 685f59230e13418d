/** The range of versions whose changes are shown, in the address: `version=17`, or `since` and `until`. */
import type { Version } from '../../../../client/src/flowhook-client.ts';

/** The parameters of the address. `since` and `until` are versions (digits) or ISO 8601 times, as in the API. */
export interface SpanAddress {
  version?: string | undefined;
  since?: string | undefined;
  until?: string | undefined;
}

/** What the API is asked for. */
export interface Span {
  since: string;
  until: string;
}

/**
 * The range that an address means.
 *
 * @param newest the newest version, up to which a range without `until` extends
 */
export function spanOf({ version, since, until }: SpanAddress, newest: number): Span {
  if (since !== undefined) return { since, until: until ?? String(newest) };
  const number = versionOf(version) ?? newest;
  return { since: String(Math.max(0, number - 1)), until: String(number) };
}

/** The version if the range consists of one; otherwise undefined. */
export function singleVersion({ version, since }: SpanAddress, newest: number): number | undefined {
  return since === undefined ? (versionOf(version) ?? newest) : undefined;
}

function versionOf(text: string | undefined): number | undefined {
  const number = Number(text ?? '');
  return Number.isSafeInteger(number) && number > 0 ? number : undefined;
}

/** A start of a range that one click chooses. */
export interface Preset {
  label: string;
  /** ISO 8601: the start of a day. */
  since: string;
}

/** The starts of today, yesterday and the six days before, each named as people say it. */
export function presets(nowMs: number, zone: 'local' | 'utc'): Preset[] {
  return Array.from({ length: 8 }, (_, days) => {
    const start = new Date(nowMs);
    if (zone === 'utc') {
      start.setUTCHours(0, 0, 0, 0);
      start.setUTCDate(start.getUTCDate() - days);
    } else {
      start.setHours(0, 0, 0, 0);
      start.setDate(start.getDate() - days);
    }
    const weekday = start.toLocaleDateString('en-US', {
      weekday: 'long',
      timeZone: zone === 'utc' ? 'UTC' : undefined,
    });
    return { label: ['Today', 'Yesterday'][days] ?? weekday, since: start.toISOString() };
  });
}

/** `2026-11-17T08:30` for an input of a date and time; empty for a version. */
export function toInput(moment: string | undefined, zone: 'local' | 'utc'): string {
  if (moment === undefined || isVersion(moment) || Number.isNaN(Date.parse(moment))) return '';
  const at = new Date(moment);
  const shifted = zone === 'utc' ? at : new Date(at.getTime() - at.getTimezoneOffset() * 60_000);
  return shifted.toISOString().slice(0, 16);
}

/** ISO 8601; undefined for an empty or incomplete input. */
export function fromInput(text: string, zone: 'local' | 'utc'): string | undefined {
  const ms = Date.parse(zone === 'utc' ? `${text}Z` : text);
  return Number.isNaN(ms) ? undefined : new Date(ms).toISOString();
}

export function isVersion(moment: string): boolean {
  return /^\d+$/.test(moment);
}

/** Names in the address, comma-separated and encoded, because names may contain commas. */
export function namesFrom(value: string | undefined): string[] {
  return (value?.split(',') ?? []).map((name) => {
    try {
      return decodeURIComponent(name);
    } catch {
      return name;
    }
  });
}

/** Undefined for no names, which removes the parameter. */
export function namesIn(names: readonly string[]): string | undefined {
  return names.length === 0 ? undefined : names.map((name) => encodeURIComponent(name)).join(',');
}

/** The query of the API for a range. */
export function changesSearch(
  { since, until }: Span,
  { type, fields }: { type?: string | undefined; fields: readonly string[] },
): string {
  const query = new URLSearchParams({ since, until, ...(type === undefined ? {} : { type }) });
  for (const field of fields) query.append('field', field);
  return query.toString().replaceAll('%3A', ':');
}

/** When a version was published; undefined if it is not among the loaded ones. */
export function publishedAt(versions: readonly Version[], number: number): string | undefined {
  return versions.find((version) => version.number === number)?.publishedAt;
}
