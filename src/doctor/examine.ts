/** Runs checks one after the other. A check that throws or hangs does not keep the others from running. */
import { Problem } from '../model/error.ts';
import type { Examination, Finding } from '../model/finding.ts';
import { type Check, error, type Result } from './check.ts';
import type { Subject } from './subject.ts';

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
