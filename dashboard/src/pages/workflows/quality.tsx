/** The quality of a workflow's records: findings of the newest runs, and what each field looked like over versions. */
import { Group, Skeleton, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import type { Definition, Profile, ProfileField } from '../../../../client/src/flowhook-client.ts';
import { flowhook } from '../../client.ts';
import { ActionButton, useAction } from '../../parts/action.tsx';
import { SmallBars } from '../../parts/charts.tsx';
import { JsonView } from '../../parts/code.tsx';
import { column } from '../../parts/columns.tsx';
import { CopyAsCurl, useCopy } from '../../parts/copy.tsx';
import { DataTable } from '../../parts/data-table.tsx';
import { absolute, count, many } from '../../parts/format.ts';
import { Loaded } from '../../parts/loaded.tsx';
import { EmptyState, PageLink, Section } from '../../parts/page.tsx';
import type { Column } from '../../parts/rows.tsx';
import { stateColor } from '../../parts/state-badge.tsx';
import { Dim, Note, Time } from '../../parts/values.tsx';
import { jobList } from '../../queries/jobs.ts';
import { listOf, useList } from '../../queries/list.ts';
import { definitionQuery, profileQuery } from '../../queries/workflows.ts';
import { useSession } from '../../session.tsx';
import { Findings } from '../runs/findings.tsx';
import { type Point, pointsOf, rangeWords, withExpectation, yamlOf } from './quality.ts';

export function QualityTab() {
  const { workflowId } = useParams({ from: '/workflows/$workflowId' });
  return (
    <Stack gap="lg">
      <RecentFindings workflowId={workflowId} />
      <Section
        title="Fields"
        isBare
        actions={<CopyAsCurl path={`/v1/workflows/${encodeURIComponent(workflowId)}/profile`} />}
      >
        <Loaded query={profileQuery(workflowId)}>
          {({ profiles, expect }) => <Fields workflowId={workflowId} profiles={profiles} expect={expect} />}
        </Loaded>
      </Section>
    </Stack>
  );
}

/** How many of the newest runs are searched for findings. */
const RUNS = 10;

function RecentFindings({ workflowId }: { workflowId: string }) {
  const list = useList(jobList({ workflowId }));
  const runs = list.rows.slice(0, RUNS);
  const found = runs.filter(({ findings }) => (findings?.length ?? 0) > 0);
  if (list.isLoading) return <Skeleton h={60} aria-label="Loading" />;
  return (
    <Section title="Findings of the newest runs" isBare>
      {found.length === 0 ? (
        <Note>
          {runs.length === 0 ? 'Nothing has run yet.' : `None in the newest ${many(runs.length, 'run')}.`}
        </Note>
      ) : (
        <Stack gap="sm">
          {found.map((job) => (
            <Stack key={job.id} gap={4}>
              <PageLink to="/runs/$jobId" params={{ jobId: job.id }} fz="sm">
                Run <Time at={job.finishedAt ?? job.queuedAt} as="at" />
              </PageLink>
              <Findings job={job} />
            </Stack>
          ))}
        </Stack>
      )}
    </Section>
  );
}

const PLOTS = [
  { measure: 'filled', header: 'Filled', unit: ' %', most: 100 },
  { measure: 'distinct', header: 'Different values', unit: '', most: undefined },
  { measure: 'largest', header: 'Largest', unit: '', most: undefined },
] as const;

function Fields(props: {
  workflowId: string;
  profiles: readonly Profile[];
  expect: Record<string, unknown>;
}) {
  const { workflowId, profiles, expect } = props;
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
    column('Field', '130px', ({ name }) => <span title={name}>{name}</span>),
    ...PLOTS.map(
      ({ measure, header, unit, most }): Column<ProfileField> => ({
        id: measure,
        header,
        width: 'fits',
        cell: ({ name }) => (
          <Plot
            label={`${header}, ${name}`}
            points={pointsOf(profiles, name, measure)}
            unit={unit}
            most={most}
          />
        ),
      }),
    ),
    column('Range', '170px', (field) => rangeWords(field)),
    column('Types', '120px', ({ kinds }) => (
      <span title={Object.keys(kinds).join(', ')}>{Object.keys(kinds).join(', ')}</span>
    )),
    definition !== undefined &&
      column('Expectation', 'fits', ({ name }) => (
        <MakeExpectation
          workflowId={workflowId}
          field={name}
          suggested={Object.entries(expect.fields ?? {}).find(([field]) => field === name)?.[1]}
          isFile={definition.origin === 'file'}
        />
      )),
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
function Plot(props: { label: string; points: readonly Point[]; unit: string; most: number | undefined }) {
  const { label, points, unit, most } = props;
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
function MakeExpectation(props: {
  workflowId: string;
  field: string;
  /** What the newest runs suggest, if anything. */
  suggested: object | undefined;
  /** Whether a file defines the workflow. */
  isFile: boolean;
}) {
  const { workflowId, field, suggested, isFile } = props;
  const { copied, copy } = useCopy();
  const save = useAction({
    run: async () => {
      const now = await flowhook.workflows.definition(workflowId);
      const definition = withExpectation(JSON.parse(now.text ?? '{}'), field, suggested ?? {}) as Definition;
      return flowhook.workflows.put(workflowId, definition, { ifMatch: now.etag ?? undefined });
    },
    changes: ['workflows'],
    done: () => `Runs now expect this of ${field}`,
  });
  if (suggested === undefined) return null;
  if (isFile) {
    return (
      <ActionButton
        size="compact-xs"
        aria-label={`Copy YAML: ${field}`}
        title="The expectation that the newest runs suggest, for the file of the workflow"
        action={() => copy(yamlOf(field, suggested))}
        label={copied ? 'Copied' : 'Copy YAML'}
      />
    );
  }
  return (
    <ActionButton
      size="compact-xs"
      aria-label={`Expect this: ${field}`}
      title="Previews the expectation that the newest runs suggest"
      action={save}
      asks={{
        title: `Expect this of ${field}?`,
        children: (
          <Stack gap="xs">
            <span>
              Runs that do not meet it are treated as <code>otherwise</code> in the definition says (default:
              refused).
            </span>
            <JsonView value={suggested} label="Expectation" />
          </Stack>
        ),
        verb: 'Save expectation',
      }}
      label="Expect this"
    />
  );
}
