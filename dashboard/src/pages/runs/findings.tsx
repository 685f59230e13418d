/** What a run did not meet: expectations of the workflow, and unusual differences from earlier runs. */
import { Alert, List, Text } from '@mantine/core';
import type { Job, JobFinding } from '../../../../client/src/flowhook-client.ts';
import { count, many } from '../../parts/format.ts';
import { Icon } from '../../parts/icon.tsx';
import { PageLink } from '../../parts/page.tsx';
import { tone } from '../../parts/state-badge.tsx';

export function Findings({ job: { workflowId, findings, state } }: { job: Job }) {
  // The error of a failed run already names what it did not meet.
  if (findings === null || findings.length === 0) return null;
  return (
    <Alert
      color={state === 'failed' ? 'red' : 'orange'}
      icon={<Icon name="warning" />}
      title={many(findings.length, 'finding')}
    >
      <List size="sm" spacing={4}>
        {findings.map((finding) => (
          <List.Item key={`${finding.drift} ${finding.expectation} ${finding.field}`}>
            <Finding workflowId={workflowId} finding={finding} />
          </List.Item>
        ))}
      </List>
    </Alert>
  );
}

function Finding({
  workflowId,
  finding: { expectation, field, found, limit, count: records, examples, drift },
}: {
  workflowId: string;
  finding: JobFinding;
}) {
  return (
    <span style={{ overflowWrap: 'anywhere' }}>
      <b>{field === null ? expectation : `${field}: ${expectation}`}</b>{' '}
      {found !== null && <>is {String(found)}, </>}
      {limit !== null && (
        <>
          {drift ? 'usually' : 'expected'} {String(limit)},{' '}
        </>
      )}
      {many(records, 'record')}
      {examples.length > 0 && (
        <>
          , such as{' '}
          {examples.map((id, index) => (
            <span key={id}>
              {index > 0 && ', '}
              <PageLink
                to="/workflows/$workflowId/data"
                params={{ workflowId }}
                search={{ record: id, show: 'history' }}
                underline="always"
                c="inherit"
              >
                {id}
              </PageLink>
            </span>
          ))}
        </>
      )}
    </span>
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
