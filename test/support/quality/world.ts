/** A service that reads the ten sources from their site, and is pushed what has no site. */
import assert from 'node:assert/strict';
import type { JobFinding } from '../../../src/model/quality/expect.ts';
import { startService, type TestService } from '../service.ts';
import type { Row } from './population.ts';
import { type QualitySite, startQualitySite } from './site.ts';
import { filesOf, type QualitySource, SOURCES } from './sources.ts';

/** An ended job, as the API shows it. */
export interface QualityJob {
  id: string;
  state: string;
  reason: string | null;
  error: string | null;
  version: number | null;
  findings: JobFinding[] | null;
  /** Number of records set aside. */
  quarantined: number | null;
}

export interface QualityWorld {
  service: TestService;
  site: QualitySite;
  /** Moves the clock of the service forward. */
  advance(ms: number): void;
  /** Publishes the rows: a run reads them from the site, or they are pushed. Resolves when the job has ended. */
  run(source: QualitySource, suffix: string, rows: readonly Row[]): Promise<QualityJob>;
  /** Queues a job, and returns its id. */
  queue(workflowId: string): Promise<string>;
  /** Resolves when the job has ended. */
  ended(jobId: string): Promise<QualityJob>;
  /** `type` and `data` of the newest 100 events of a workflow, newest first. */
  events(workflowId: string): Promise<{ type: string; data: Record<string, unknown> }[]>;
  stop(): Promise<void>;
}

/** @param forms see `filesOf` */
export async function startWorld(
  forms: Parameters<typeof filesOf>[1],
  sources: readonly QualitySource[] = SOURCES,
): Promise<QualityWorld> {
  const site = await startQualitySite();
  let aheadMs = 0;
  const service = await startService({
    clock: () => Date.now() + aheadMs,
    settings: { FLOWHOOK_ALLOW_NETWORKS: 'loopback' },
    workflows: filesOf(site.url, forms, sources),
  });

  async function queue(workflowId: string): Promise<string> {
    const queued = await service.call('POST', `/v1/workflows/${workflowId}/queue`);
    assert.equal(queued.status, 200, JSON.stringify(queued.body));
    return queued.headers.get('x-job-id') ?? '';
  }

  async function ended(jobId: string): Promise<QualityJob> {
    // The stream of the log ends with the job.
    const log = await fetch(`${service.url}/v1/jobs/${jobId}/logs`, {
      headers: { 'x-api-key': service.key, accept: 'text/event-stream' },
    });
    await log.text();
    return (await service.call('GET', `/v1/jobs/${jobId}`)).body as QualityJob;
  }

  async function push(workflowId: string, rows: readonly Row[]): Promise<QualityJob> {
    // The default guard of pushes would refuse a push of three rows by itself.
    await service.call('POST', `/v1/workflows/${workflowId}/push?allowDrop=true`, rows);
    const { body } = await service.call('GET', `/v1/jobs?workflowId=${workflowId}&limit=1`);
    return (body as { jobs: QualityJob[] }).jobs[0] as QualityJob;
  }

  return {
    service,
    site,
    advance(ms) {
      aheadMs += ms;
    },
    queue,
    ended,
    async run(source, suffix, rows) {
      if (source.settings === undefined) return push(source.id + suffix, rows);
      site.rows.set(source.id, rows);
      return ended(await queue(source.id + suffix));
    },
    async events(workflowId) {
      const { body } = await service.call('GET', `/v1/events/history?workflowId=${workflowId}&limit=100`);
      return (body as { events: { type: string; data: Record<string, unknown> }[] }).events;
    },
    async stop() {
      await service.stop();
      site.close();
    },
  };
}
