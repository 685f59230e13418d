/** Which of the first three steps are done. */
import type { Workflow } from '../../../../client/src/flowhook-client.ts';

export type StepWorkflow = Pick<Workflow, 'id' | 'name' | 'paused' | 'version' | 'records'> & {
  source: { type: string };
};

export interface StepsDone {
  /** A workflow has published a version. */
  hasRun: boolean;
  /** A workflow has records. */
  hasData: boolean;
  hasWebhook: boolean;
  /** The workflow to run; undefined if none can be run. */
  toRun: StepWorkflow | undefined;
  /** The workflow whose records to show. */
  toRead: StepWorkflow | undefined;
}

/** @param chosen id of the workflow that the user chose to run */
export function stepsOf(
  workflows: readonly StepWorkflow[],
  webhooks: number,
  chosen: string | null = null,
): StepsDone {
  const runnable = runnableOf(workflows);
  const toRun = runnable.find(({ id }) => id === chosen) ?? runnable[0];
  const published = workflows.filter(({ version }) => version > 0);
  const filled = published.filter(({ records }) => records > 0);
  return {
    hasRun: published.length > 0,
    hasData: filled.length > 0,
    hasWebhook: webhooks > 0,
    toRun,
    toRead: filled.find(({ id }) => id === toRun?.id) ?? filled[0],
  };
}

/** Workflows that can be run on request: not paused, and not of type `push`. */
export function runnableOf<W extends StepWorkflow>(workflows: readonly W[]): W[] {
  return workflows.filter(({ paused, source }) => !paused && source.type !== 'push');
}

export function countDone({ hasRun, hasData, hasWebhook }: StepsDone): number {
  return [hasRun, hasData, hasWebhook].filter((isDone) => isDone).length;
}
