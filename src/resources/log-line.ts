/** A line of a log as callers see it, over HTTP and at the shell. */
import { LOG_LEVELS, type LogLine } from '../model/job.ts';
import { toIso } from '../std/clock.ts';
import { isoTime } from '../std/shape.ts';

export function shownLine({ seq, at, level, text }: LogLine) {
  return { seq, time: toIso(at), level, text };
}

/** The same as JSON Schema. */
export const logLineSchema = {
  type: 'object',
  required: ['seq', 'time', 'level', 'text'],
  properties: {
    seq: {
      type: 'integer',
      description: 'Counts the lines of an attempt from 1; missing numbers were left out',
    },
    time: isoTime,
    level: { enum: LOG_LEVELS },
    text: { type: 'string' },
  },
};

/** `2026-01-01T06:00:03.120Z info  the text`; further lines of the text are indented. */
export function textOf({ at, level, text }: LogLine): string {
  return `${toIso(at)} ${level.padEnd(5)} ${text.replaceAll('\n', '\n  ')}`;
}
