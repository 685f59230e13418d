/** Whether this node is ready, and why not. The messages are public: they contain no address, path or name. */
import { Problem } from '../../model/error.ts';
import type { Services } from '../services.ts';
import { toProblem } from './problem.ts';

/** One check. `off` (not the role of this node) and `noted` (information) do not affect readiness. */
export interface Check {
  name: string;
  status: 'ok' | 'failed' | 'off' | 'noted';
  message: string;
}

export interface Readiness {
  /** Why the node is not ready: the first check that failed. */
  problem: Problem | undefined;
  checks: Check[];
}

type Probed = Pick<Services, 'store' | 'isReady' | 'isStopping' | 'inFlight' | 'node'>;

export async function readiness(services: Probed): Promise<Readiness> {
  const { store } = services;
  const probes = [
    ['started', async () => started(services)],
    ['database', () => store.check()],
    ['migrations', () => migrated(store)],
  ] as const;
  const results = await Promise.all(
    probes.map(async ([name, probe]) => ({ name, problem: await problemOf(probe, name) })),
  );
  const checks = results.map(
    ({ name, problem }): Check => ({
      name,
      status: problem === undefined ? 'ok' : 'failed',
      message: problem?.message ?? WELL[name],
    }),
  );
  return {
    problem: results.find(({ problem }) => problem !== undefined)?.problem,
    checks: [...checks, ...parts(services), load(services)],
  };
}

const WELL = {
  started: 'Started, and not stopping',
  database: 'Responds',
  migrations: 'The schema is up to date',
};

async function problemOf(
  probe: () => Promise<unknown>,
  name: keyof typeof WELL,
): Promise<Problem | undefined> {
  try {
    await probe();
    return undefined;
  } catch (error) {
    const problem = toProblem(error);
    // Messages from the database go only to the log, because the messages of readiness are public.
    const isKnown = name === 'started' || problem.code !== 'internal';
    return isKnown ? problem : new Problem('database_unavailable', { cause: error });
  }
}

function started({ isReady, isStopping }: Probed): void {
  if (isReady()) return;
  throw isStopping() ? new Problem('stopping') : new Problem('not_ready');
}

/** A newer schema is fine, because the migrations of the next version are compatible with this version. */
async function migrated(store: Probed['store']): Promise<void> {
  const { found, newest } = await store.status.schema();
  if (found >= newest) return;
  throw new Problem('not_ready', {
    sentence:
      `The schema is at version ${found}, but this flowhook needs ${newest}: the database was replaced by an older one. ` +
      'Restart the service to migrate it',
  });
}

function parts({ node }: Probed): Check[] {
  const { role, openCircuits } = node();
  const part = (name: string, its: string, message: string): Check =>
    role === 'all' || role === its
      ? { name, status: 'noted', message }
      : { name, status: 'off', message: `Not on this node, whose role is ${role}` };
  return [
    part('api', 'api', 'Serves requests'),
    part('jobs', 'worker', 'Runs jobs'),
    part('deliveries', 'sender', `Sends deliveries; open circuit breakers: ${openCircuits}`),
  ];
}

function load({ inFlight }: Probed): Check {
  const { working, limit, shed, isShortOfMemory } = inFlight.state;
  const memory = isShortOfMemory ? '. Memory is low' : '';
  return {
    name: 'load',
    status: 'noted',
    message: `Requests in progress: ${working} of at most ${limit}; refused since start: ${shed}${memory}`,
  };
}
