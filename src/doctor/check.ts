/** Defines what a check is, what it examines and its four possible results, and runs checks. */

import { Problem } from '../model/error.ts';
import type { CheckGroup, Examination, Finding } from '../model/finding.ts';
import type { MailSender } from '../model/messages/mail-address.ts';
import type { AddressPolicy } from '../net/address-policy.ts';
import type { TrustedProxies } from '../net/host.ts';
import type { SmtpServer } from '../net/smtp-url.ts';
import type { RunAs } from '../sources/process/environment.ts';
import type { SchemaState } from '../store/migrations.ts';
import type { Store } from '../store/store.ts';

export type Result = Pick<Finding, 'status' | 'what' | 'why' | 'fix'>;

/** A problem (`what`), the effect of the problem (`why`) and the next step (`fix`). */
export interface Trouble {
  what: string;
  why: string;
  fix: string;
}

export interface Check {
  group: CheckGroup;
  name: string;
  /** The timeout of the check, in milliseconds (default: 20 s). */
  limitMs?: number;
  /** @param signal is aborted when the result is no longer needed */
  run(subject: Subject, signal: AbortSignal): Promise<Result> | Result;
}

export function ok(what: string): Result {
  return { status: 'ok', what, why: null, fix: null };
}

/** Reports something that works, but not as well or as safely as it should. */
export function warning(trouble: Trouble): Result {
  return { status: 'warning', ...trouble };
}

/** Reports something that does not work, or that will not work after the next start. */
export function error(trouble: Trouble): Result {
  return { status: 'error', ...trouble };
}

/** @param fix says how to run the check */
export function skipped(what: string, why: string, fix: string | null = null): Result {
  return { status: 'skipped', what, why, fix };
}

/** Creates a check that needs valid settings. If the settings are invalid, the check is skipped. */
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
        ? skipped('Not checked', 'The settings are invalid. Fix them first')
        : run(subject.settings, subject, signal),
  };
}

/** Creates a check that needs an open database. If the database is not open, the check is skipped. */
export function ofStore(
  group: CheckGroup,
  name: string,
  run: (store: Store, ...rest: Parameters<Parameters<typeof ofSettings>[2]>) => Promise<Result> | Result,
): Check {
  return ofSettings(group, name, (settings, subject, signal) => {
    const { store, without } = subject.database;
    return store === undefined
      ? skipped('Not checked', without ?? 'The database cannot be opened. Fix it first')
      : run(store, settings, subject, signal);
  });
}

export interface ExaminedSettings {
  host: string;
  port: number;
  dataDirectory: string;
  databaseUrl: string;
  databaseListen: boolean;
  role: string;
  workflowsDirectory: string;
  /** Whether the workflows directory was set explicitly. If so, the directory must exist. */
  workflowsNamed: boolean;
  encryptionKey: Buffer | undefined;
  publicUrl: string | undefined;
  /** The SMTP server and the sender of mails, if webhooks can send mail. */
  smtpUrl: SmtpServer | undefined;
  mailFrom: MailSender | undefined;
  trustProxy: TrustedProxies | false;
  allowNetworks: AddressPolicy;
  maxRunningJobs: number;
  backupDirectory: string;
  /** null: no scheduled backups. */
  backupEveryMs: number | null;
  /** The paths of the certificate and of its key, if the service itself serves HTTPS. */
  tlsCert: string | undefined;
  tlsKey: string | undefined;
  /** Every setting with its origin. */
  settings: readonly { origin: string }[];
  /** Sources run as this system user. If it is undefined, they run as the service's own user. */
  runAs: RunAs | undefined;
  environment: ReadonlyMap<string, string>;
}

export interface ExaminedDatabase {
  store: Store | undefined;
  /** The state of the schema; undefined when not even its version can be read. */
  schema: SchemaState | undefined;
  /** The error from opening the database. */
  mistake: string | undefined;
  /** The reason why there is no store, if this is not an error or if another check reports it. */
  without: string | undefined;
}

export interface Subject {
  /** The settings; undefined if they are invalid. In this case, `mistakes` says why. */
  settings: ExaminedSettings | undefined;
  mistakes: readonly string[];
  /** Sentences about probable mistakes in the settings, such as a misspelled variable. */
  doubts: readonly string[];
  database: ExaminedDatabase;
  /** Whether a server is running on the examined database; null if unknown. */
  isServed: boolean | null;
  /** The running node, if the node examines itself; undefined if a command runs the checks. */
  node: { port: number; openCircuits: number } | undefined;
  /** The URLs to request; null if no request may be sent. */
  online: readonly string[] | null;
  /** Whether to read the whole database, without a time limit. */
  isFull: boolean;
  /** This machine's clock, in epoch milliseconds. */
  clock: () => number;
}

const LIMIT_MS = 20_000;

/**
 * Runs the checks in order.
 *
 * @param options.onBegin is called before each check, to show progress
 * @param options.signal aborts the examination, which then rejects with the reason of the signal
 */
export async function examine(
  subject: Subject,
  checks: readonly Check[],
  options: { onBegin?: (check: Check) => void; signal?: AbortSignal } = {},
): Promise<Examination> {
  const examinedAt = subject.clock();
  const startMs = performance.now();
  const findings: Finding[] = [];
  for (const check of checks) {
    options.signal?.throwIfAborted();
    options.onBegin?.(check);
    const from = performance.now();
    const result = await runCheck(check, subject, options.signal);
    const { group, name } = check;
    findings.push({ group, check: name, ...result, tookMs: Math.round(performance.now() - from) });
  }
  options.signal?.throwIfAborted();
  return { examinedAt, tookMs: Math.round(performance.now() - startMs), findings };
}

async function runCheck(check: Check, subject: Subject, outer: AbortSignal | undefined): Promise<Result> {
  const limitMs = check.limitMs ?? LIMIT_MS;
  const ending = new AbortController();
  const timedOut = Promise.withResolvers<Result>();
  const abandon = () => {
    ending.abort();
    timedOut.resolve(tooLong(limitMs));
  };
  const timer = Number.isFinite(limitMs) ? setTimeout(abandon, limitMs) : undefined;
  outer?.addEventListener('abort', abandon, { once: true });
  try {
    const done = (async () => check.run(subject, ending.signal))();
    // Ignore a rejection after the timeout.
    done.catch(() => undefined);
    return await Promise.race([done, timedOut.promise]);
  } catch (cause) {
    return failed(cause);
  } finally {
    clearTimeout(timer);
    outer?.removeEventListener('abort', abandon);
    ending.abort();
  }
}

function tooLong(limitMs: number): Result {
  return error({
    what: `This check did not finish within ${limitMs / 1_000} s`,
    why: 'The disk, database or program that the check examines hangs or is very busy',
    fix: 'See the other findings, and run doctor again when the load is lower',
  });
}

const DATABASE_ERRORS: readonly string[] = [
  'database_unavailable',
  'database_busy',
  'overloaded',
  'stopping',
];

function failed(cause: unknown): Result {
  if (cause instanceof Problem && DATABASE_ERRORS.includes(cause.code)) {
    return error({
      what: `The database did not respond: ${cause.message}`,
      why: 'The service cannot work without its database',
      fix: 'See the database findings and the server log',
    });
  }
  return error({
    what: `This check failed: ${cause instanceof Error ? cause.message : String(cause)}`,
    why: 'Something is in a state that doctor does not expect',
    fix: 'Follow the message. If it does not help, report it with the output of `flowhook doctor --json`',
  });
}
