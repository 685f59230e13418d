/** How numbers, times, sentences and URLs are written, as texts. */
import type { Job } from 'flowhook-client';
import { Remembered } from './store.ts';

const GROUPED = new Intl.NumberFormat('en');
const SIZES = ['B', 'kB', 'MB', 'GB', 'TB'];

/** `1,234`. */
export function count(value: number): string {
  return GROUPED.format(value);
}

/** `1,234 records`, `1 record`, `2 deliveries`. */
export function many(
  value: number,
  noun: string,
  plural = `${noun.replace(/([^aeiou])y$/, '$1ie')}s`,
): string {
  return `${count(value)} ${value === 1 ? noun : plural}`;
}

/** `12.3 MB`, in powers of a thousand. */
export function bytes(value: number): string {
  const power = Math.min(SIZES.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(1, value)) / 3)));
  const size = value / 1_000 ** power;
  return `${power === 0 || size >= 100 ? Math.round(size) : size.toFixed(1)} ${SIZES[power]}`;
}

/** `840 ms`, `2.4 s`, `3 min 5 s`, `2 h 10 min`, `3 d 4 h`. */
export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 60) return pair(minutes, 'min', Math.floor((ms % 60_000) / 1_000), 's');
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return pair(hours, 'h', minutes % 60, 'min');
  return pair(Math.floor(hours / 24), 'd', hours % 24, 'h');
}

/** How long a run has taken; null until it has ended. */
export function tookMs({ startedAt, finishedAt }: Pick<Job, 'startedAt' | 'finishedAt'>): number | null {
  return startedAt === null || finishedAt === null ? null : Date.parse(finishedAt) - Date.parse(startedAt);
}

function pair(large: number, unit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${large} ${unit}` : `${large} ${unit} ${small} ${smallUnit}`;
}

/** `relative`: 3 min ago; `local`, `utc`: the time itself. */
export type TimeStyle = 'relative' | 'local' | 'utc';

/** The way that is chosen, for every time on the page. */
export const timeStyle = new Remembered<TimeStyle>('flowhook-times', ['relative', 'local', 'utc']);

/** The zone of times that are written out. */
export function useZone(): 'local' | 'utc' {
  return timeStyle.use() === 'utc' ? 'utc' : 'local';
}

/** `2026-11-21 03:04:05`, in the zone of the reader or in UTC. */
export function absolute(time: string, zone: 'local' | 'utc'): string {
  const at = new Date(time);
  const shifted = zone === 'utc' ? at : new Date(at.getTime() - at.getTimezoneOffset() * 60_000);
  return `${shifted.toISOString().slice(0, 19).replace('T', ' ')}${zone === 'utc' ? ' UTC' : ''}`;
}

/** `12 s ago`, `in 3 min`, `5 d ago`. */
export function relative(time: string, nowMs: number): string {
  const ms = Date.parse(time) - nowMs;
  const [unit, size] = unitOf(ms);
  const count = Math.floor(Math.abs(ms) / size);
  if (count === 0) return ms > 0 ? 'in a moment' : 'just now';
  return ms > 0 ? `in ${count} ${unit}` : `${count} ${unit} ago`;
}

/** `for 3 min`: how long what began then has lasted. */
export function lasting(time: string, nowMs: number): string {
  const [unit, size] = unitOf(nowMs - Date.parse(time));
  const count = Math.floor(Math.max(0, nowMs - Date.parse(time)) / size);
  return count === 0 ? 'for a moment' : `for ${count} ${unit}`;
}

function unitOf(ms: number): [unit: string, ms: number] {
  return UNITS.find(([, each]) => Math.abs(ms) >= each) ?? ['s', 1_000];
}

const UNITS: [unit: string, ms: number][] = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
];

/** What a sentence of the service holds: words, code between backticks, and times in ISO 8601. */
interface SentencePart {
  kind: 'words' | 'code' | 'time';
  text: string;
}

const PARTS = /`([^`\n]+)`|\b(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)/g;

/** The parts of a text, in order. A backtick without another one is a character like any other. */
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

/** For the middle of another sentence. */
export function uncapitalized(sentence: string): string {
  return sentence.charAt(0).toLowerCase() + sentence.slice(1);
}

/** What a program said last; the frames of a stack trace, which come below it, say nothing in a list. */
export function lastLine(error: string): string {
  const lines = error.split('\n').filter((line) => line.trim() !== '');
  return lines.findLast((line) => !FRAME.test(line)) ?? lines.at(-1) ?? error;
}

/** `    at failing (file:///…)`, and the bracket below the last one of an error with further fields. */
const FRAME = /^\s+at |^\}?$/;

/** How a URL is cut when it does not fit: in its middle, for URLs of one receiver differ at their ends. */
interface UrlParts {
  /** `https://` */
  scheme: string;
  host: string;
  /** What is given up first. */
  middle: string;
  /** Never cut. */
  end: string;
}

/** The longest end that is shown as a whole, from a slash; and how much of it, where there is no slash near. */
const MAX_END = 20;
const BARE_END = 8;

/** The parts of a URL; together they are the whole text. */
export function urlParts(url: string): UrlParts {
  const [, scheme = '', host = '', rest = ''] = /^([a-z][a-z0-9+.-]*:\/\/)?([^/?#]*)(.*)$/is.exec(url) ?? [];
  if (rest.length <= MAX_END) return { scheme, host, middle: '', end: rest };
  // A name is told apart better than its last letters.
  const slash = rest.lastIndexOf('/', rest.length - 2);
  const from = rest.length - slash <= MAX_END ? slash : rest.length - BARE_END;
  return { scheme, host, middle: rest.slice(0, from), end: rest.slice(from) };
}

/** Epoch milliseconds, or those of another beginning. */
export interface Span {
  fromMs: number;
  toMs: number;
}

/** Where a span lies on an axis, in per cent; never so thin that it cannot be seen. */
export function placeOf(span: Span, axis: Span): { left: number; width: number } {
  const onAxis = (ms: number) => (100 * (Math.min(ms, axis.toMs) - axis.fromMs)) / (axis.toMs - axis.fromMs);
  const width = Math.max(0.6, onAxis(span.toMs) - onAxis(span.fromMs));
  return { left: Math.min(100 - width, onAxis(span.fromMs)), width };
}
