/** Lists the transactions of a distributed database that used more than one shard, from the log of its coordinator. */
import { createReadStream, statSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import pg from 'pg';
import type { CitusCluster, CitusDatabase } from '../citus.ts';
import { administer } from '../postgres.ts';

export interface WideTransaction {
  /** Its different statements that used shards, in order. */
  statements: string[];
  /** The most shards that such a transaction used; the shards of all tables with the same teams count as one. */
  shards: number;
  /** How many such transactions there were. */
  times: number;
}

/** Makes all later connections to the database log what is sent to the nodes of a cluster. */
export async function logShards({ server, name }: CitusDatabase): Promise<void> {
  const settings = [
    'citus.log_remote_commands = on',
    'log_min_messages = notice',
    'log_min_error_statement = notice',
  ];
  await administer(server, settings.map((setting) => `alter database ${name} set ${setting}`).join('; '));
}

/** @returns a function that lists the wide transactions since this call, most frequent first */
export async function watchShards(
  { coordinator }: CitusCluster,
  database: CitusDatabase,
): Promise<() => Promise<WideTransaction[]>> {
  const log = join(coordinator.place, 'postgres.log');
  const from = statSync(log).size;
  return async () => wideIn(entriesOf(log, from), await shardGroups(database.url));
}

/** The entries of a log. It may be longer than a string can be. */
async function* entriesOf(log: string, from: number): AsyncGenerator<string> {
  let entry = '';
  for await (const line of createInterface({ input: createReadStream(log, { start: from }) })) {
    if (line.startsWith('\t')) entry += `\n${line}`;
    else {
      yield entry;
      entry = line;
    }
  }
  yield entry;
}

/** By the number of each shard: the first value of its range, which is the same for all tables with the same teams. */
async function shardGroups(url: string): Promise<Map<string, string>> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query<{ id: string; first: string }>(
      'select shardid::text as id, shardminvalue as first from pg_dist_shard where shardminvalue is not null',
    );
    return new Map(rows.map(({ id, first }) => [id, first]));
  } finally {
    await client.end();
  }
}

/** An entry of the log: process and transaction, level, text, with the lines below that begin with a tab. */
const ENTRY = /^\S+ \S+ \S+ \[(\d+)\] (\S+) ([A-Z]+): {2}(.*)/s;

async function wideIn(
  entries: AsyncIterable<string>,
  groups: ReadonlyMap<string, string>,
): Promise<WideTransaction[]> {
  const transactions = new Map<string, { statements: Set<string>; shards: Set<string> }>();
  const texts = new Map<string, string>();
  let used: string[] = [];
  for await (const entry of entries) {
    const [, process, id, level, text = ''] = ENTRY.exec(entry) ?? [];
    if (level === 'NOTICE') {
      const numbers = [...text.matchAll(/_(\d{6,})\b/g)].map(([, number = '']) => groups.get(number));
      used = text.startsWith('issuing') ? numbers.filter((group) => group !== undefined) : [];
    } else if (level === 'STATEMENT' && used.length > 0) {
      const key = `${process} ${id}`;
      const transaction = transactions.get(key) ?? { statements: new Set(), shards: new Set() };
      transactions.set(key, transaction);
      const statement = text.replaceAll(/\s+/g, ' ').trim();
      // Each text is kept once.
      transaction.statements.add(texts.get(statement) ?? statement);
      texts.set(statement, statement);
      for (const group of used) transaction.shards.add(group);
    }
  }
  const wide = new Map<string, WideTransaction>();
  for (const { statements, shards } of transactions.values()) {
    if (shards.size < 2) continue;
    const key = [...statements].join(';');
    const known = wide.get(key) ?? { statements: [...statements], shards: 0, times: 0 };
    wide.set(key, { ...known, shards: Math.max(known.shards, shards.size), times: known.times + 1 });
  }
  return [...wide.values()].sort((one, other) => other.times - one.times);
}
