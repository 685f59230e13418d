/** The quality of a workflow's records: findings of the newest runs, and what each field looked like over versions. */
import { Group, Skeleton, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import type { Definition, Profile, ProfileField } from '../../../../client/src/flowhook-client.ts';
import { flowhook } from '../../client.ts';
import { ActionButton, useAction } from '../../parts/action.tsx';
import { SmallBars } from '../../parts/charts.tsx';
import { JsonView } from '../../parts/code.tsx';
import { CopyAsCurl, useCopy } from '../../parts/copy.tsx';
import { DataTable } from '../../parts/data-table.tsx';
import { absolute, count } from '../../parts/format.ts';
import { EmptyState, ErrorBox, PageLink, Section } from '../../parts/page.tsx';
import type { Column } from '../../parts/rows.tsx';
import { stateColor } from '../../parts/state-badge.tsx';
import { Dim, Note, Time } from '../../parts/values.tsx';
import { jobList } from '../../queries/jobs.ts';
import { listOf, useList } from '../../queries/list.ts';
import { definitionQuery, profileQuery } from '../../queries/workflows.ts';
import { useSession } from '../../session.tsx';
import { Findings } from '../runs/findings.tsx';
import { expectationOf, merged, type Point, pointsOf, rangeWords, yamlOf } from './quality.ts';

export function QualityTab() {
  const { workflowId } = useParams({ from: '/workflows/$workflowId' });
  const { data, error, refetch } = useQuery(profileQuery(workflowId));
  if (error !== null && data === undefined) return <ErrorBox error={error} onRetry={() => void refetch()} />;
  if (data === undefined) return <Skeleton h={240} aria-label="Loading" />;
  return (
    <Stack gap="lg">
      <RecentFindings workflowId={workflowId} />
      <Section
        title="Fields"
        isBare
        actions={<CopyAsCurl path={`/v1/workflows/${encodeURIComponent(workflowId)}/profile`} />}
      >
        <Fields workflowId={workflowId} profiles={data.profiles} expect={data.expect} />
      </Section>
    </Stack>
  );
}

/** How many of the newest runs are searched for findings. */
const RUNS = 10;

function RecentFindings({ workflowId }: { workflowId: string }) {
  const list = useList(jobList({ workflowId }));
  const found = list.rows.slice(0, RUNS).filter(({ findings }) => (findings?.length ?? 0) > 0);
  if (list.isLoading) return <Skeleton h={60} aria-label="Loading" />;
  return (
    <Section title="Findings of the newest runs" isBare>
      {found.length === 0 ? (
        <Note>The newest {RUNS} runs met all expectations, and looked like those before.</Note>
      ) : (
        <Stack gap="sm">
          {found.map((job) => (
            <Stack key={job.id} gap={4}>
              <PageLink to="/runs/$jobId" params={{ jobId: job.id }} fz="sm">
                Run of <Time at={job.finishedAt ?? job.queuedAt} as="itself" />
              </PageLink>
              <Findings job={job} />
            </Stack>
          ))}
        </Stack>
      )}
    </Section>
  );
}

function Fields({
  workflowId,
  profiles,
  expect,
}: {
  workflowId: string;
  profiles: readonly Profile[];
  expect: Record<string, unknown>;
}) {
  const { can } = useSession();
  const { data: definition } = useQuery({ ...definitionQuery(workflowId), enabled: can('admin') });
  const newest = profiles[0];
  if (newest === undefined) {
    return (
      <EmptyState title="No profiles yet">
        Every run that publishes a version stores what its records looked like.
      </EmptyState>
    );
  }
  const columns: (Column<ProfileField> | false)[] = [
    { id: 'name', header: 'Field', width: '130px', cell: ({ name }) => <span title={name}>{name}</span> },
    {
      id: 'filled',
      header: 'Filled',
      width: 'fits',
      cell: ({ name }) => (
        <Plot label={`Filled, ${name}`} points={pointsOf(profiles, name, 'filled')} unit=" %" most={100} />
      ),
    },
    {
      id: 'distinct',
      header: 'Different values',
      width: 'fits',
      cell: ({ name }) => (
        <Plot label={`Different values, ${name}`} points={pointsOf(profiles, name, 'distinct')} unit="" />
      ),
    },
    {
      id: 'largest',
      header: 'Largest',
      width: 'fits',
      cell: ({ name }) => (
        <Plot label={`Largest, ${name}`} points={pointsOf(profiles, name, 'largest')} unit="" />
      ),
    },
    { id: 'range', header: 'Range', width: '170px', cell: (field) => rangeWords(field) },
    {
      id: 'kinds',
      header: 'Types',
      width: '120px',
      cell: ({ kinds }) => <span title={Object.keys(kinds).join(', ')}>{Object.keys(kinds).join(', ')}</span>,
    },
    definition !== undefined && {
      id: 'expect',
      header: 'Expectation',
      width: 'fits',
      cell: ({ name }) => (
        <MakeExpectation
          workflowId={workflowId}
          field={name}
          part={expectationOf(expect, name)}
          isFile={definition.origin === 'file'}
        />
      ),
    },
  ];
  return (
    <>
      <DataTable
        label="Fields"
        noun="field"
        list={listOf(newest.fields)}
        idOf={({ name }) => name}
        columns={columns}
        empty={<EmptyState title="The newest run emitted no fields" />}
      />
      <Text size="xs" c="dimmed" mt={4}>
        {count(profiles.length)} runs, the newest at the right: version {count(newest.version)},{' '}
        {count(newest.records)} records.
        {newest.omitted > 0 && ` ${count(newest.omitted)} further fields are not listed.`}
      </Text>
    </>
  );
}

/** One bar per run, oldest first, and the newest value. */
function Plot({
  label,
  points,
  unit,
  most,
}: {
  label: string;
  points: readonly Point[];
  unit: string;
  most?: number;
}) {
  const values = points.map(({ value }) => value ?? 0);
  const last = points.at(-1)?.value ?? null;
  if (points.every(({ value }) => value === null)) return <Dim>–</Dim>;
  const top = most ?? Math.max(...values, 0);
  const shown = last === null ? '–' : `${count(last)}${unit}`;
  return (
    <Group component="span" display="inline-flex" gap={6} wrap="nowrap">
      <SmallBars
        label={`${label}: ${shown} in the newest of ${points.length} runs`}
        widthPx={3}
        bars={points.map(({ version, at, value }) => ({
          key: String(version),
          title: `Version ${version}, ${absolute(at, 'local')}: ${value === null ? '–' : `${count(value)}${unit}`}`,
          parts: [
            {
              share: value === null || top <= 0 ? 0 : Math.max(0.05, Math.max(0, value) / top),
              color: stateColor('running'),
            },
          ],
        }))}
      />
      <span className="numbers">{shown}</span>
    </Group>
  );
}

/** Saves the expectation of a field, after a preview; copies it as YAML if a file defines the workflow. */
function MakeExpectation({
  workflowId,
  field,
  part,
  isFile,
}: {
  workflowId: string;
  field: string;
  part: Record<string, unknown> | undefined;
  /** Whether a file defines the workflow. */
  isFile: boolean;
}) {
  const { copied, copy } = useCopy();
  const save = useAction({
    run: async () => {
      const now = await flowhook.workflows.definition(workflowId);
      const written = JSON.parse(now.text ?? '{}') as Definition;
      const definition = merged(written, part ?? {}) as Definition;
      return flowhook.workflows.put(workflowId, definition, { ifMatch: now.etag ?? undefined });
    },
    changes: ['workflows'],
    done: () => `Runs now expect this of ${field}`,
  });
  if (part === undefined) return null;
  if (isFile) {
    return (
      <ActionButton size="compact-xs" aria-label={`Copy YAML: ${field}`} action={() => copy(yamlOf(part))}>
        {copied ? 'Copied' : 'Copy YAML'}
      </ActionButton>
    );
  }
  return (
    <ActionButton
      size="compact-xs"
      aria-label={`Expect this: ${field}`}
      action={save}
      asks={{
        title: `Expect this of ${field}?`,
        children: (
          <Stack gap="xs">
            <span>
              Runs that do not meet it are treated as <code>otherwise</code> in the definition says (default:
              refused).
            </span>
            <JsonView value={part} label="Expectation" />
          </Stack>
        ),
        verb: 'Save expectation',
      }}
    >
      Expect this
    </ActionButton>
  );
}
