/** The machine: versions of Node and SQLite, memory, open files, the clock. */
import { readFile } from 'node:fs/promises';
import { totalmem } from 'node:os';
import { bytesWords, durationWords } from '../std/amounts.ts';
import { toIso } from '../std/clock.ts';
import { isPostgres } from '../store/database-url.ts';
import type { Store } from '../store/store.ts';
import { type Check, error, ofStore, ok, type Result, skipped, warning } from './check.ts';

const LEAST_NODE = [26];
/** As `store/sqlite/database.ts` says, and why. */
const LEAST_SQLITE = [3, 51, 3];
const LEAST_FILES = 4_096;
/** Memory of the service itself under load, with its threads. */
const SERVICE_BYTES = 300_000_000;
/** Smaller differences may be the time of the query, and do not matter. */
const CLOCK_MS = 2_000;
/** Times in the database that are further in the future were written by a clock that was set back since. */
const AHEAD_MS = 60_000;

export const versions: Check = {
  group: 'machine',
  name: 'versions',
  run: () => versionsResult(process.versions.node, process.versions.sqlite ?? '0'),
};

/** @param sqlite the version in Node, which also locks the data directory when the database is PostgreSQL */
export function versionsResult(node: string, sqlite: string): Result {
  const found = `Node ${node} with SQLite ${sqlite}`;
  if (isAtLeast(node, LEAST_NODE) && isAtLeast(sqlite, LEAST_SQLITE)) return ok(found);
  return error({
    what: `${found} is too old`,
    why: 'Flowhook needs Node 26 or newer, with SQLite 3.51.3 or newer: older ones can lose commits',
    fix: 'Install a newer release of Node, from nodejs.org or as the image that the Dockerfile names',
  });
}

function isAtLeast(version: string, least: readonly number[]): boolean {
  const parts = version.split('.').map(Number);
  for (const [place, wanted] of least.entries()) {
    const part = parts[place] ?? 0;
    if (part !== wanted) return part > wanted;
  }
  return true;
}

export const memory: Check = ofStore('machine', 'memory', async (store, settings) => {
  const limits: number[] = [];
  for (const { id: teamId } of await store.teams.list()) {
    for (const { definition } of await store.workflows.list({ teamId })) {
      if (definition.source.type !== 'push') limits.push(definition.limits.memoryBytes);
    }
  }
  const runsBytes = limits
    .sort((a, b) => b - a)
    .slice(0, settings.maxRunningJobs)
    .reduce((sum, one) => sum + one, 0);
  // Zero, or more than the total, when there is no limit but the machine.
  const given = process.constrainedMemory();
  const limitBytes = given > 0 ? Math.min(given, totalmem()) : totalmem();
  return memoryResult({ runsBytes, limitBytes, isLimited: limitBytes < totalmem() });
});

/** @param found.runsBytes memory limits, added up, of the most demanding workflows that can run at once */
export function memoryResult(found: { runsBytes: number; limitBytes: number; isLimited: boolean }): Result {
  const { runsBytes, limitBytes, isLimited } = found;
  const place = isLimited ? 'the limit of this container or service' : 'what this machine has';
  const need = runsBytes + SERVICE_BYTES;
  const what = `Runs may take ${bytesWords(runsBytes)} together, and the service some ${bytesWords(SERVICE_BYTES)}, of ${bytesWords(limitBytes)}, ${place}`;
  if (need <= limitBytes) return ok(what);
  return warning({
    what,
    why: 'If the most demanding workflows run at the same time, the system ends processes by itself, the service too',
    fix: 'Lower FLOWHOOK_MAX_RUNNING_JOBS or `limits.memory` of workflows, or give it more memory',
  });
}

export const openFiles: Check = {
  group: 'machine',
  name: 'open-files',
  async run() {
    const text = await readFile('/proc/self/limits', 'utf8').catch(() => undefined);
    const soft = /^Max open files\s+(\S+)/m.exec(text ?? '')?.[1];
    if (soft === undefined) return skipped('Not checked', 'Only Linux tells it');
    return openFilesResult(soft === 'unlimited' ? Number.POSITIVE_INFINITY : Number(soft));
  },
};

export function openFilesResult(limit: number): Result {
  const what = `A process of this user may have ${Number.isFinite(limit) ? limit.toLocaleString('en-GB') : 'any number of'} files and connections open`;
  if (limit >= LEAST_FILES) return ok(what);
  return warning({
    what,
    why: 'Every connection of a caller, of a webhook and every open file counts: beyond that they are refused',
    fix: `Raise it to ${LEAST_FILES.toLocaleString('en-GB')} or more: LimitNOFILE= of systemd, --ulimit nofile= of Docker, or \`ulimit -n\``,
  });
}

export const clock: Check = ofStore('machine', 'clock', async (store, settings, subject) => {
  const aheadMs = subject.clock() - store.now();
  if (isPostgres(settings.databaseUrl) && Math.abs(aheadMs) > CLOCK_MS) {
    const away = durationWords(Math.abs(aheadMs));
    return warning({
      what: `The clock of this machine is ${away} ${aheadMs > 0 ? 'ahead of' : 'behind'} that of the database`,
      why: 'Jobs and deliveries go by the clock of the database; logs and certificates go by that of this machine',
      fix: 'Have both follow a time server (chrony, systemd-timesyncd)',
    });
  }
  const newest = await newestEventAt(store);
  if (newest !== undefined && newest - store.now() > AHEAD_MS) {
    return warning({
      what: `The newest event is of ${toIso(newest)}, which lies ahead: the clock was set back, or was wrong before`,
      why: 'Schedules and retries that were set by the other clock come later than they should',
      fix: 'Correct the clock and have it follow a time server. What is wrong passes when that time has come',
    });
  }
  return ok(`It is ${toIso(store.now())}, and nothing in the database is of later`);
});

async function newestEventAt(store: Store): Promise<number | undefined> {
  let newest: number | undefined;
  for (const { id: teamId } of await store.teams.list()) {
    const [event] = (await store.events.history({ teamId, limit: 1 })).events;
    if (event !== undefined && (newest === undefined || event.createdAt > newest)) newest = event.createdAt;
  }
  return newest;
}
