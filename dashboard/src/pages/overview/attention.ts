/** What needs somebody to look at it, the newest trouble first. */
import type { Job, WebhookDetail, Workflow } from 'flowhook-client';
import { lastLine } from '../../parts/format.ts';

export type Trouble =
  | { kind: 'workflow'; id: string; sinceMs: number; why: string; jobId: string }
  | { kind: 'webhook'; id: string; sinceMs: number; why: string; url: string; state: 'failing' | 'paused' };

/** At most this many workflows are checked. */
export const LOOKED_AT = 20;

/** The workflows of failed runs, each once, by its newest failure. */
export function suspects(failed: readonly Job[]): string[] {
  return [...new Set(failed.map(({ workflowId }) => workflowId))].slice(0, LOOKED_AT);
}

/** @param workflows candidates: those whose last finished run failed are in trouble */
export function troubles(workflows: readonly Workflow[], webhooks: readonly WebhookDetail[]): Trouble[] {
  const found: Trouble[] = [];
  for (const { id, lastJob } of workflows) {
    if (lastJob?.state !== 'failed' || lastJob.finishedAt === null) continue;
    const why = lastLine(lastJob.error ?? 'It failed');
    found.push({ kind: 'workflow', id, jobId: lastJob.id, sinceMs: Date.parse(lastJob.finishedAt), why });
  }
  for (const { id, url, state, pausedAt, pausedReason, failingSince, lastSuccessAt, breaker } of webhooks) {
    if (state === 'paused') {
      const sinceMs = Date.parse(pausedAt ?? '');
      found.push({ kind: 'webhook', id, url, state, sinceMs, why: pausedReason ?? 'Paused' });
    } else if (failingSince !== null) {
      const why =
        breaker.reason ?? `No delivery has succeeded ${lastSuccessAt === null ? 'yet' : 'since then'}`;
      found.push({ kind: 'webhook', id, url, state: 'failing', sinceMs: Date.parse(failingSince), why });
    }
  }
  return found.sort((a, b) => b.sinceMs - a.sinceMs);
}
