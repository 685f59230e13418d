/** The definition of a workflow, as written and with defaults. Definitions from the API can be edited here. */
import { Alert, Group, SegmentedControl, Stack, Text, Textarea, Title } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { useBlocker, useNavigate, useParams } from '@tanstack/react-router';
import { useState } from 'react';
import {
  Conflict,
  type Definition,
  type WorkflowDefinition,
} from '../../../../client/src/flowhook-client.ts';
import { flowhook } from '../../client.ts';
import { ActionButton, useAction } from '../../parts/action.tsx';
import codeStyles from '../../parts/code.module.css';
import { JsonView, SourceText } from '../../parts/code.tsx';
import { CommandLine } from '../../parts/copy.tsx';
import { useFilters } from '../../parts/filters.ts';
import { Icon } from '../../parts/icon.tsx';
import { Loaded } from '../../parts/loaded.tsx';
import { EmptyState } from '../../parts/page.tsx';
import { tone } from '../../parts/state-badge.tsx';
import { Note, Prose } from '../../parts/values.tsx';
import { ask, queryClient } from '../../queries/list.ts';
import { definitionQuery } from '../../queries/workflows.ts';
import styles from './definition.module.css';
import { lineDiff, parsedDefinition } from './definition.ts';

export function DefinitionTab() {
  const { workflowId } = useParams({ from: '/workflows/$workflowId' });
  return (
    <Loaded key={workflowId} query={definitionQuery(workflowId)} scope="admin" what="definitions">
      {(data) => <Shown workflowId={workflowId} data={data} />}
    </Loaded>
  );
}

function Shown({ workflowId, data }: { workflowId: string; data: WorkflowDefinition }) {
  const { values, set } = useFilters('as');
  const isWritten = values.as !== 'defaults';
  return (
    <Stack gap="sm" maw={960}>
      <Group justify="space-between" gap="sm">
        <SegmentedControl
          aria-label="View"
          data={[
            { value: 'written', label: 'As written' },
            { value: 'defaults', label: 'With defaults' },
          ]}
          value={isWritten ? 'written' : 'defaults'}
          onChange={(value) => set({ as: value === 'defaults' ? value : undefined })}
        />
        <Note>{data.origin === 'file' ? <code>{data.file}</code> : 'Created over the API'}</Note>
      </Group>
      {isWritten ? (
        <Written workflowId={workflowId} data={data} />
      ) : (
        <JsonView value={data.definition} label="Definition with defaults" maxHeight="70vh" />
      )}
    </Stack>
  );
}

function Written({ workflowId, data }: { workflowId: string; data: WorkflowDefinition }) {
  const { origin, file, text, applied } = data;
  if (origin === 'api') return <DefinitionEditor workflowId={workflowId} data={data} />;
  if (text === null) {
    return (
      <EmptyState title={`This server cannot read the file ${file}`}>
        The applied definition stays in use. “With defaults” shows it.
      </EmptyState>
    );
  }
  return (
    <>
      {applied === false && (
        <Alert
          color="orange"
          icon={<Icon name="warning" />}
          title="The file has changes that are not applied yet"
        >
          <Stack gap="xs">
            <Text size="sm">“With defaults” shows the definition in use. To apply the file:</Text>
            <CommandLine command="npx flowhook workflows validate && npx flowhook apply" />
          </Stack>
        </Alert>
      )}
      <SourceText
        text={text}
        language={file?.endsWith('.mts') ? 'typescript' : 'yaml'}
        label={`File ${file}`}
      />
      <Text size="xs" c="dimmed">
        To change this workflow, edit its file in the workflows directory.
      </Text>
    </>
  );
}

const CHECK_MS = 400;

/** The service's check of an edited definition, which changes nothing. */
const checkQuery = (workflowId: string, text: string) =>
  ask(
    ['definition check', workflowId, text],
    async (signal): Promise<string | null> => {
      const parsed = parsedDefinition(text);
      if ('mistake' in parsed) return parsed.mistake;
      try {
        await flowhook.workflows.check(workflowId, parsed.definition as Definition, { signal });
        return null;
      } catch (error) {
        // Other errors mean that the check itself failed.
        if (isMistake(error)) return (error as Error).message;
        throw error;
      }
    },
    { staleTime: 'static', gcTime: 10_000 },
  );

/** Edits the definition of a workflow that was created over the API, with a live check and a diff. */
function DefinitionEditor({ workflowId, data }: { workflowId: string; data: WorkflowDefinition }) {
  const [saved, setSaved] = useState(data);
  const [edited, setEdited] = useState<string | null>(null);
  const text = saved.text ?? '';
  const isChanged = edited !== null && edited.trimEnd() !== text.trimEnd();
  useBlocker({
    shouldBlockFn: () => isChanged && !window.confirm('Discard your changes to the definition?'),
    enableBeforeUnload: isChanged,
  });
  const [settled] = useDebouncedValue(edited ?? text, CHECK_MS);
  const check = useQuery({ ...checkQuery(workflowId, settled), enabled: isChanged });
  const save = useAction({
    run: async () => {
      const parsed = parsedDefinition(edited ?? '');
      if ('mistake' in parsed) throw new Error(parsed.mistake);
      await flowhook.workflows.put(workflowId, parsed.definition as Definition, {
        ifMatch: saved.etag ?? undefined,
      });
      return await flowhook.workflows.definition(workflowId);
    },
    changes: ['workflows'],
    done: () => 'Saved. The next run uses this definition.',
    onDone: (now) => {
      queryClient.setQueryData(definitionQuery(workflowId).queryKey, now);
      setSaved(now);
      setEdited(null);
    },
  });
  const isStale = save.error instanceof Conflict && save.error.status === 412;
  if (edited === null) {
    return (
      <Stack gap="sm">
        <SourceText text={text} language="json" label="Definition" />
        <Group gap="xs">
          <ActionButton action={() => setEdited(text)} label="Edit" />
          <Archive workflowId={workflowId} />
        </Group>
      </Stack>
    );
  }
  const isChecked = settled === edited && check.data !== undefined;
  const [color, status] = !isChanged
    ? ['dimmed', 'No changes yet']
    : check.error !== null
      ? [tone('bad'), `The check failed: ${check.error.message}`]
      : !isChecked
        ? ['dimmed', 'Checking…']
        : check.data === null
          ? [tone('good'), 'Valid']
          : [tone('bad'), check.data];
  return (
    <Stack gap="sm">
      <Textarea
        aria-label="Definition (JSON)"
        value={edited}
        onChange={(event) => setEdited(event.currentTarget.value)}
        autosize
        minRows={10}
        maxRows={28}
        spellCheck={false}
        styles={{
          input: { fontFamily: 'var(--mantine-font-family-monospace)', color: 'var(--mantine-color-text)' },
        }}
        error={isChanged && isChecked && check.data !== null}
        data-autofocus
      />
      <Text size="sm" role="status" c={color} style={{ overflowWrap: 'anywhere' }}>
        <Prose text={status} />
      </Text>
      {isStale && (
        <Alert color="orange" icon={<Icon name="warning" />} title="Someone else changed this definition">
          Copy your text, then reload the page to start from the current definition.
        </Alert>
      )}
      <Group gap="xs">
        <ActionButton
          isMain
          action={save}
          disabled={!isChanged || !isChecked || check.data !== null}
          label="Save"
        />
        <ActionButton action={() => setEdited(null)} label={isChanged ? 'Discard' : 'Cancel'} />
      </Group>
      {isChanged && (
        <section>
          <Title order={2} size="h4" mb="xs">
            Your changes
          </Title>
          <DiffView before={text} after={edited} />
        </section>
      )}
    </Stack>
  );
}

function Archive({ workflowId }: { workflowId: string }) {
  const navigate = useNavigate();
  const archive = useAction({
    run: () => flowhook.workflows.delete(workflowId),
    done: ({ message }) => message,
    onDone: () => void navigate({ to: '/workflows' }),
  });
  return (
    <ActionButton
      action={archive}
      color="red"
      asks={{
        title: `Archive ${workflowId}?`,
        children:
          'The workflow stops running, and its records can no longer be read. Records and webhooks are kept, ' +
          'and are restored if you create the workflow again.',
        verb: 'Archive',
      }}
      label="Archive"
    />
  );
}

function isMistake(error: unknown): boolean {
  const code = (error as { code?: unknown }).code;
  return code === 'definition_invalid' || code === 'body_invalid' || code === 'body_too_large';
}

const SIGNS = { same: ' ', added: '+', removed: '−' };

function DiffView({ before, after }: { before: string; after: string }) {
  return (
    <section className={codeStyles.box} aria-label="Your changes">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard */}
      <pre className={codeStyles.text} tabIndex={0}>
        {lineDiff(before, after).map(({ kind, text }, index) => {
          const line = (
            <>
              <span className={styles.sign}>{SIGNS[kind]}</span>
              {text}
              {'\n'}
            </>
          );
          const Line = kind === 'same' ? 'span' : kind === 'added' ? 'ins' : 'del';
          return (
            // biome-ignore lint/suspicious/noArrayIndexKey: a line is its number
            <Line key={index} className={kind === 'same' ? undefined : styles[kind]}>
              {line}
            </Line>
          );
        })}
      </pre>
    </section>
  );
}
