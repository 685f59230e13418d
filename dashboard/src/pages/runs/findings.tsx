/** What a run did not meet: expectations of the workflow, and unusual differences from earlier runs. */
import { Alert, List, Text } from '@mantine/core';
import type { Job, JobFinding } from '../../../../client/src/flowhook-client.ts';
import { count, many } from '../../parts/format.ts';
import { Icon } from '../../parts/icon.tsx';
import { PageLink } from '../../parts/page.tsx';
import { tone } from '../../parts/state-badge.tsx';
import { Prose } from '../../parts/values.tsx';

export function Findings({ job }: { job: Job }) {
  const { findings, state } = job;
  if (findings === null || findings.length === 0) return null;
  return (
    <Alert
      color={state === 'failed' ? 'red' : 'orange'}
      icon={<Icon name="warning" />}
      title={many(findings.length, 'finding')}
    >
      <FindingList job={job} />
    </Alert>
  );
}

/** Whether the error of a run consists of its findings, which are then shown as a list instead. */
export function isOfFindings({ error, findings }: Job): boolean {
  const first = findings?.[0];
  return first !== undefined && error?.includes(first.message) === true;
}

export function FindingList({ job }: { job: Job }) {
  return (
    <List size="sm" spacing={4}>
      {job.findings?.map((finding) => (
        <List.Item
          key={`${finding.drift} ${finding.expectation} ${finding.field}`}
          style={{ overflowWrap: 'anywhere' }}
        >
          <Prose text={finding.message} />
          <Examples job={job} finding={finding} />
        </List.Item>
      ))}
    </List>
  );
}

/** Links to the records that were published or set aside. */
function Examples(props: { job: Job; finding: JobFinding }) {
  const { workflowId, state, quarantined } = props.job;
  const { examples, expectation } = props.finding;
  if (state !== 'finished' || examples.length === 0) return null;
  const isAside = (quarantined ?? 0) > 0 && expectation !== 'filled';
  return (
    <>
      . {isAside ? 'In the quarantine' : 'Records'}:{' '}
      {examples.map((id, index) => (
        <span key={id} style={{ display: 'inline-block', marginInlineEnd: 4 }}>
          <PageLink
            to={isAside ? '/workflows/$workflowId/quarantine' : '/workflows/$workflowId/data'}
            params={{ workflowId }}
            search={isAside ? { record: id } : { record: id, show: 'history' }}
            underline="always"
            c="inherit"
            title={id}
            truncate
            display="inline-block"
            maw="24ch"
            style={{ verticalAlign: 'bottom' }}
          >
            {id}
          </PageLink>
          {index < examples.length - 1 && ','}
        </span>
      ))}
    </>
  );
}

/** The numbers of findings and of records set aside, in a row of a list. Nothing if there are none. */
export function Remarks({ job: { id, workflowId, findings, quarantined } }: { job: Job }) {
  const aside = quarantined ?? 0;
  const found = findings?.length ?? 0;
  if (aside === 0 && found === 0) return null;
  return (
    <Text span size="xs" c={tone('changed')} style={{ whiteSpace: 'nowrap' }}>
      {found > 0 && (
        <PageLink to="/runs/$jobId" params={{ jobId: id }} c="inherit">
          {many(found, 'finding')}
        </PageLink>
      )}
      {found > 0 && aside > 0 && ', '}
      {aside > 0 && (
        <PageLink to="/workflows/$workflowId/quarantine" params={{ workflowId }} c="inherit">
          {count(aside)} set aside
        </PageLink>
      )}
    </Text>
  );
}
