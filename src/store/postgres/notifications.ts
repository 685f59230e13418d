/**
 * How a node learns of commits by other processes. There are two kinds of changes:
 *
 * - Changes of keys must not be missed. They increase a counter in the table `instance`, which every node reads four
 *   times a second.
 * - New jobs, cancellations, deliveries and decisions are announced by hints, so that nodes need not wait for their next poll. A
 *   single NOTIFY statement sends the hints of all commits within 10 ms. It runs outside of the transactions that it
 *   announces, because transactions that notify must wait for a shared lock when they commit. A separate connection
 *   listens. Behind a proxy that pools transactions no hint arrives, but everything else still works.
 */

import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import type { Logger } from '../../observe/log.ts';
import { fullJitterMs } from '../../std/backoff.ts';
import { clientUrl } from '../database-url.ts';
import { ANYTHING, type LaneName, noteLane, noteTeam, type Touched, untouched } from '../transaction.ts';
import { Database } from './database.ts';
import { unusable } from './failures.ts';

const CHANNEL = 'flowhook';
const SEND_EVERY_MS = 10;
const POLL_EVERY_MS = 250;
/** Cached keys are no longer trusted if the database has not responded for this long. */
const SILENT_MS = 1_000;
/** Interval between probes of the listening connection. A probe detects that the connection was lost. */
const PROBE_EVERY_MS = 15_000;
const RESPONSE_MS = 5_000;
const END_MS = 1_000;
const RECONNECT = { baseMs: 100, maxMs: 5_000 };
/** In bytes; PostgreSQL's limit is 8,000. */
const MAX_PAYLOAD = 7_000;

/** The payload of a notification names its sender, and has the fields of `Touched` that concern other nodes. */
interface Message extends Omit<Touched, 'keys'> {
  from: string;
}

export interface NotificationOptions {
  url: string;
  pool: pg.Pool;
  log: Logger;
  /** Called with the changes that another process has committed. */
  onForeign: (touched: Touched) => void;
}

export class Notifications {
  readonly #options: NotificationOptions;
  /** The name of this process in notifications. A process ignores notifications with its own name. */
  readonly #name = randomUUID();
  readonly #stopping = new AbortController();
  /** The last known counter of key changes. Undefined while the database does not respond. */
  #keysChanged: number | undefined;
  #pollStartedMs: number | undefined;
  #polling: NodeJS.Timeout | undefined;
  #pending: Touched | undefined;
  #sending: Promise<void> | undefined;
  #listener: pg.Client | undefined;
  #reconnecting: NodeJS.Timeout | undefined;
  #probing: NodeJS.Timeout | undefined;
  #failures = 0;
  #isHeard = false;

  constructor(options: NotificationOptions) {
    this.#options = options;
  }

  /** Whether the listening connection has received a notification, which none does behind some proxies. */
  get isHeard(): boolean {
    return this.#isHeard;
  }

  /** Starts polling the counter of key changes. */
  async watchKeys(): Promise<void> {
    this.#keysChanged = await this.#countOfKeys();
    this.#polling = setInterval(() => void this.#poll(), POLL_EVERY_MS).unref();
  }

  /** Notifies other processes of a commit within 10 ms. One notification covers all commits of that time. */
  notify(touched: Touched): void {
    const { jobs, cancels, deliveries, decisions } = touched;
    if (!jobs && !cancels && !deliveries && !decisions) return;
    this.#pending = merge(this.#pending ?? untouched(), touched);
    this.#sending ??= this.#send();
  }

  /** Records that this process itself changed keys, which set the counter to `count`. */
  noteOwnKeys(count: number): void {
    if (this.#keysChanged !== undefined && count === this.#keysChanged + 1) this.#keysChanged = count;
  }

  /** Sends pending notifications, and stops listening. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    clearInterval(this.#polling);
    clearTimeout(this.#reconnecting);
    await this.#sending;
    await this.#disconnect();
  }

  async #countOfKeys(): Promise<number> {
    const db = new Database(this.#options.pool, { reads: true, prepares: true });
    const row = await db.get<{ value: string }>`select value from instance where name = ${'keys_changed'}`;
    return Number(row?.value ?? 0);
  }

  async #poll(): Promise<void> {
    const { onForeign } = this.#options;
    const keys = { ...untouched(), keys: true };
    if (this.#pollStartedMs !== undefined) {
      if (performance.now() - this.#pollStartedMs >= SILENT_MS) onForeign(keys);
      return;
    }
    this.#pollStartedMs = performance.now();
    try {
      const count = await this.#countOfKeys();
      // The first count after an outage of the database is also news, because keys may have changed during the outage.
      const isNews = count !== this.#keysChanged;
      this.#keysChanged = count;
      if (isNews && !this.#stopping.signal.aborted) onForeign(keys);
    } catch {
      // The error is dropped, because calls that need the database report it. Keys are read again as soon as the
      // database responds.
      this.#keysChanged = undefined;
    } finally {
      this.#pollStartedMs = undefined;
    }
  }

  /** Sends pending changes immediately. Changes that are added while this runs are sent after 10 ms. */
  async #send(): Promise<void> {
    // Sending waits for the end of this turn of the event loop, to include its other commits.
    await Promise.resolve();
    while (this.#pending !== undefined) {
      const payload = write(this.#name, this.#pending);
      this.#pending = undefined;
      const paused = pause(SEND_EVERY_MS);
      // The transaction does not wait for the disk, because a hint need not survive a power failure.
      await new Database(this.#options.pool, { prepares: true })
        .run(`select set_config('synchronous_commit', 'off', true), pg_notify($1, $2)`, CHANNEL, payload)
        .catch((err) => this.#options.log.debug({ err }, 'database.news_not_sent'));
      if (!this.#stopping.signal.aborted) await paused;
    }
    this.#sending = undefined;
  }

  /**
   * Starts listening. Resolves after the first attempt to connect. If it fails, further attempts run in the background.
   */
  async listen(): Promise<void> {
    const { url, log, onForeign } = this.#options;
    const client = new pg.Client({
      connectionString: clientUrl(url),
      application_name: 'flowhook-news',
      connectionTimeoutMillis: RESPONSE_MS,
      query_timeout: RESPONSE_MS,
      keepAlive: true,
    });
    this.#listener = client;
    const isMine = () => this.#listener === client && !this.#stopping.signal.aborted;
    const lost = (err: Error | undefined) => {
      if (!isMine()) return;
      log.warn({ err }, 'database.news_lost: until it is back, jobs and deliveries are found a little later');
      this.#reconnect();
    };
    client.on('error', lost);
    client.on('end', () => lost(undefined));
    client.on('notification', ({ payload }) => {
      const touched = read(this.#name, payload ?? '');
      if (!isMine()) return;
      this.#isHeard = true;
      if (touched !== undefined && Object.values(touched).includes(true)) onForeign(touched);
    });
    try {
      await client.connect();
      await client.query(`listen ${CHANNEL}`);
    } catch (error) {
      return lost(error as Error);
    }
    if (!isMine()) return;
    this.#probing = setInterval(() => client.query('select 1').catch(lost), PROBE_EVERY_MS).unref();
    // An empty notification, which this process receives too. Other processes ignore it.
    this.#pending ??= untouched();
    this.#sending ??= this.#send();
    const again = this.#failures > 0;
    this.#failures = 0;
    if (!again) return;
    log.info({}, 'database.news_back');
    onForeign(ANYTHING);
  }

  #reconnect(): void {
    void this.#disconnect();
    this.#failures += 1;
    const ms = fullJitterMs({ failures: this.#failures, ...RECONNECT, random: Math.random() });
    this.#reconnecting = setTimeout(() => void this.listen(), ms).unref();
  }

  async #disconnect(): Promise<void> {
    clearInterval(this.#probing);
    const client = this.#listener;
    this.#listener = undefined;
    this.#isHeard = false;
    if (client === undefined) return;
    // The wait is limited, because a server that hangs never confirms the end of the connection.
    await Promise.race([client.end().catch(() => undefined), pause(END_MS, undefined, { ref: false })]);
  }
}

function merge(one: Touched, other: Touched): Touched {
  const merged: Touched = {
    keys: false,
    jobs: one.jobs || other.jobs,
    teams: other.teams === null ? null : one.teams,
    cancels: one.cancels || other.cancels,
    deliveries: one.deliveries || other.deliveries,
    lanes: other.lanes === null ? null : one.lanes,
    decisions: one.decisions || other.decisions,
  };
  for (const { teamId, webhookId } of other.lanes ?? []) noteLane(merged, teamId, webhookId);
  for (const teamId of other.teams ?? []) noteTeam(merged, teamId);
  return merged;
}

function write(from: string, { keys: _, ...touched }: Touched): string {
  const message: Message = { from, ...touched };
  const text = JSON.stringify(message);
  return Buffer.byteLength(text) <= MAX_PAYLOAD ? text : JSON.stringify({ ...message, lanes: null });
}

/**
 * Returns the changes that a payload reports. If the payload cannot be parsed, anything may have changed. Undefined for
 * payloads that this process sent itself.
 */
function read(name: string, payload: string): Touched | undefined {
  let message: Partial<Message>;
  try {
    message = JSON.parse(payload) ?? {};
  } catch {
    return ANYTHING;
  }
  if (message.from === name) return undefined;
  const { jobs, teams, cancels, deliveries, lanes, decisions } = message;
  if (lanes !== null && !(Array.isArray(lanes) && lanes.every(isLaneName))) return ANYTHING;
  const isNamed = Array.isArray(teams) && teams.every((team) => typeof team === 'string');
  return {
    keys: false,
    jobs: jobs === true,
    teams: isNamed ? teams : null,
    cancels: cancels === true,
    deliveries: deliveries === true,
    lanes,
    decisions: decisions === true,
  };
}

function isLaneName(lane: unknown): lane is LaneName {
  const { teamId, webhookId } = (lane ?? {}) as Partial<LaneName>;
  return typeof teamId === 'string' && typeof webhookId === 'string';
}

const CONNECT_MS = 5_000;
/** Maximum time to wait for a notification. Notifications arrive within milliseconds or not at all. */
const HEARD_MS = 5_000;

/**
 * Checks whether LISTEN and NOTIFY work. They do not work behind a proxy that pools transactions. Rejects with a
 * Problem if the database cannot be reached.
 */
export async function hearsNotifications(url: string): Promise<boolean> {
  const channel = `flowhook_${randomUUID().replaceAll('-', '')}`;
  const options = {
    connectionString: clientUrl(url),
    connectionTimeoutMillis: CONNECT_MS,
    query_timeout: CONNECT_MS,
  };
  const [listener, sender] = [new pg.Client(options), new pg.Client(options)];
  for (const client of [listener, sender]) client.on('error', () => undefined);
  const heard = Promise.withResolvers<boolean>();
  listener.on('notification', () => heard.resolve(true));
  let timer: NodeJS.Timeout | undefined;
  try {
    await Promise.all([listener.connect(), sender.connect()]);
    await listener.query(`listen ${channel}`);
    const { rows } = await listener.query('select pg_listening_channels() as name');
    // If the channel is missing, a proxy ran this query and `listen` on different connections.
    if (!rows.some(({ name }) => name === channel)) return false;
    await sender.query(`notify ${channel}`);
    timer = setTimeout(() => heard.resolve(false), HEARD_MS);
    return await heard.promise;
  } catch (error) {
    throw unusable(error);
  } finally {
    clearTimeout(timer);
    await Promise.allSettled([listener.end(), sender.end()]);
  }
}
