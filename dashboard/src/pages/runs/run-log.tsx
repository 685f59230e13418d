/** What a run has said, attempt by attempt. */
import { SegmentedControl, Text } from '@mantine/core';
import type { Job } from 'flowhook-client';
import { useState } from 'react';
import { ErrorBox } from '../../parts/error-box.tsx';
import { LogView } from '../../parts/log-view.tsx';
import { useJobLog } from './use-job-log.ts';

export function RunLog({ job }: { job: Job }) {
  const [chosen, setChosen] = useState<number>();
  const { lines, error, isLoading } = useJobLog(job, chosen);
  if (job.attempt === 0) {
    return (
      <Text size="sm" c="dimmed">
        It has not started yet, so there is no log.
      </Text>
    );
  }
  const attempts = Array.from({ length: job.attempt }, (_, index) => String(index + 1));
  return (
    <>
      {attempts.length > 1 && (
        <SegmentedControl
          aria-label="Attempt"
          mb="xs"
          data={attempts.map((value) => ({ value, label: `Attempt ${value}` }))}
          value={String(chosen ?? job.attempt)}
          onChange={(value) => setChosen(Number(value) === job.attempt ? undefined : Number(value))}
        />
      )}
      {error !== null && <ErrorBox error={error} title="The log could not be read to its end" />}
      {!isLoading && lines.length === 0 && error === null && job.finishedAt !== null ? (
        <Text size="sm" c="dimmed">
          It wrote nothing. What a command writes to standard error and what a module logs appears here.
        </Text>
      ) : (
        <LogView
          lines={lines}
          isLive={job.finishedAt === null && chosen === undefined}
          fileName={`${job.id}.log`}
        />
      )}
    </>
  );
}
