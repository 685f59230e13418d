/** `flowhook database distribute`: distributes the tables of a PostgreSQL database over a Citus cluster. */
import { createLogger } from '../../observe/log.ts';
import { bytesWords, countWords, durationWords } from '../../std/amounts.ts';
import { createProgressBar } from '../../std/progress-bar.ts';
import { isPostgres } from '../../store/database-url.ts';
import { openDistribution, readSchema } from '../../store/open.ts';
import type { Command } from '../command.ts';
import { ConflictError, UsageError } from '../exit.ts';
import { addStoreOptions } from '../open.ts';
import { configOf, type Options } from '../options.ts';
import { addYes, confirm, print, say, screen } from '../terminal.ts';

const SHARDS = 32;
/** Measured with a cluster on two cores (see the page on scale), to estimate the duration. */
const BYTES_PER_S = 40_000_000;
const SHARD_MS = 20;

export function addDistribute(database: Command): void {
  const command = database
    .command('distribute')
    .description(
      'distribute the tables of a PostgreSQL database with Citus over the nodes of its cluster, by team, or bring them ' +
        'back. Stop all nodes first. An interrupted command continues when it is run again',
    )
    .withExamples('database distribute', 'database distribute --yes --json', 'database distribute --undo')
    .option(
      '--shards <number>',
      'parts into which the teams are divided; cannot be changed later',
      String(SHARDS),
    )
    .option('--undo', 'bring all tables back to the coordinator');
  addStoreOptions(addYes(command)).action(distribute);
}

type Opened = Awaited<ReturnType<typeof openDistribution>>;
type Table = Awaited<ReturnType<Opened['tables']>>[number];

async function distribute(options: Options): Promise<void> {
  const shards = Number(options.shards);
  if (!Number.isInteger(shards) || shards < 1 || shards > 4_096) {
    throw new UsageError('--shards must be an integer from 1 to 4096');
  }
  const config = configOf(options);
  const url = config.databaseUrl;
  if (!isPostgres(url)) {
    throw new UsageError(
      'Only PostgreSQL databases with the extension Citus can be distributed. Copy this SQLite database into one with ' +
        '`flowhook database copy`, and set FLOWHOOK_DATABASE to it',
    );
  }
  const log = createLogger({ level: 'warn', pretty: config.logPretty });
  const distribution = await openDistribution(url, { log });
  try {
    // This comes first: a worker has no tables, and nobody should create them there.
    const obstacle = await distribution.obstacle({ isUndo: options.undo === true });
    if (obstacle !== undefined) throw new ConflictError(obstacle);
    await refuseOtherSchema(url);
    await run(distribution, { shards, options });
  } finally {
    await distribution.close();
  }
}

async function refuseOtherSchema(url: string): Promise<void> {
  const { found, newest } = await readSchema(url);
  if (found === newest) return;
  throw new ConflictError(
    found > newest
      ? `The schema is at version ${found}, but this flowhook supports versions up to ${newest}. Use the newer flowhook`
      : `The schema is at version ${found}, but ${newest} is needed. Run \`flowhook migrate up\` first`,
  );
}

async function run(
  distribution: Opened,
  { shards, options }: { shards: number; options: Options },
): Promise<void> {
  await refuseNodes(distribution);
  const isUndo = options.undo === true;
  const tables = await distribution.tables();
  const moving = tables.filter(({ now, home }) => (isUndo ? now !== 'coordinator' : now !== home));
  const size = { rows: sum(moving, 'rows'), bytes: sum(moving, 'bytes') };
  for (const table of moving) say(lineOf(table, isUndo));
  await confirm(options, {
    what:
      `${countWords(moving.length, 'table')} with ${countWords(size.rows, 'row')} (${bytesWords(size.bytes)}) ` +
      `${isUndo ? 'will be brought back to the coordinator' : `will be distributed in ${countWords(shards, 'shard')}`}. ` +
      `This takes about ${durationWords((size.bytes / BYTES_PER_S) * 1_000 + moving.length * shards * SHARD_MS)}, while no node can run. ` +
      `To ${isUndo ? 'distribute them again' : 'bring them back'}, run \`flowhook database distribute${isUndo ? '' : ' --undo'}\``,
    otherwise: 'nothing was moved',
  });
  // A node may have been started while the question waited.
  await refuseNodes(distribution);
  const startMs = performance.now();
  const bar = createProgressBar({
    screen,
    total: Math.max(1, size.bytes),
    noun: 'tables',
    clock: () => performance.now(),
  });
  let done = 0;
  let count = 0;
  try {
    await distribution.move({
      to: isUndo ? 'coordinator' : 'nodes',
      shards,
      onMoved: (name) => {
        done += moving.find((table) => table.name === name)?.bytes ?? 0;
        count += 1;
        bar.update({ done, count });
      },
    });
  } finally {
    bar.stop();
  }
  const seconds = (performance.now() - startMs) / 1_000;
  const left = await distribution.tables();
  print(
    options,
    { tables: left.map(({ home: _, ...table }) => table), rows: size.rows, bytes: size.bytes, seconds },
    [`${countWords(moving.length, 'table')} moved in ${durationWords(seconds * 1_000)}`],
  );
}

async function refuseNodes(distribution: Opened): Promise<void> {
  const nodes = await distribution.nodesUsing();
  if (nodes !== undefined) throw new ConflictError(`${nodes}, and run the command again`);
}

function lineOf({ name, now, home, rows, bytes }: Table, isUndo: boolean): string {
  return `${name}: ${countWords(rows, 'row')}, ${bytesWords(bytes)}, ${now} → ${isUndo ? 'coordinator' : home}`;
}

function sum(tables: readonly Table[], column: 'rows' | 'bytes'): number {
  return tables.reduce((all, table) => all + table[column], 0);
}
