/**
 * Connections to a PostgreSQL database: the only importer of pg's pool.
 *
 * A connection is direct if there is no pooler between this process and the server: the same process of the server then
 * executes every statement. Only direct connections keep a state, which is prepared statements and settings. Through a
 * pooler that gives each transaction another connection, everything works without that state.
 */

import { createHash } from 'node:crypto';
import type { Socket } from 'node:net';
import pg from 'pg';
import type { Logger } from '../../observe/log.ts';
import { clientUrl } from '../database-url.ts';

/** Maximum time for connecting. */
const CONNECT_MS = 5_000;
/** Maximum time for a statement. After this time, the statement is canceled both here and in the database. */
export const STATEMENT_MS = 30_000;
/** Maximum time to wait for a response. After this time, the connection is considered lost. */
const ANSWER_MS = STATEMENT_MS + 5_000;
/** Maximum time to wait for a lock. No healthy transaction of the service holds a lock for this long. */
export const LOCK_MS = 2_000;
/**
 * Maximum time that a transaction may be idle. An idle transaction belongs to a process that hangs, and must not keep
 * locks.
 */
const IDLE_IN_TRANSACTION_MS = 15_000;
const IDLE_CONNECTION_MS = 30_000;

// Times and counters are stored as bigint. They stay far below 2^53, so a JavaScript number holds them exactly.
const INT8 = 20;
export const types = {
  getTypeParser: ((oid: number, format?: 'text' | 'binary') =>
    oid === INT8 && format !== 'binary'
      ? Number
      : pg.types.getTypeParser(oid, format as 'text')) as typeof pg.types.getTypeParser,
};

export interface PoolOptions {
  url: string;
  /** Maximum number of connections. */
  size: number;
  log: Logger;
  /** Maximum time until a statement returns, in milliseconds. Set this for statements that may run longer than 30 s. */
  answerMs?: number;
  /**
   * Whether direct connections are set up for the frequent statements of a service, which are prepared: see
   * `settingsOf`.
   */
  serves?: boolean;
}

/** A pool of connections: each statement runs on any free connection. */
export function openPool({ url, size, log, answerMs = ANSWER_MS, serves = false }: PoolOptions): pg.Pool {
  const pool = new pg.Pool({
    connectionString: clientUrl(url),
    max: size,
    types,
    application_name: 'flowhook',
    connectionTimeoutMillis: CONNECT_MS,
    idleTimeoutMillis: IDLE_CONNECTION_MS,
    query_timeout: answerMs,
    keepAlive: true,
    pipeline: true,
    onConnect: (client: pg.ClientBase) => setUp(client, serves),
  } as pg.PoolConfig);
  // If an idle connection fails, the next statement gets another connection. The error object is not logged, because it
  // contains the client and its password.
  pool.on('error', (error) => {
    const { code, message } = error as Error & { code?: string };
    log.warn({ code, reason: message }, 'database.connection_lost');
  });
  // Without this listener, an error while a connection is being handed over would end the process. The error can be
  // ignored, because the next statement on the connection fails anyway.
  pool.on('connect', (client) => {
    client.on('error', () => undefined);
  });
  return pool;
}

/** Direct connections, and whether each has the settings of a service. */
const direct = new WeakMap<pg.ClientBase, { isSetUp: boolean }>();
/** Connections to databases with Citus. */
const toCitus = new WeakSet<pg.ClientBase>();

/**
 * Finds out whether a new connection is direct: a server announces the id of its own process, a pooler some other id.
 * Also finds out whether the database has Citus.
 */
async function setUp(client: pg.ClientBase, serves: boolean): Promise<void> {
  const { processID } = client as unknown as { processID: number };
  const limit = { query_timeout: CONNECT_MS };
  const text = `select pg_backend_pid() as pid, to_regclass('pg_catalog.pg_dist_partition') is not null as citus`;
  const { rows } = await client.query({ text, ...limit });
  if (rows[0]?.citus === true) toCitus.add(client);
  if (rows[0]?.pid !== processID) return;
  const settings = [...preparedOn(client), ...LIMITS];
  if (serves) await client.query({ text: `set ${settings.join('; set ')}`, ...limit });
  direct.set(client, { isSetUp: serves });
}

/** JIT is off, because compiling a plan would take longer than any statement. */
const LIMITS = [
  'jit = off',
  `statement_timeout = ${STATEMENT_MS}`,
  `lock_timeout = ${LOCK_MS}`,
  `idle_in_transaction_session_timeout = ${IDLE_IN_TRANSACTION_MS}`,
];

/**
 * A prepared statement is planned once per connection, for all values, often while the tables have few rows. These
 * settings prevent a plan that reads and sorts whole tables, or a whole list when the statement needs only a few of its
 * rows.
 */
const PREPARED = [
  'plan_cache_mode = force_generic_plan',
  'enable_seqscan = off',
  'enable_bitmapscan = off',
  'enable_sort = off',
  'enable_incremental_sort = off',
];
/** Citus must know the value of `team_id` to choose the node, so Citus itself must decide whether a plan fits all values. */
const PREPARED_ON_CITUS = PREPARED.with(0, 'plan_cache_mode = auto');
const preparedOn = (client: pg.ClientBase) => (toCitus.has(client) ? PREPARED_ON_CITUS : PREPARED);
/** For all other statements: the settings of the server. */
const PLANNED = PREPARED.map((setting) => setting.replace(/=.*/, '= default'));

/** Which changes of other transactions a transaction sees. */
export type Isolation = 'read committed' | 'read committed read only' | 'repeatable read read only';

export interface Limits {
  isolation?: Isolation | undefined;
  /** Whether statements are prepared (see `Database`). */
  prepares?: boolean | undefined;
  /** Maximum time for one statement. */
  statementMs?: number | undefined;
  /** Maximum time to wait for a lock; 0 means no limit. */
  lockMs?: number | undefined;
}

/** Returns the SQL that begins a transaction on this connection, with the settings that the connection lacks. */
export function begin(
  client: pg.ClientBase,
  { isolation = 'read committed', prepares = false, statementMs, lockMs }: Limits,
): string {
  const hasSettings = isSetUp(client);
  const ofPlans = prepares ? preparedOn(client) : PLANNED;
  const settings = [
    ...(hasSettings ? [] : LIMITS),
    ...(prepares === hasSettings ? [] : ofPlans),
    ...(statementMs === undefined ? [] : [`statement_timeout = ${statementMs}`]),
    ...(lockMs === undefined ? [] : [`lock_timeout = ${lockMs}`]),
  ];
  return [`begin isolation level ${isolation}`, ...settings.map((setting) => `set local ${setting}`)].join(
    '; ',
  );
}

/** Whether a connection has the settings of a service, so that one prepared statement needs no transaction. */
export function isSetUp(client: pg.ClientBase): boolean {
  return direct.get(client)?.isSetUp === true;
}

/** Sends a statement. Prepares it if `prepares` is set and the connection allows it. */
export function send(
  client: pg.ClientBase,
  prepares: boolean,
  text: string,
  values?: unknown[],
): Promise<pg.QueryResult> {
  gather(client);
  const isPrepared = prepares && values !== undefined && values.length > 0 && direct.has(client);
  return isPrepared ? client.query({ name: nameOf(text), text, values }) : client.query(text, values);
}

/**
 * Names of prepared statements. A name is derived from the statement's text, so it means the same on every connection.
 */
const names = new Map<string, string>();
/** This number increases when a migration has changed tables, so that all statements are prepared again. */
let generation = 0;

function nameOf(sql: string): string {
  let name = names.get(sql);
  if (name === undefined) {
    name = `flowhook ${createHash('sha256').update(sql).digest('base64url').slice(0, 22)} ${generation}`;
    names.set(sql, name);
  }
  return name;
}

export function forgetNames(): void {
  names.clear();
  generation += 1;
}

/** Sockets whose data is held back until the end of this turn of the event loop. */
const held = new WeakSet<Socket>();

/**
 * Holds back what is sent in this turn of the event loop, and sends it all at its end. Otherwise each statement would
 * be a packet of its own, which wakes the server.
 */
function gather(client: pg.ClientBase): void {
  const { stream } = (client as unknown as { connection: { stream: Socket } }).connection;
  if (held.has(stream)) return;
  held.add(stream);
  stream.cork();
  process.nextTick(() => {
    held.delete(stream);
    stream.uncork();
  });
}
