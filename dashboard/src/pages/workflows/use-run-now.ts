/** Queues a run, with a clear message when there already is one. */
import { Conflict } from 'flowhook-client';
import { flowhook } from '../../client.ts';
import { useAction } from '../../parts/action.tsx';

const SENTENCES = {
  queued: 'a run is queued',
  in_the_way:
    'already has a run that has not ended, so no other was queued. Run it again once that has ended.',
};

/** @param name how the workflow is called in what is said */
export function useRunNow(workflowId: string, name: string): { run: () => void; isRunning: boolean } {
  const { act, isActing } = useAction({
    run: async () => {
      try {
        await flowhook.workflows.queue(workflowId);
        return 'queued' as const;
      } catch (error) {
        if (error instanceof Conflict && error.code === 'job_already_queued') return 'in_the_way' as const;
        throw error;
      }
    },
    changes: ['jobs', 'workflows'],
    done: (outcome) =>
      outcome === 'queued' ? `${name}: ${SENTENCES.queued}` : { nothing: `${name} ${SENTENCES[outcome]}` },
  });
  return { run: act, isRunning: isActing };
}
