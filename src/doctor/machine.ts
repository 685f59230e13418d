/** The machine: versions of Node and SQLite, memory, open files, the clock. */

import { readFile } from 'node:fs/promises';
import { totalmem } from 'node:os';
import { bytesWords, durationWords } from '../std/amounts.ts';
import { toIso } from '../std/clock.ts';
import { isPostgres } from '../store/database-url.ts';
import { everyRow } from '../store/page.ts';
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
/** Times further in the future were written before the clock was set back. */
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
    fix: 'Install a newer Node, from nodejs.org or the image named in the Dockerfile',
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
  for await (const { id: teamId } of everyRow(store.teams.list, {})) {
    for await (const { definition } of everyRow(store.workflows.list, { teamId })) {
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
  const place = isLimited ? 'limit of this container or service' : 'all of this machine';
  const need = runsBytes + SERVICE_BYTES;
  const what = `Runs may use ${bytesWords(runsBytes)} together and the service about ${bytesWords(SERVICE_BYTES)}, of ${bytesWords(limitBytes)} (${place})`;
  if (need <= limitBytes) return ok(what);
  return warning({
    what,
    why: 'If the most demanding workflows run at once, the kernel may kill processes, including the service',
    fix: 'Lower FLOWHOOK_MAX_RUNNING_JOBS or `limits.memory` of workflows, or add memory',
  });
}

export const openFiles: Check = {
  group: 'machine',
  name: 'open-files',
  async run() {
    const text = await readFile('/proc/self/limits', 'utf8').catch(() => undefined);
    const soft = /^Max open files\s+(\S+)/m.exec(text ?? '')?.[1];
    if (soft === undefined) return skipped('Not checked', 'Only Linux reports it');
    return openFilesResult(soft === 'unlimited' ? Number.POSITIVE_INFINITY : Number(soft));
  },
};

export function openFilesResult(limit: number): Result {
  const what = `Limit of open files and connections per process: ${Number.isFinite(limit) ? limit.toLocaleString('en-GB') : 'none'}`;
  if (limit >= LEAST_FILES) return ok(what);
  return warning({
    what,
    why: 'Every client connection, webhook connection and open file counts; beyond the limit they are refused',
    fix: `Raise it to ${LEAST_FILES.toLocaleString('en-GB')} or more: LimitNOFILE= of systemd, --ulimit nofile= of Docker, or \`ulimit -n\``,
  });
}

export const clock: Check = ofStore('machine', 'clock', async (store, settings, subject) => {
  const aheadMs = subject.clock() - store.now();
  if (isPostgres(settings.databaseUrl) && Math.abs(aheadMs) > CLOCK_MS) {
    const away = durationWords(Math.abs(aheadMs));
    return warning({
      what: `This machine's clock is ${away} ${aheadMs > 0 ? 'ahead of' : 'behind'} the database's`,
      why: "Jobs and deliveries use the database's clock; logs and certificates use this machine's",
      fix: 'Synchronize both by NTP (chrony, systemd-timesyncd)',
    });
  }
  const newest = await newestEventAt(store);
  if (newest !== undefined && newest - store.now() > AHEAD_MS) {
    return warning({
      what: `The newest event is dated ${toIso(newest)}, in the future: the clock was set back, or was wrong before`,
      why: 'Schedules and retries set by the earlier clock run late',
      fix: 'Correct the clock and synchronize it by NTP. The effect ends once that time has passed',
    });
  }
  return ok(`It is ${toIso(store.now())}, and no event is dated later`);
});

async function newestEventAt(store: Store): Promise<number | undefined> {
  let newest: number | undefined;
  for await (const { id: teamId } of everyRow(store.teams.list, {})) {
    const [event] = (await store.events.history({ teamId, limit: 1 })).events;
    if (event !== undefined && (newest === undefined || event.createdAt > newest)) newest = event.createdAt;
  }
  return newest;
}
