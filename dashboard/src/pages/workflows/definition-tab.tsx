/** What the workflow is made of: as it was written, and with every default. Those of the API are changed here. */
import { Alert, Group, SegmentedControl, Skeleton, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import type { WorkflowDefinition } from 'flowhook-client';
import { CommandLine } from '../../parts/command-line.tsx';
import { EmptyState } from '../../parts/empty-state.tsx';
import { ErrorBox } from '../../parts/error-box.tsx';
import { useFilters } from '../../parts/filters.ts';
import { Icon } from '../../parts/icon.tsx';
import { JsonView } from '../../parts/json-view.tsx';
import { NeedsScope } from '../../parts/needs-scope.tsx';
import { definitionQuery } from '../../queries/definition.ts';
import { useSession } from '../../session.tsx';
import { DefinitionEditor } from './definition-editor.tsx';
import { SourceText } from './source-text.tsx';

export function DefinitionTab() {
  const { workflowId } = useParams({ from: '/workflows/$workflowId' });
  const { can } = useSession();
  if (!can('admin'))
    return <NeedsScope scope="admin" what="definitions: they may name accounts and addresses" />;
  return <Definition key={workflowId} workflowId={workflowId} />;
}

function Definition({ workflowId }: { workflowId: string }) {
  const { data, error, refetch } = useQuery(definitionQuery(workflowId));
  const { values, set } = useFilters('as');
  if (error !== null && data === undefined) return <ErrorBox error={error} onRetry={() => void refetch()} />;
  if (data === undefined) return <Skeleton h={320} aria-label="Loading" />;
  const isWritten = values.as !== 'defaults';
  return (
    <Stack gap="sm" maw={960}>
      <Group justify="space-between" gap="sm">
        <SegmentedControl
          aria-label="Shown"
          data={[
            { value: 'written', label: 'As written' },
            { value: 'defaults', label: 'With every default' },
          ]}
          value={isWritten ? 'written' : 'defaults'}
          onChange={(value) => set({ as: value === 'defaults' ? value : undefined })}
        />
        <Text size="sm" c="dimmed">
          {data.origin === 'file' ? <code>{data.file}</code> : 'Created over the API'}
        </Text>
      </Group>
      {isWritten ? (
        <Written workflowId={workflowId} data={data} />
      ) : (
        <JsonView value={data.definition} label="The definition with every default" maxHeight="70vh" />
      )}
    </Stack>
  );
}

function Written({ workflowId, data }: { workflowId: string; data: WorkflowDefinition }) {
  const { origin, file, text, applied } = data;
  if (origin === 'api') return <DefinitionEditor workflowId={workflowId} data={data} />;
  if (text === null) {
    return (
      <EmptyState title={`The file ${file} is not on this server, or cannot be read`}>
        The definition that was applied keeps running; “With every default” shows it.
      </EmptyState>
    );
  }
  return (
    <>
      {applied === false && (
        <Alert color="orange" icon={<Icon name="warning" />} title="The file is newer than what runs">
          <Stack gap="xs">
            <Text size="sm">“With every default” shows what runs. To apply the file:</Text>
            <CommandLine command="npx flowhook workflows validate && npx flowhook apply" />
          </Stack>
        </Alert>
      )}
      <SourceText
        text={text}
        language={file?.endsWith('.mts') ? 'typescript' : 'yaml'}
        label={`The file ${file}`}
      />
      <Text size="xs" c="dimmed">
        To change it, edit its file in the workflows directory, where changes can be reviewed and reverted.
      </Text>
    </>
  );
}
