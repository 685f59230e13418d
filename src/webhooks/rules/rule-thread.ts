/**
 * The rule thread: reads events and records on its own read-only connection, and evaluates the rules of webhooks, so
 * that filters block neither the event loop nor the writer. It works on one call at a time, and numbers its evaluations
 * in shared memory, so that the main thread can end the thread if one of them takes too long.
 */
import { setPriority } from 'node:os';
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { Problem } from '../../model/error.ts';
import { openReader } from '../../store/open.ts';
import { DifferencePages } from './compared-records.ts';
import type { Place } from './decide.ts';
import {
  type ReadEvent,
  type ReadRows,
  type ReadSelection,
  type ReadStep,
  RuleReading,
  type SelectionStep,
  type Trial,
  type Tried,
} from './rule-reading.ts';
import { type Turn, type Turned, takeTurn } from './turn.ts';
import { WATCHED } from './watched.ts';

export interface RuleThreadData {
  databaseUrl: string;
  /** See `WATCHED`. */
  watched: Int32Array;
}

/** What the thread can do, with its input and its result. */
export interface RuleCalls {
  turn: [Turn, Turned];
  event: [ReadEvent, ReadStep];
  selection: [ReadSelection, SelectionStep];
  rows: [ReadRows, { places: number[]; isLate: boolean }];
  trial: [Trial, Tried[]];
}

/** Messages to the rule thread, which works on one call after another. */
export type ToRules = Asked | { close: true };
type Asked = {
  [Name in keyof RuleCalls]: { call: number; name: Name; input: RuleCalls[Name][0] };
}[keyof RuleCalls];

/** Messages from the rule thread: which decision is evaluated now, and finally the result or an error. */
export type FromRules = { call: number } & (
  | { at: Place }
  | { result: unknown }
  | { failed: { sentence: string; isAway: boolean } }
);

/**
 * Requests and writes take precedence. With the lowest priority (19), messages came late on a busy machine. Only set on
 * Linux, where niceness applies only to the calling thread.
 */
const NICENESS = 10;

if (parentPort !== null) {
  if (process.platform === 'linux') setPriority(0, NICENESS);
  serve(parentPort);
}

async function serve(port: MessagePort): Promise<void> {
  const { databaseUrl, watched } = workerData as RuleThreadData;
  const reader = await openReader(databaseUrl);
  const pages = new DifferencePages(reader);
  const begin = (examined: number) => {
    watched[WATCHED.examined] = examined;
    watched[WATCHED.isEvaluating] = 1;
    watched[WATCHED.begun] = ((watched[WATCHED.begun] as number) + 1) | 0;
  };
  const pause = () => {
    watched[WATCHED.isEvaluating] = 0;
  };
  const reading = new RuleReading(reader, { begin, pause, isSlow: () => false });
  const run = async (asked: Asked): Promise<unknown> => {
    switch (asked.name) {
      case 'turn': {
        const enter = (at: Place) => port.postMessage({ call: asked.call, at } satisfies FromRules);
        return takeTurn(asked.input, { reader, pages, watched: { begin, pause, enter } });
      }
      case 'event':
        return reading.event(asked.input);
      case 'selection':
        return reading.selection(asked.input);
      case 'rows':
        return reading.rows(asked.input);
      case 'trial':
        return reading.trial(asked.input);
    }
  };

  let last: Promise<void> = Promise.resolve();
  port.on('message', (message: ToRules) => {
    last = last.then(async () => {
      if ('close' in message) {
        await reader.close();
        port.close();
        return;
      }
      const { call } = message;
      try {
        port.postMessage({ call, result: await run(message) } satisfies FromRules);
      } catch (error) {
        const sentence = error instanceof Error ? error.message : String(error);
        port.postMessage({
          call,
          failed: { sentence, isAway: error instanceof Problem },
        } satisfies FromRules);
      }
      pause();
    });
  });
}
