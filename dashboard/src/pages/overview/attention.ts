/** Workflows and webhooks that need attention, newest problem first. */
import type { WebhookDetail, Workflow } from '../../../../client/src/flowhook-client.ts';
import { lastLine } from '../../parts/format.ts';

export type Trouble =
  | { kind: 'workflow'; id: string; sinceMs: number; why: string; state: 'failed'; jobId: string }
  | { kind: 'workflow'; id: string; sinceMs: number; why: string; state: 'stale' }
  | { kind: 'webhook'; id: string; sinceMs: number; why: string; state: 'failing' | 'paused'; url: string };

/** At most this many workflows are checked. */
export const LOOKED_AT = 20;

/** The workflows of failed runs or events, without duplicates, in the same order. */
export function suspects(found: readonly { workflowId?: string | null }[]): string[] {
  const ids = found.map(({ workflowId }) => workflowId).filter((id) => id != null);
  return [...new Set(ids)].slice(0, LOOKED_AT);
}

/** @param workflows candidates: those whose last run failed, and stale ones, are included */
export function troubles(workflows: readonly Workflow[], webhooks: readonly WebhookDetail[]): Trouble[] {
  const found: Trouble[] = [];
  for (const { id, lastJob, paused, staleSince, freshUntil } of workflows) {
    if (lastJob?.state === 'failed' && lastJob.finishedAt !== null) {
      const { id: jobId, finishedAt, error } = lastJob;
      const why = lastLine(error ?? 'The run failed');
      found.push({ kind: 'workflow', id, sinceMs: Date.parse(finishedAt), why, state: 'failed', jobId });
    } else if (staleSince !== null && !paused) {
      const why = `A run had to succeed by ${freshUntil}, and none did`;
      found.push({ kind: 'workflow', id, sinceMs: Date.parse(staleSince), why, state: 'stale' });
    }
  }
  for (const { id, url, state, pausedAt, pausedReason, failingSince, lastSuccessAt, breaker } of webhooks) {
    if (state === 'paused') {
      const sinceMs = Date.parse(pausedAt ?? '');
      found.push({ kind: 'webhook', id, url, state, sinceMs, why: pausedReason ?? 'Paused' });
    } else if (failingSince !== null) {
      const why =
        breaker.reason ??
        (lastSuccessAt === null ? 'No attempt has succeeded yet' : 'Every attempt has failed');
      found.push({ kind: 'webhook', id, url, state: 'failing', sinceMs: Date.parse(failingSince), why });
    }
  }
  return found.sort((a, b) => b.sinceMs - a.sinceMs);
}
