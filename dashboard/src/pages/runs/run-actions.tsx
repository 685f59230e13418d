/** The actions on selected runs. */
import { Button, Group } from '@mantine/core';
import type { Job } from 'flowhook-client';
import { flowhook } from '../../client.ts';
import { confirm, useAction } from '../../parts/action.tsx';
import { many } from '../../parts/quantity.ts';
import { useSession } from '../../session.tsx';
import { type Outcome, outcomeWords } from './outcome-words.ts';

/** How many calls are made at the same time. */
const AT_ONCE = 4;

/** @param props.onDone when all have been tried: nothing is chosen any more */
export function RunActions({ chosen, onDone }: { chosen: readonly Job[]; onDone: () => void }) {
  const { can } = useSession();
  const unfinished = chosen.filter(({ finishedAt }) => finishedAt === null);
  const workflows = [...new Map(chosen.map((job) => [job.workflowId, job])).values()];
  const rerun = useAction({
    run: () => each(workflows, ({ id }) => flowhook.jobs.rerun(id)),
    done: (outcome) => outcomeWords('queued', outcome),
    changes: ['jobs'],
    onDone,
  });
  const cancel = useAction({
    run: () => each(unfinished, ({ id }) => flowhook.jobs.cancel(id)),
    done: (outcome) => outcomeWords('canceled', outcome),
    changes: ['jobs'],
    onDone,
  });
  if (!can('queue') || chosen.length === 0) return null;
  return (
    <Group gap="xs">
      <Button variant="default" onClick={() => rerun.act()} loading={rerun.isActing}>
        Run {many(workflows.length, 'workflow')} again
      </Button>
      {unfinished.length > 0 && (
        <Button
          variant="default"
          loading={cancel.isActing}
          onClick={() =>
            confirm({
              title: `Cancel ${many(unfinished.length, 'run')}?`,
              children: 'Runs under way are stopped, and publish nothing.',
              verb: `Cancel ${many(unfinished.length, 'run')}`,
              onConfirm: () => cancel.act(),
            })
          }
        >
          Cancel {many(unfinished.length, 'run')}
        </Button>
      )}
    </Group>
  );
}

async function each(jobs: readonly Job[], act: (job: Job) => Promise<unknown>): Promise<Outcome> {
  const outcome: Outcome = { done: 0, refused: { count: 0, why: undefined } };
  for (let start = 0; start < jobs.length; start += AT_ONCE) {
    const results = await Promise.allSettled(jobs.slice(start, start + AT_ONCE).map(act));
    for (const result of results) {
      if (result.status === 'fulfilled') {
        outcome.done += 1;
      } else {
        outcome.refused.count += 1;
        outcome.refused.why ??= (result.reason as Error).message;
      }
    }
  }
  return outcome;
}
