/** A line of a log as callers see it, over HTTP and at the shell. */
import type { LogLine } from '../../model/job.ts';
import { toIso } from '../../std/clock.ts';

export function shownLine({ seq, at, level, text }: LogLine) {
  return { seq, time: toIso(at), level, text };
}

/** `2026-01-01T06:00:03.120Z info  the text`; what the text breaks into more lines is indented. */
export function textOf({ at, level, text }: LogLine): string {
  return `${toIso(at)} ${level.padEnd(5)} ${text.replaceAll('\n', '\n  ')}`;
}
