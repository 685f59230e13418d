/** Which of the first three steps a team has done. */
import type { Workflow } from 'flowhook-client';

/** What the steps need of a workflow. */
export type StepWorkflow = Pick<Workflow, 'id' | 'name' | 'paused' | 'version' | 'records'> & {
  source: { type: string };
};

export interface StepsDone {
  /** One has published something. */
  hasRun: boolean;
  /** There are records to look at. */
  hasData: boolean;
  hasWebhook: boolean;
  /** The workflow that is offered to be run; undefined: there is none that can. */
  toRun: StepWorkflow | undefined;
  /** The workflow whose records are shown. */
  toRead: StepWorkflow | undefined;
}

/** @param chosen the id of the workflow that one has chosen to run */
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

/** Those that can be run by a press: not paused, and not waiting for what others push. */
export function runnableOf<W extends StepWorkflow>(workflows: readonly W[]): W[] {
  return workflows.filter(({ paused, source }) => !paused && source.type !== 'push');
}

export function countDone({ hasRun, hasData, hasWebhook }: StepsDone): number {
  return [hasRun, hasData, hasWebhook].filter((isDone) => isDone).length;
}
