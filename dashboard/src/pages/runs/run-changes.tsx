/** What a run has changed: some of its differences, and the way to all. */
import { Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { type Job, NotFound } from 'flowhook-client';
import { ChangeList } from '../../parts/change-list.tsx';
import { ErrorBox } from '../../parts/error-box.tsx';
import { PageLink } from '../../parts/link.tsx';
import { changesQuery } from '../../queries/changes.ts';

const SHOWN = 20;

/** Only for a run that has published a version of its own. */
export function RunChanges({ job, version }: { job: Job; version: number }) {
  const { data, error } = useQuery(changesQuery({ workflowId: job.workflowId, version, most: SHOWN }));
  const all = (job.records?.added ?? 0) + (job.records?.changed ?? 0) + (job.records?.removed ?? 0) - SHOWN;
  if (error !== null && data === undefined)
    return (
      <ErrorBox
        error={error}
        title={error instanceof NotFound ? 'What it changed is no longer kept' : undefined}
      />
    );
  return (
    <Stack gap="xs">
      <ChangeList changes={data?.changes ?? []} />
      <Text size="xs">
        <PageLink
          to="/workflows/$workflowId/changes"
          params={{ workflowId: job.workflowId }}
          search={{ version: String(version) }}
        >
          {all > 0 ? `All changes of version ${version}` : `Version ${version} among the others`}
        </PageLink>
      </Text>
    </Stack>
  );
}
