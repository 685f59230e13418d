/** Formats numbers, times, messages and URLs as text. */
import type { Job } from '../../../client/src/flowhook-client.ts';
import { Remembered } from './store.ts';

const GROUPED = new Intl.NumberFormat('en');
const SIZES = ['B', 'kB', 'MB', 'GB', 'TB'];

/** `1,234`. */
export function count(value: number): string {
  return GROUPED.format(value);
}

/** `1,234 records`, `1 record`, `2 deliveries`. */
export function many(value: number, noun: string): string {
  return `${count(value)} ${value === 1 ? noun : plural(noun)}`;
}

/** `records`, `deliveries`. */
export function plural(noun: string): string {
  return `${noun.replace(/([^aeiou])y$/, '$1ie')}s`;
}

/** `12.3 MB`, in powers of 1,000. */
export function bytes(value: number): string {
  const power = Math.min(SIZES.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(1, value)) / 3)));
  const size = value / 1_000 ** power;
  return `${power === 0 || size >= 100 ? Math.round(size) : size.toFixed(1)} ${SIZES[power]}`;
}

/** `840 ms`, `2.4 s`, `3 min 5 s`, `2 h 10 min`, `3 days 4 h`. */
export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 60) return pair(`${minutes} min`, Math.floor((ms % 60_000) / 1_000), 's');
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return pair(`${hours} h`, minutes % 60, 'min');
  return pair(many(Math.floor(hours / 24), 'day'), hours % 24, 'h');
}

/** The duration of a run in milliseconds; null until it has ended. */
export function tookMs({ startedAt, finishedAt }: Pick<Job, 'startedAt' | 'finishedAt'>): number | null {
  return startedAt === null || finishedAt === null ? null : Date.parse(finishedAt) - Date.parse(startedAt);
}

function pair(large: string, small: number, unit: string): string {
  return small === 0 ? large : `${large} ${small} ${unit}`;
}

/** `relative`: 3 min ago; `local` and `utc`: the date and time. */
export type TimeStyle = 'relative' | 'local' | 'utc';

/** The user's choice, which applies to all times on the page. */
export const timeStyle = new Remembered<TimeStyle>('flowhook-times', ['relative', 'local', 'utc']);

/** The time zone of absolute times. */
export function useZone(): 'local' | 'utc' {
  return timeStyle.use() === 'utc' ? 'utc' : 'local';
}

/** `2026-11-21 03:04:05` in the user's time zone, or `2026-11-21 03:04:05 UTC`. */
export function absolute(time: string, zone: 'local' | 'utc'): string {
  const at = new Date(time);
  const shifted = zone === 'utc' ? at : new Date(at.getTime() - at.getTimezoneOffset() * 60_000);
  return `${shifted.toISOString().slice(0, 19).replace('T', ' ')}${zone === 'utc' ? ' UTC' : ''}`;
}

/** `12 s ago`, `in 3 min`, `5 days ago`. */
export function relative(time: string, nowMs: number): string {
  const ms = Date.parse(time) - nowMs;
  const length = rounded(Math.abs(ms));
  if (length === undefined) return ms > 0 ? 'in a moment' : 'just now';
  return ms > 0 ? `in ${length}` : `${length} ago`;
}

/** `for 3 min`: the time since then. */
export function lasting(time: string, nowMs: number): string {
  return `for ${rounded(nowMs - Date.parse(time)) ?? 'a moment'}`;
}

/** `12 s`, `3 min`, `1 hour`, `5 days`; undefined below a second. */
function rounded(ms: number): string | undefined {
  if (ms >= 86_400_000) return many(Math.floor(ms / 86_400_000), 'day');
  if (ms >= 3_600_000) return many(Math.floor(ms / 3_600_000), 'hour');
  if (ms >= 60_000) return `${Math.floor(ms / 60_000)} min`;
  return ms >= 1_000 ? `${Math.floor(ms / 1_000)} s` : undefined;
}

/** A part of a message from the service: words, code between backticks, or an ISO 8601 time. */
interface SentencePart {
  kind: 'words' | 'code' | 'time';
  text: string;
}

const PARTS = /`([^`\n]+)`|\b(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)/g;

/** The parts of a message in order. An unpaired backtick is an ordinary character. */
export function sentenceParts(text: string): SentencePart[] {
  const parts: SentencePart[] = [];
  let from = 0;
  const add = (part: SentencePart) => part.text !== '' && parts.push(part);
  for (const { 0: whole, 1: code, 2: time, index } of text.matchAll(PARTS)) {
    add({ kind: 'words', text: text.slice(from, index) });
    if (code !== undefined) add({ kind: 'code', text: code });
    else add({ kind: 'time', text: time ?? whole });
    from = index + whole.length;
  }
  add({ kind: 'words', text: text.slice(from) });
  return parts;
}

/** For use in the middle of a sentence. */
export function uncapitalized(sentence: string): string {
  return sentence.charAt(0).toLowerCase() + sentence.slice(1);
}

/** The last line of an error that is not a stack frame. */
export function lastLine(error: string): string {
  const lines = error.split('\n').filter((line) => line.trim() !== '');
  return lines.findLast((line) => !FRAME.test(line)) ?? lines.at(-1) ?? error;
}

/** `    at failing (file:///…)`, and the brace that Node prints after the frames of an error with further fields. */
const FRAME = /^\s+at |^\}?$/;

/** The parts of a URL. One that does not fit is cut in the middle, because URLs of one receiver differ at the end. */
interface UrlParts {
  /** `https://` or `mailto:` */
  scheme: string;
  host: string;
  /** Cut first. */
  middle: string;
  /** Never cut. */
  end: string;
}

/** The maximum length of an end that starts at a slash; without such a slash, the end has `BARE_END` characters. */
const MAX_END = 20;
const BARE_END = 8;

/** Joined together, the parts are the whole URL. */
export function urlParts(url: string): UrlParts {
  const [, scheme = '', host = '', rest = ''] =
    /^(mailto:|[a-z][a-z0-9+.-]*:\/\/)?([^/?#]*)(.*)$/is.exec(url) ?? [];
  if (rest.length <= MAX_END) return { scheme, host, middle: '', end: rest };
  const slash = rest.lastIndexOf('/', rest.length - 2);
  const from = rest.length - slash <= MAX_END ? slash : rest.length - BARE_END;
  return { scheme, host, middle: rest.slice(0, from), end: rest.slice(from) };
}

/** In milliseconds since any common start. */
export interface Span {
  fromMs: number;
  toMs: number;
}

/** The position of a span on an axis, in percent; wide enough to be visible. */
export function placeOf(span: Span, axis: Span): { left: number; width: number } {
  const onAxis = (ms: number) => (100 * (Math.min(ms, axis.toMs) - axis.fromMs)) / (axis.toMs - axis.fromMs);
  const width = Math.max(0.6, onAxis(span.toMs) - onAxis(span.fromMs));
  return { left: Math.min(100 - width, onAxis(span.fromMs)), width };
}

/** Replaces characters that are not safe in every file system. */
export function fileName(text: string): string {
  return text.replace(/[^A-Za-z0-9_-]+/g, '_').slice(0, 100);
}
