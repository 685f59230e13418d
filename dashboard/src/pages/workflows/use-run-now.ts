/** Queues a run, and explains if there already is one. */
import { Conflict } from '../../../../client/src/flowhook-client.ts';
import { flowhook } from '../../client.ts';
import { useAction } from '../../parts/action.tsx';

/** @param name of the workflow, for the notification */
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
            nothing: `${name} already has a run in progress, so no other was queued. Run it again when that one has ended.`,
          }
        : `Run of ${name} queued`,
  });
}
