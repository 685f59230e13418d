/** The composition root: builds all parts of a node, starts them in order, and stops them in reverse. */
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import type { Config } from '../config/config.ts';
import type { Role } from '../config/settings.ts';
import { misspelledVariables } from '../config/sources.ts';
import { type ApplyReport, applyAtStart, isWithoutWorkflows } from '../definitions/apply.ts';
import { DefinitionChecks } from '../definitions/checks.ts';
import type { ParseYaml } from '../definitions/load.ts';
import { type Comparison, LocalFiles } from '../definitions/local-files.ts';
import { doctorOfNode } from '../doctor/doctor.ts';
import { drain, InFlight } from '../http/limits/requests.ts';
import { Certificate } from '../http/server/certificate.ts';
import { nodeMetrics } from '../http/server/node-metrics.ts';
import { openDashboard } from '../http/ui/dashboard.ts';
import type { Engine } from '../jobs/engine.ts';
import { localAuthor } from '../model/audit.ts';
import type { Team } from '../model/team.ts';
import { browsableUrl, serviceUrl } from '../net/host.ts';
import { EventLoopMonitor } from '../observe/event-loop.ts';
import type { Logger } from '../observe/log.ts';
import { processMetrics, traceMetrics } from '../observe/process-metrics.ts';
import { requireRunAs } from '../sources/process/environment.ts';
import type { Clock } from '../std/clock.ts';
import { collectAtRest } from '../std/idle-gc.ts';
import { StopOrder } from '../std/stop-order.ts';
import { VERSION } from '../std/version.ts';
import { authoredBy } from '../store/audited.ts';
import { isPostgres } from '../store/database-url.ts';
import type { Store } from '../store/store.ts';
import { mintFirstKey } from '../teams/keys.ts';
import { linkUrl, makeLink } from '../teams/sessions.ts';
import type { DeliveryEngine } from '../webhooks/delivery-engine.ts';
import type { RuleEngine } from '../webhooks/rules/rule-engine.ts';
import { openFoundation, startObservation } from './foundation.ts';
import { buildCapabilities } from './parts.ts';
import { createWire } from './wire.ts';

/** Maximum number of connections that wait to be accepted. Clients beyond it must retransmit, which takes seconds. */
const BACKLOG = 4_096;

/** A running service. */
export interface Service {
  /** `http://HOST:PORT` or `https://…`, with the actual port. */
  url: string;
  store: Store;
  engine: Engine;
  deliveryEngine: DeliveryEngine;
  ruleEngine: RuleEngine;
  team: Team;
  /** The first API key, if this start created one. The key is shown only once. */
  firstKey: string | undefined;
  /**
   * The URL of the dashboard, if this node serves it. The URL is a one-time sign-in link if this start created the first
   * key.
   */
  dashboard: string | undefined;
  /** The result of applying the workflow files; undefined if this node did not apply them at start. */
  workflows: ApplyReport | undefined;
  /**
   * How the workflow files differ from the applied definitions. Undefined on nodes that apply workflow files at start.
   */
  comparison: Comparison | undefined;
  /**
   * Reloads a changed certificate, and applies changed workflow files. On PostgreSQL, files are compared but not
   * applied.
   */
  reload(): Promise<void>;
  /** Stops accepting requests, releases running jobs, finishes responses and deliveries, closes the database. */
  stop(): Promise<StopReport>;
}

export interface StopReport {
  /** The names of parts that did not end within `drainSeconds`; usually none. */
  stuck: string[];
  /** The number of aborted requests, of released job attempts, and of aborted deliveries (which are retried later). */
  cut: { requests: number; jobs: number; deliveries: number };
}

/**
 * Starts the service: database, keys, workflows, and the parts that `FLOWHOOK_ROLE` selects (webhooks, API, jobs).
 *
 * @param options.clock replaces the clock of the database in tests
 * @param options.leaseMs the lease of running jobs and of lanes; shorter in tests
 * @param options.dashboard the root of its files (default: of this program), and whether it is built if missing
 * @throws Error with a sentence that says what prevents the start: another server on the same data, a newer schema, a
 *   different encryption key, a port in use
 */
export async function startService(
  config: Config,
  log: Logger,
  options: {
    clock?: Clock;
    random?: () => number;
    leaseMs?: number;
    dashboard?: { root?: string; builds?: boolean };
  } = {},
): Promise<Service> {
  const random = options.random ?? Math.random;
  const started = new StopOrder();
  const stopMs = stopTimes(config);
  let cut: StopReport['cut'] = { requests: 0, jobs: 0, deliveries: 0 };
  const stop = async (): Promise<StopReport> => ({
    stuck: await started.stop({ withinMs: stopMs.allMs }),
    cut,
  });

  try {
    await requireRunAs(config.runAs, config.workflowsDirectory);
    /** Registers a part to be stopped. Parts are stopped in reverse order. */
    const kept = <Part extends { stop(): Promise<unknown> | unknown }>(part: Part): Part => {
      started.push(() => part.stop());
      return part;
    };
    const { observer, metrics, tracing } = await startObservation(config, log);
    started.push(() => tracing?.stop());
    let url = '';
    const isShared = isPostgres(config.databaseUrl);
    const has = (role: Exclude<Role, 'all'>) => config.role === 'all' || config.role === role;
    const publicUrl = () => config.publicUrl ?? url;
    const foundation = await openFoundation(config, {
      log,
      clock: options.clock,
      random,
      publicUrl,
      isShared,
      servesApi: has('api'),
      started,
    });
    const { store, nodeId, sealer, serviceStore, lastUsed, authenticator, team } = foundation;
    const hasDashboard = config.dashboard && has('api');
    const dashboard = hasDashboard
      ? openDashboard({
          store,
          log,
          environment: config.environment,
          publicUrl,
          root: options.dashboard?.root,
          builds: options.dashboard?.builds === true,
          lastUsed,
        })
      : undefined;
    started.push(() => dashboard?.stop());
    const definitions = kept(new DefinitionChecks());
    const loading = new AbortController();
    started.push(() => loading.abort());
    const applyFiles = (parseYaml?: ParseYaml) =>
      applyAtStart(authoredBy(store, localAuthor('file')), {
        directory: config.workflowsDirectory,
        isNamed: config.workflowsNamed,
        runAs: config.runAs,
        log,
        signal: loading.signal,
        parseYaml,
      });
    const files = isShared
      ? new LocalFiles({ store, directory: config.workflowsDirectory, log, random })
      : undefined;
    const isMine = files === undefined || (config.role === 'all' && (await isWithoutWorkflows(store)));
    const workflows = isMine ? await applyFiles() : undefined;
    if (has('worker')) await files?.tick();
    started.push(() => files?.stop());

    const capabilities = await buildCapabilities(config, {
      ...foundation,
      log,
      observer,
      tracing,
      files,
      random,
      leaseMs: options.leaseMs,
      publicUrl,
      started,
    });
    const {
      resolver,
      mailing,
      deliveryEngine,
      ruleEngine,
      examiner,
      bodies,
      pushes,
      engine,
      scheduler,
      forget,
      chores,
    } = capabilities;

    const { tlsCert, tlsKey } = config;
    const certificate =
      tlsCert === undefined || tlsKey === undefined
        ? undefined
        : kept(new Certificate({ cert: tlsCert, key: tlsKey }, log));
    const isSecure = certificate !== undefined;

    const eventLoop = kept(new EventLoopMonitor());
    eventLoop.start();
    kept(collectAtRest());
    const startedAt = store.now();
    const listening = { host: config.host, port: config.port };
    let ready = false;
    let stopping = false;
    const inFlight = kept(new InFlight({ waitMs: () => store.waitMs(), log }));
    inFlight.start();
    if (metrics !== undefined) {
      processMetrics(metrics, eventLoop);
      traceMetrics(metrics, tracing);
      nodeMetrics(metrics, {
        version: VERSION,
        role: config.role,
        databaseKind: isShared ? 'postgres' : 'sqlite',
        store,
        lanes: deliveryEngine,
        bodies,
        inFlight,
        isReady: () => ready,
        dataDirectory: config.dataDirectory,
        backups: isShared ? undefined : { directory: config.backupDirectory, everyMs: config.backupEveryMs },
      });
    }
    const doctor = doctorOfNode({
      settings: config,
      doubts: misspelledVariables(config.environment),
      store,
      node: () => ({ port: listening.port, openCircuits: deliveryEngine.load.circuits.open }),
    });
    const app = createWire(config, {
      store,
      authenticator,
      bodies,
      examiner,
      sealer,
      resolver,
      mailing,
      forget,
      publicUrl,
      node: () => ({
        version: VERSION,
        role: config.role,
        nodeId,
        startedAt,
        url: publicUrl(),
        listening,
        openCircuits: deliveryEngine.load.circuits.open,
        eventLoop: eventLoop.read(),
        settings: config.settings,
      }),
      examine: () => doctor.examine(),
      pushes,
      definitions,
      log,
      observer,
      tracing,
      isReady: () => ready,
      isStopping: () => stopping,
      inFlight,
      servesApi: has('api'),
      metrics,
      certificate,
      dashboard,
    });
    started.push(async () => {
      pushes.turnAway();
      const { part } = started;
      const { workMs: withinMs } = stopMs;
      const [requests, jobs, deliveries] = await Promise.all([
        part('requests', () => drain({ app, inFlight, withinMs })),
        part('jobs', async () => {
          await scheduler.stop();
          return engine.stop();
        }),
        part('deliveries', () => deliveryEngine.stop({ graceMs: withinMs })),
      ]);
      cut = { requests: requests.cut, deliveries: deliveries.cut, jobs: jobs.released };
    }, 'requests, jobs and deliveries');
    // The examination stops before draining begins, because a request that waits for it would delay draining.
    started.push(() => doctor.stop(), 'an examination');
    await app.listen({ host: config.host, port: config.port, backlog: BACKLOG });
    const { port } = app.server.address() as AddressInfo;
    listening.port = port;
    // The first key is created after listening has succeeded, because only a successful start can show it.
    const first = has('api') ? await mintFirstKey(serviceStore, { team, nodeId }) : undefined;
    url = serviceUrl({ host: config.host, port, isSecure });

    if (has('sender')) {
      deliveryEngine.start();
      ruleEngine.start();
    }
    if (has('worker')) {
      files?.start();
      await engine.start();
      scheduler.start();
    }
    if (has('api')) lastUsed.start();
    chores.start(has);
    ready = true;
    // Stopping begins with this step: /readyz fails, and load balancers get time to notice.
    started.push(async () => {
      ready = false;
      stopping = true;
      await pause(stopMs.delayMs);
    });
    if (options.dashboard?.builds === true) void dashboard?.build.start();
    const link = dashboard && first && (await makeLink(store, { keyId: first.record.id }));
    const pagesUrl = config.publicUrl ?? browsableUrl({ host: config.host, port, isSecure });
    const reload = async () => {
      certificate?.look();
      // The files are parsed in a thread, because the event loop is serving requests now.
      if (files === undefined) await applyFiles((yaml, { file }) => definitions.checkFile({ yaml, file }));
      else await files.tick();
    };
    const comparison = isMine ? undefined : files?.comparison;
    return {
      url,
      store,
      engine,
      deliveryEngine,
      ruleEngine,
      team,
      firstKey: first?.key,
      dashboard: dashboard && (link ? linkUrl(pagesUrl, link.token) : `${pagesUrl}/ui/`),
      workflows,
      comparison,
      reload,
      stop,
    };
  } catch (error) {
    // If stopping fails as well, its error is dropped, because the error of the start matters more.
    await stop().catch(() => {});
    throw error;
  }
}

/** Time reserved for closing the remaining parts after requests, jobs and deliveries have ended. */
const MAX_CLOSING_MS = 3_000;

/**
 * Divides the time for a stop: the total, the delay before the port closes, and the time for work in progress. The rest
 * is for storing results.
 */
function stopTimes({ drainSeconds, drainDelaySeconds }: Pick<Config, 'drainSeconds' | 'drainDelaySeconds'>): {
  allMs: number;
  delayMs: number;
  workMs: number;
} {
  const allMs = drainSeconds * 1_000;
  const delayMs = Math.min(drainDelaySeconds * 1_000, allMs / 2);
  return { allMs, delayMs, workMs: allMs - delayMs - Math.min(MAX_CLOSING_MS, (allMs - delayMs) / 2) };
}
