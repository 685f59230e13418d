/** Queues a run, with a clear message when there already is one. */
import { Conflict } from 'flowhook-client';
import { flowhook } from '../../client.ts';
import { useAction } from '../../parts/action.tsx';

/** @param name how the workflow is called in what is said */
export function useRunNow(workflowId: string, name: string) {
  return useAction({
    run: () =>
      flowhook.workflows.queue(workflowId).catch((error: Error) => {
        if (error instanceof Conflict && error.code === 'job_already_queued') return undefined;
        throw error;
      }),
    changes: ['jobs', 'workflows'],
    done: (queued) =>
      queued === undefined
        ? {
            nothing: `${name} already has a run that has not ended, so no other was queued. Run it again once that has ended.`,
          }
        : `${name}: a run is queued`,
  });
}
