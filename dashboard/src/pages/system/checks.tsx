/** The findings of the doctor's checks, those that need attention first. */
import { Anchor, Button, Group, Skeleton, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useId, useState } from 'react';
import type { SystemFinding } from '../../../../client/src/flowhook-client.ts';
import { ActionButton } from '../../parts/action.tsx';
import { ErrorBox, Section } from '../../parts/page.tsx';
import { StateBadge } from '../../parts/state-badge.tsx';
import { Note, Prose, Time } from '../../parts/values.tsx';
import { systemChecksQuery } from '../../queries/team.ts';
import styles from './checks.module.css';

const STATES = { ok: 'active', warning: 'failing', error: 'failed', skipped: 'absent' } as const;
const LABELS = { ok: 'OK', warning: 'Warning', error: 'Error', skipped: 'Skipped' };

export function Checks() {
  const { data, error, isFetching, refetch } = useQuery(systemChecksQuery());
  const [isWhole, setWhole] = useState(false);
  const rest = useId();
  const again = (
    <Button size="compact-sm" variant="default" loading={isFetching} onClick={() => void refetch()}>
      Check again
    </Button>
  );
  if (data === undefined) {
    return (
      <Section title="Checks">
        {error === null ? (
          <Skeleton h={84} aria-busy="true" />
        ) : (
          <ErrorBox error={error} onRetry={() => void refetch()} />
        )}
      </Section>
    );
  }
  const withStatus = (status: SystemFinding['status']) =>
    data.findings.filter((finding) => finding.status === status);
  const problems = [...withStatus('error'), ...withStatus('warning')];
  const [passed, skipped] = [withStatus('ok'), withStatus('skipped')];
  return (
    <Section title="Checks" actions={again}>
      <Stack gap="md">
        {problems.length === 0 ? (
          <StateBadge state="active" label="Nothing needs attention" />
        ) : (
          <Findings label="Needs attention" findings={problems} />
        )}
        <Group gap="sm" justify="space-between">
          <Text size="sm" c="dimmed" className="numbers">
            {passed.length} passed, {skipped.length} skipped. Checked <Time at={data.examinedAt} as="at" />
          </Text>
          <ActionButton
            variant="subtle"
            action={() => setWhole(!isWhole)}
            size="compact-sm"
            aria-expanded={isWhole}
            aria-controls={isWhole ? rest : undefined}
            label={isWhole ? 'Show less' : 'Show all checks'}
          />
        </Group>
        {isWhole && (
          <div id={rest}>
            <Findings label="All other checks" findings={[...passed, ...skipped]} />
          </div>
        )}
        <Note>
          <code>npx flowhook doctor</code> runs the same checks in a shell, even if the service does not
          start. Add <code>--full</code> to read the whole database, and <code>--online</code> to test
          outgoing connections. See also{' '}
          <Anchor inherit href="/docs/guide/operate/backup.html" underline="always">
            backups
          </Anchor>
          .
        </Note>
      </Stack>
    </Section>
  );
}

function Findings({ label, findings }: { label: string; findings: readonly SystemFinding[] }) {
  return (
    <ul className={styles.findings} aria-label={label}>
      {findings.map((finding) => (
        <li key={finding.check} className={styles.finding}>
          <Finding finding={finding} />
        </li>
      ))}
    </ul>
  );
}

function Finding({ finding: { check, status, what, why, fix } }: { finding: SystemFinding }) {
  return (
    <Stack gap={2}>
      <Group gap="sm">
        <Text span size="sm" fw={500}>
          {checkTitle(check)}
        </Text>
        <Text span size="sm">
          <StateBadge state={STATES[status]} label={LABELS[status]} />
        </Text>
      </Group>
      <Text size="sm">
        <Prose text={what} />
      </Text>
      {why !== null && (
        <Note>
          <Prose text={why} />
        </Note>
      )}
      {fix !== null && (
        <Text size="sm">
          <Text span inherit fw={500}>
            Fix:{' '}
          </Text>
          <Prose text={fix} />
        </Text>
      )}
    </Stack>
  );
}

/** `disk-space-data` → `Disk space data`. */
function checkTitle(check: string): string {
  const words = check.replaceAll('-', ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}
