/** What a check is, what it examines, its four possible results, and how checks are run. */

import { Problem } from '../model/error.ts';
import type { CheckGroup, Examination, Finding } from '../model/finding.ts';
import type { AddressPolicy } from '../net/address-policy.ts';
import type { TrustedProxies } from '../net/host.ts';
import type { RunAs } from '../sources/process/environment.ts';
import type { SchemaState } from '../store/migrations.ts';
import type { Store } from '../store/store.ts';

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
export function warning(trouble: Trouble): Result {
  return { status: 'warning', ...trouble };
}

/** Something does not work, or will not after the next start. */
export function error(trouble: Trouble): Result {
  return { status: 'error', ...trouble };
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
): Check {
  return {
    group,
    name,
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
  run: (store: Store, ...rest: Parameters<Parameters<typeof ofSettings>[2]>) => Promise<Result> | Result,
): Check {
  return ofSettings(group, name, (settings, subject, signal) => {
    const { store, without } = subject.database;
    return store === undefined
      ? skipped('Not checked', without ?? 'Fix the database first: it cannot be opened')
      : run(store, settings, subject, signal);
  });
}

/** The settings that checks look at. */
export interface ExaminedSettings {
  host: string;
  port: number;
  dataDirectory: string;
  databaseUrl: string;
  databaseListen: boolean;
  role: string;
  workflowsDirectory: string;
  /** Whether a setting names it explicitly: then it must exist. */
  workflowsNamed: boolean;
  encryptionKey: Buffer | undefined;
  publicUrl: string | undefined;
  trustProxy: TrustedProxies | false;
  allowNetworks: AddressPolicy;
  maxRunningJobs: number;
  backupDirectory: string;
  /** null: no scheduled backups. */
  backupEveryMs: number | null;
  /** The files of the certificate and its key, where the service speaks TLS itself. */
  tlsCert: string | undefined;
  tlsKey: string | undefined;
  /** Every setting with its origin. */
  settings: readonly { origin: string }[];
  /** The system user that sources run as; undefined: the service's own. */
  runAs: RunAs | undefined;
  environment: ReadonlyMap<string, string>;
}

/** The state of the database. */
export interface ExaminedDatabase {
  store: Store | undefined;
  /** Undefined when not even the schema version can be read. */
  schema: SchemaState | undefined;
  /** Why it could not be opened: an error message. */
  mistake: string | undefined;
  /** Why there is no store although nothing is wrong, or another check reports it: a sentence. */
  without: string | undefined;
}

export interface Subject {
  /** Undefined when they cannot be read: see `mistakes`. */
  settings: ExaminedSettings | undefined;
  mistakes: readonly string[];
  /** What may be a mistake, such as a misspelt variable: sentences. */
  doubts: readonly string[];
  database: ExaminedDatabase;
  /** Whether a server runs on this data; null if that cannot be known. */
  isServed: boolean | null;
  /** The running node that examines itself; undefined in a command. */
  node: { port: number; openCircuits: number } | undefined;
  /** URLs that may be requested; null: no request may leave this machine. */
  online: readonly string[] | null;
  /** Whether everything is read, however long that takes. */
  isFull: boolean;
  /** This machine's clock, in epoch milliseconds. */
  clock: () => number;
}

const LIMIT_MS = 20_000;

/**
 * @param options.onBegin called before each check, to show progress
 * @param options.signal aborts the examination, which then rejects with its reason
 */
export async function examine(
  subject: Subject,
  checks: readonly Check[],
  options: { onBegin?: (check: Check) => void; signal?: AbortSignal } = {},
): Promise<Examination> {
  const examinedAt = subject.clock();
  const began = performance.now();
  const findings: Finding[] = [];
  for (const check of checks) {
    options.signal?.throwIfAborted();
    options.onBegin?.(check);
    const from = performance.now();
    const result = await carryOut(check, subject, options.signal);
    const { group, name } = check;
    findings.push({ group, check: name, ...result, tookMs: Math.round(performance.now() - from) });
  }
  options.signal?.throwIfAborted();
  return { examinedAt, tookMs: Math.round(performance.now() - began), findings };
}

async function carryOut(check: Check, subject: Subject, outer: AbortSignal | undefined): Promise<Result> {
  const limitMs = check.limitMs ?? LIMIT_MS;
  const ending = new AbortController();
  const late = Promise.withResolvers<Result>();
  const give = () => {
    ending.abort();
    late.resolve(tooLong(limitMs));
  };
  const timer = Number.isFinite(limitMs) ? setTimeout(give, limitMs) : undefined;
  outer?.addEventListener('abort', give, { once: true });
  try {
    const done = (async () => check.run(subject, ending.signal))();
    // Ignore a rejection after the timeout.
    done.catch(() => undefined);
    return await Promise.race([done, late.promise]);
  } catch (cause) {
    return failed(cause);
  } finally {
    clearTimeout(timer);
    outer?.removeEventListener('abort', give);
    ending.abort();
  }
}

function tooLong(limitMs: number): Result {
  return error({
    what: `This check did not finish within ${limitMs / 1_000} s`,
    why: 'What it examines (a disk, the database, a program) hangs or is very busy',
    fix: 'See the other findings, and try again when the load is lower',
  });
}

const OF_THE_DATABASE: readonly string[] = [
  'database_unavailable',
  'database_busy',
  'overloaded',
  'stopping',
];

function failed(cause: unknown): Result {
  if (cause instanceof Problem && OF_THE_DATABASE.includes(cause.code)) {
    return error({
      what: `The database did not answer: ${cause.message}`,
      why: 'Nothing that needs the database works until it answers',
      fix: 'See the database findings, and the server log',
    });
  }
  return error({
    what: `This check failed: ${cause instanceof Error ? cause.message : String(cause)}`,
    why: 'What it examines is in an unexpected state',
    fix: 'Fix what the message names; if it names nothing, report it with the output of `flowhook doctor --json`',
  });
}
