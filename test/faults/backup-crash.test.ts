/** `kill -9` while a backup is created, and while one is restored, at random moments in real time. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { makePlace, type Place } from '../support/cli/place.ts';
import { elapsed } from '../support/faults/crash.ts';

const ROUNDS = Number(process.env.BACKUP_CRASH_ROUNDS ?? 2);
const BIN = join(import.meta.dirname, '../../bin/flowhook.js');
/** Enough bytes that writing them takes longer than starting. */
const BALLAST = 60;

/** An installation with a large database, and a team that identifies it. */
async function largePlace(
  t: TestContext,
  team: string,
): Promise<{ place: Place; data: string; database: string }> {
  const place = await makePlace(t, { 'default/people.yaml': 'source: { type: push }\n' });
  const data = place.environment.FLOWHOOK_DATA ?? '';
  const database = join(data, 'flowhook.db');
  const db = new DatabaseSync(database);
  db.prepare(`update team set slug = ?`).run(team);
  const put = db.prepare('insert into instance (name, value) values (?, ?)');
  for (let n = 0; n < BALLAST; n += 1)
    put.run(`ballast ${n}`, String.fromCharCode(97 + (n % 26)).repeat(1_000_000));
  db.close();
  return { place, data, database };
}

/** Starts a command in its own process group, and kills the group, or only the command, after a while. */
async function killed(
  place: Place,
  args: string[],
  options: { afterMs: number; group: boolean },
): Promise<boolean> {
  const child = spawn(process.execPath, [BIN, ...args], {
    cwd: place.directory,
    env: place.environment,
    stdio: 'ignore',
    detached: true,
  });
  const exited = once(child, 'exit');
  await Promise.race([elapsed(options.afterMs), exited]);
  try {
    process.kill(options.group ? -(child.pid ?? 0) : (child.pid ?? 0), 'SIGKILL');
  } catch {
    // The command had already ended.
  }
  const [code] = await exited;
  return code === null;
}

async function tookMs(work: () => Promise<unknown>): Promise<number> {
  const fromMs = performance.now();
  await work();
  return performance.now() - fromMs;
}

test('kill -9 while a backup is created leaves only complete backups in the list', {
  timeout: 200_000,
}, async (t) => {
  const { place, data } = await largePlace(t, 'default');
  const directory = join(data, 'backups');
  const create = async () => {
    // The directory stays locked until the system has released the locks of a killed command.
    for (;;) {
      const made = await place.run('backup', 'create');
      if (made.code === 5) continue;
      assert.equal(made.code, 0, made.stderr);
      return;
    }
  };
  let wholeMs = await tookMs(create);
  let kills = 0;
  for (let round = 0; round < ROUNDS; round += 1) {
    rmSync(directory, { recursive: true });
    const options = { afterMs: wholeMs * (0.2 + 0.6 * Math.random()), group: round % 2 === 0 };
    const wasKilled = await killed(place, ['backup', 'create'], options);
    if (wasKilled) kills += 1;
    const { stdout } = await place.run('backup', 'list', '--json');
    for (const { name } of JSON.parse(stdout) as { name: string }[]) {
      assert.equal((await place.run('backup', 'verify', name)).code, 0, 'the backup existed before the kill');
    }
    // The load of the machine differs from round to round.
    wholeMs = await tookMs(create);
    const left = readdirSync(directory).filter((name) => name !== '.lock' && !/\.db(\.json)?$/.test(name));
    assert.deepEqual(left, [], 'the next backup deletes leftovers');
  }
  assert.ok(kills >= ROUNDS / 4, `${kills} kills`);
});

test('kill -9 while a backup is restored leaves the old or the new database', {
  timeout: 200_000,
}, async (t) => {
  const { place, data, database } = await largePlace(t, 'old');
  const other = await largePlace(t, 'new');
  const made = await other.place.run('backup', 'create');
  assert.equal(made.code, 0, made.stderr);
  const restore = ['backup', 'restore', made.stdout.trim(), '--force'];
  // With changes in the log, as a killed server leaves them: the old database is complete only with its log.
  const old = join(place.directory, 'old.db');
  const db = new DatabaseSync(database);
  db.exec(
    `pragma journal_mode = wal; pragma wal_autocheckpoint = 0; insert into instance values ('late', 'yes')`,
  );
  for (const log of ['', '-wal']) copyFileSync(database + log, old + log);
  db.close();
  const wholeMs = await tookMs(async () => assert.equal((await place.run(...restore)).code, 0));
  const found = { old: 0, new: 0 };
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const name of readdirSync(data)) if (name.startsWith('flowhook.db')) rmSync(join(data, name));
    for (const log of ['', '-wal']) copyFileSync(old + log, database + log);
    await killed(place, restore, { afterMs: wholeMs * (0.3 + 0.8 * Math.random()), group: true });
    const { team, late } = lookAt(database);
    assert.equal(late, team === 'old', `${team} is complete`);
    found[team as 'old' | 'new'] += 1;
  }
  console.log(`${ROUNDS} kills: ${found.old} times the old one, ${found.new} times the new one`);
  assert.equal(found.old + found.new, ROUNDS);
  assert.equal((await place.run(...restore)).code, 0);
  assert.equal(lookAt(database).team, 'new');
  assert.deepEqual(
    readdirSync(data).filter((name) => name.includes('restoring')),
    [],
  );
});

function lookAt(file: string): { team: string; late: boolean } {
  const db = new DatabaseSync(file);
  try {
    assert.deepEqual(
      db
        .prepare('pragma integrity_check')
        .all()
        .map((row) => row.integrity_check),
      ['ok'],
    );
    const [team] = db.prepare('select slug from team').all();
    return {
      team: String(team?.slug),
      late: db.prepare(`select 1 from instance where name = 'late'`).get() !== undefined,
    };
  } finally {
    db.close();
  }
}
