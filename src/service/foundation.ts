/** What every node rests on, whatever its role: its directories, the database, the encryption key, keys and a team. */
import { mkdirSync, statSync } from 'node:fs';
import type { Config } from '../config/config.ts';
import { localAuthor } from '../model/audit.ts';
import { DEFAULT_TEAM, type Team } from '../model/team.ts';
import type { Logger } from '../observe/log.ts';
import type { Clock } from '../std/clock.ts';
import { newId } from '../std/id.ts';
import type { Sealer } from '../std/seal.ts';
import type { StopOrder } from '../std/stop-order.ts';
import { authoredBy } from '../store/audited.ts';
import { openStore, ownDirectory } from '../store/open.ts';
import type { Store } from '../store/store.ts';
import { openSealer } from '../teams/encryption-key.ts';
import { Authenticator, storeBootstrapKey } from '../teams/keys.ts';
import { LastUsed } from '../teams/usage.ts';

/** The id of the node on SQLite, whose database belongs to one process: every running job is its own. */
const SOLE_NODE = 'local';

export interface Foundation {
  store: Store;
  /** The store, for changes that the start itself makes: the audit names the service as their author. */
  ofStart: Store;
  nodeId: string;
  sealer: Sealer;
  lastUsed: LastUsed;
  authenticator: Authenticator;
  /** The team `default`. */
  team: Team;
}

/**
 * @param input.isShared whether other nodes use the database as well (PostgreSQL)
 * @param input.started what is opened here is registered there, to be closed in reverse order
 * @throws Error with a sentence about what prevents the start: another server on the same data, a newer schema, another
 *   encryption key
 */
export async function openFoundation(
  config: Config,
  input: {
    log: Logger;
    clock: Clock | undefined;
    random: () => number;
    publicUrl: () => string;
    isShared: boolean;
    servesApi: boolean;
    started: StopOrder;
  },
): Promise<Foundation> {
  const { log, clock, random, publicUrl, isShared, started } = input;
  mkdirSync(config.dataDirectory, { recursive: true, mode: 0o700 });
  for (const directory of [config.dataDirectory, config.backupDirectory]) {
    const { mode = 0 } = statSync(directory, { throwIfNoEntry: false }) ?? {};
    if ((mode & 0o077) === 0) continue;
    log.warn({ directory }, 'directory.open_to_others: it holds what teams store. `chmod 700` it');
  }
  if (isShared) {
    const owned = await ownDirectory(config.dataDirectory);
    started.push(() => owned.release());
  }
  const store = await openStore(config.databaseUrl, {
    own: true,
    publicUrl,
    log,
    poolSize: config.databasePool,
    quotas: config.quotas,
    listen: config.databaseListen,
    ...(clock === undefined ? {} : { clock }),
  });
  started.push(() => store.close(), 'the database');
  // On PostgreSQL an id for this process only: jobs of a dead node are recovered when their leases expire.
  const nodeId = isShared ? newId('node', store.now()) : SOLE_NODE;

  const sealer = await openSealer(config, store);
  const ofStart = authoredBy(store, localAuthor('service'));
  const lastUsed = new LastUsed({ store, log, random });
  started.push(() => lastUsed.stop());
  const authenticator = new Authenticator(store, lastUsed);
  started.push(() => authenticator.close());
  const team = await ofStart.teams.ensure({ slug: DEFAULT_TEAM });
  const { bootstrapKey } = config;
  if (bootstrapKey !== undefined && input.servesApi) {
    await storeBootstrapKey(ofStart, { team, key: bootstrapKey });
  }
  return { store, ofStart, nodeId, sealer, lastUsed, authenticator, team };
}
