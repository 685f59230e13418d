/** Every event type: when it is sent, an example, and the JSON Schema of its body. */
import { Accordion, Group, Loader, SegmentedControl, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { EventKind } from '../../../../client/src/flowhook-client.ts';
import { JsonView } from '../../parts/code.tsx';
import { CopyAsCurl } from '../../parts/copy.tsx';
import { useFilters } from '../../parts/filters.ts';
import { ErrorBox, PageHeader, PageLink } from '../../parts/page.tsx';
import { PageTabs } from '../../parts/page-tabs.tsx';
import { Note, Prose } from '../../parts/values.tsx';
import { eventTypesQuery } from '../../queries/events.ts';

export function CatalogPage() {
  const { data: kinds, error, refetch } = useQuery(eventTypesQuery());
  const filters = useFilters('type');
  return (
    <>
      <PageHeader title="Events" actions={<CopyAsCurl path="/v1/events/types" />} />
      <PageTabs of="Events" shown="Catalog" />
      {error !== null && <ErrorBox error={error} onRetry={() => void refetch()} />}
      {kinds === undefined && error === null && <Loader aria-label="Loading" size="sm" m="xl" />}
      <Accordion
        variant="contained"
        chevronPosition="left"
        order={2}
        value={filters.values.type ?? null}
        onChange={(value) => filters.set({ type: value ?? undefined })}
      >
        {kinds?.map((kind) => (
          <Accordion.Item key={kind.type} value={kind.type}>
            <Accordion.Control>
              <Stack gap={2}>
                <Text span size="sm" fw={600}>
                  {kind.type}
                </Text>
                <Text span size="sm" c="dimmed">
                  <Prose text={kind.description} />
                </Text>
              </Stack>
            </Accordion.Control>
            <Accordion.Panel>{filters.values.type === kind.type && <Kind kind={kind} />}</Accordion.Panel>
          </Accordion.Item>
        ))}
      </Accordion>
    </>
  );
}

function Kind({ kind: { type, aliases, schema, example } }: { kind: EventKind }) {
  const [shown, setShown] = useState('example');
  return (
    <Stack gap="sm">
      <Group justify="space-between">
        <SegmentedControl
          aria-label={`View of ${type}`}
          data={[
            { value: 'example', label: 'Example' },
            { value: 'schema', label: 'JSON Schema' },
          ]}
          value={shown}
          onChange={setShown}
        />
        <Text size="sm">
          <PageLink to="/events" search={{ type }}>
            Events of this type
          </PageLink>
        </Text>
      </Group>
      {aliases.length > 0 && (
        <Note>
          Subscriptions also accept the {aliases.length === 1 ? 'alias' : 'aliases'} {aliases.join(', ')}.
        </Note>
      )}
      <JsonView
        value={shown === 'schema' ? schema : example}
        label={shown === 'schema' ? `JSON Schema of ${type}` : `Example of ${type}`}
        maxHeight="560px"
      />
    </Stack>
  );
}
