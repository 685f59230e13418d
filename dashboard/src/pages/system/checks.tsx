/** What is wrong with the installation, what comes of it and what to do: needs attention first. */
import { Anchor, Button, Group, Skeleton, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { SystemFinding } from 'flowhook-client';
import { useId, useState } from 'react';
import { ActionButton } from '../../parts/action.tsx';
import { ErrorBox, Section } from '../../parts/page.tsx';
import { StateBadge } from '../../parts/state-badge.tsx';
import { Prose, Time } from '../../parts/values.tsx';
import { systemChecksQuery } from '../../queries/team.ts';
import styles from './checks.module.css';
import { checkTitle, sortFindings } from './findings.ts';

const STATES = { ok: 'active', warning: 'failing', error: 'failed', skipped: 'absent' } as const;
const LABELS = { ok: 'fine', warning: 'warning', error: 'error', skipped: 'not checked' };

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
  const { troubles, fine, skipped } = sortFindings(data.findings);
  return (
    <Section title="Checks" actions={again}>
      <Stack gap="md">
        {troubles.length === 0 ? (
          <StateBadge state="active" label="Nothing needs attention" />
        ) : (
          <Findings label="Needs attention" findings={troubles} />
        )}
        <Group gap="sm" justify="space-between">
          <Text size="sm" c="dimmed" className="numbers">
            {fine.length} fine, {skipped.length} skipped; checked at <Time at={data.examinedAt} />
          </Text>
          <ActionButton
            variant="subtle"
            action={() => setWhole(!isWhole)}
            size="compact-sm"
            aria-expanded={isWhole}
            aria-controls={isWhole ? rest : undefined}
          >
            {isWhole ? 'Show less' : 'Show all checks'}
          </ActionButton>
        </Group>
        {isWhole && (
          <div id={rest}>
            <Findings label="All other checks" findings={[...fine, ...skipped]} />
          </div>
        )}
        <Text size="sm" c="dimmed">
          <code>npx flowhook doctor</code> runs the same checks from a shell, even if the service does not
          start; <code>--full</code> reads the whole database, <code>--online</code> tests outgoing
          connections. The{' '}
          <Anchor inherit href="/docs/guide/operate/backup.html" underline="always">
            guide
          </Anchor>{' '}
          has the commands for backups.
        </Text>
      </Stack>
    </Section>
  );
}

function Findings({ label, findings }: { label: string; findings: readonly SystemFinding[] }) {
  return (
    <ul className={styles.findings} aria-label={label}>
      {findings.map((finding) => (
        <li key={finding.check} className={styles.finding}>
          <One finding={finding} />
        </li>
      ))}
    </ul>
  );
}

function One({ finding: { check, status, what, why, fix } }: { finding: SystemFinding }) {
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
        <Text size="sm" c="dimmed">
          <Prose text={why} />
        </Text>
      )}
      {fix !== null && (
        <Text size="sm">
          <Text span inherit fw={500}>
            What to do:{' '}
          </Text>
          <Prose text={fix} />
        </Text>
      )}
    </Stack>
  );
}
