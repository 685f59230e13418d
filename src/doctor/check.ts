/** What a check is, and its four possible results. */
import type { CheckGroup, Finding } from '../model/finding.ts';
import type { Store } from '../store/store.ts';
import type { ExaminedSettings, Subject } from './subject.ts';

export type Result = Pick<Finding, 'status' | 'what' | 'why' | 'fix'>;

/** What is wrong, what it leads to, and what to do. */
export interface Trouble {
  what: string;
  why: string;
  fix: string;
}

export interface Check {
  group: CheckGroup;
  name: string;
  /** The timeout in milliseconds; 20 s by default. */
  limitMs?: number;
  /** @param signal aborted when nobody waits for the result any more */
  run(subject: Subject, signal: AbortSignal): Promise<Result> | Result;
}

export function ok(what: string): Result {
  return { status: 'ok', what, why: null, fix: null };
}

/** It works, but not as well, as safely or as long as it should. */
export function warning({ what, why, fix }: Trouble): Result {
  return { status: 'warning', what, why, fix };
}

/** Something does not work, or will not after the next start. */
export function error({ what, why, fix }: Trouble): Result {
  return { status: 'error', what, why, fix };
}

/** @param fix how to have it checked */
export function skipped(what: string, why: string, fix: string | null = null): Result {
  return { status: 'skipped', what, why, fix };
}

/** A check that needs valid settings; skipped without them. */
export function ofSettings(
  group: CheckGroup,
  name: string,
  run: (settings: ExaminedSettings, subject: Subject, signal: AbortSignal) => Promise<Result> | Result,
  limitMs?: number,
): Check {
  return {
    group,
    name,
    ...(limitMs === undefined ? {} : { limitMs }),
    run: (subject, signal) =>
      subject.settings === undefined
        ? skipped('Not checked', 'Fix the settings first: they are invalid')
        : run(subject.settings, subject, signal),
  };
}

/** A check that needs an open database; skipped without one. */
export function ofStore(
  group: CheckGroup,
  name: string,
  run: (
    store: Store,
    settings: ExaminedSettings,
    subject: Subject,
    signal: AbortSignal,
  ) => Promise<Result> | Result,
  limitMs?: number,
): Check {
  return ofSettings(
    group,
    name,
    (settings, subject, signal) => {
      const { store, without } = subject.database;
      return store === undefined
        ? skipped('Not checked', without ?? 'Fix the database first: it cannot be opened')
        : run(store, settings, subject, signal);
    },
    limitMs,
  );
}
