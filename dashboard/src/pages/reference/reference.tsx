/** The API: every operation, what it takes and answers, and a way to try those that only read. */
import { Anchor, Group, Stack, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { serviceUrl } from '../../client.ts';
import { Copy } from '../../parts/copy.tsx';
import { EmptyState } from '../../parts/empty-state.tsx';
import { ErrorBox } from '../../parts/error-box.tsx';
import { FilterBar } from '../../parts/filter-bar.tsx';
import { useFilters } from '../../parts/filters.ts';
import { PageHeader } from '../../parts/page-header.tsx';
import { many } from '../../parts/quantity.ts';
import { referenceQuery } from '../../queries/reference.ts';
import { OperationItem } from './operation.tsx';
import { groupsOf } from './operations.ts';
import styles from './reference.module.css';
import { Waiting } from './waiting.tsx';

export function ReferencePage() {
  return (
    <>
      <PageHeader
        title="API reference"
        meta={
          <Group gap={2} wrap="nowrap">
            <Text span size="sm" ff="monospace" c="dimmed">
              {serviceUrl}
            </Text>
            <Copy value={serviceUrl} label="Copy the address" />
          </Group>
        }
        description={
          <>
            Every call carries a key: <code>x-api-key: …</code>. A mistake is answered with{' '}
            <code>{'{"error": "…"}'}</code>, its code in <code>x-error-code</code>, and{' '}
            <code>x-request-id</code> to find it by in the log.
          </>
        }
        actions={
          <Group gap="md" fz="sm">
            <Anchor inherit href="/openapi.json" download="openapi.json">
              openapi.json
            </Anchor>
            <Anchor inherit href="/openapi.yaml" download="openapi.yaml">
              openapi.yaml
            </Anchor>
            <Anchor inherit href="/docs">
              On one page
            </Anchor>
            <Anchor inherit href="/docs/guide/">
              Guide
            </Anchor>
          </Group>
        }
      />
      <Operations />
    </>
  );
}

function Operations() {
  const { data: document, error, refetch } = useQuery(referenceQuery());
  const filters = useFilters('q');
  const opened = useFilters('open');
  if (document === undefined) {
    return error === null ? (
      <Waiting />
    ) : (
      <ErrorBox error={error} title="The description could not be read" onRetry={() => void refetch()} />
    );
  }
  const groups = groupsOf(document, filters.values.q);
  const total = groups.reduce((sum, { operations }) => sum + operations.length, 0);
  return (
    <>
      <FilterBar filters={filters} fields={[{ kind: 'search', name: 'q', label: 'Search the operations' }]}>
        <Text size="xs" c="dimmed" className="numbers" role="status">
          {many(total, 'operation')}
        </Text>
      </FilterBar>
      {groups.length === 0 && (
        <EmptyState title="No operation matches" onClear={filters.clear}>
          Every word is looked for in names, paths and sentences.
        </EmptyState>
      )}
      <Stack gap="xl">
        {groups.map(({ name, operations }) => (
          <section key={name} aria-label={name}>
            <Title order={2} size="h4" mb="xs">
              {name}
            </Title>
            <ul className={styles.list}>
              {operations.map((operation) => {
                const { operationId } = operation;
                const isOpen = opened.values.open === operationId;
                return (
                  <li key={operationId} className={styles.item}>
                    <OperationItem
                      operation={operation}
                      schemas={document.components.schemas}
                      isOpen={isOpen}
                      onToggle={() => opened.set({ open: isOpen ? undefined : operationId })}
                    />
                  </li>
                );
              })}
            </ul>
          </section>
        ))}
      </Stack>
    </>
  );
}
