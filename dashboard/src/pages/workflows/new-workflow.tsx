/** The dialog for a new workflow: a form for admin keys, and commands that create a file. */
import { Alert, Modal, Select, SimpleGrid, Stack, Tabs, Text, TextInput } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { NotFound } from '../../../../client/src/flowhook-client.ts';
import { flowhook } from '../../client.ts';
import { ActionForm, useAction } from '../../parts/action.tsx';
import { CommandLine } from '../../parts/copy.tsx';
import { Note, Prose } from '../../parts/values.tsx';
import { useSession } from '../../session.tsx';
import { type Draft, definitionFrom, ID_PATTERN } from './definition.ts';

const EMPTY: Draft = {
  id: '',
  name: '',
  type: 'http',
  url: '',
  parse: '',
  records: '',
  fields: '',
  key: '',
  mode: 'replace',
  every: '',
};

export function NewWorkflow({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const { can } = useSession();
  const isAdmin = can('admin');
  return (
    <Modal opened={isOpen} onClose={onClose} title="New workflow" size="lg">
      <Tabs defaultValue={isAdmin ? 'here' : 'file'}>
        <Tabs.List mb="md">
          <Tabs.Tab value="here">Create here</Tabs.Tab>
          <Tabs.Tab value="file">Create a file</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="here">
          {isAdmin ? (
            <DraftForm onClose={onClose} />
          ) : (
            <Note>
              Your key lacks the scope <b>admin</b>. Sign in with a key that has it, or create a file.
            </Note>
          )}
        </Tabs.Panel>
        <Tabs.Panel value="file">
          <ByFile />
        </Tabs.Panel>
      </Tabs>
    </Modal>
  );
}

function ByFile() {
  const { team } = useSession();
  return (
    <Stack gap="sm">
      <Text size="sm">
        Workflows that run a program or TypeScript code are files in the workflows directory of the service,
        in the team's folder <b>{team.slug}</b>. Run these commands on the server.
      </Text>
      <Text size="xs" c="dimmed">
        Create a file
      </Text>
      <CommandLine
        command={`npx flowhook workflows new https://example.com/people --out workflows/${team.slug}/people.yaml`}
      />
      <Text size="xs" c="dimmed">
        Check it, and test it without publishing anything
      </Text>
      <CommandLine
        command={`npx flowhook workflows validate\nnpx flowhook workflows test workflows/${team.slug}/people.yaml`}
      />
      <Text size="xs" c="dimmed">
        Apply it
      </Text>
      <CommandLine command="npx flowhook apply" />
    </Stack>
  );
}

function DraftForm({ onClose }: { onClose: () => void }) {
  const [draft, setDraft] = useState(EMPTY);
  const navigate = useNavigate();
  const set = (change: Partial<Draft>) => setDraft((before) => ({ ...before, ...change }));
  const create = useAction({
    run: async () => {
      const id = draft.id.trim();
      if (await exists(id))
        throw new Error(`A workflow with the id ${id} already exists. Choose another id.`);
      return flowhook.workflows.put(id, definitionFrom(draft));
    },
    changes: ['workflows'],
    isErrorShown: true,
    done: ({ name }) => `${name} was created`,
    onDone: ({ id }) => {
      onClose();
      void navigate({ to: '/workflows/$workflowId/data', params: { workflowId: id } });
    },
  });
  const text = (name: Exclude<keyof Draft, 'type' | 'mode' | 'parse'>) => ({
    value: draft[name],
    onChange: (event: { currentTarget: { value: string } }) => set({ [name]: event.currentTarget.value }),
  });
  return (
    <ActionForm action={create} verb="Create workflow" onBack={onClose}>
      {create.error !== null && (
        <Alert color="red" role="alert" title="The workflow was not created">
          <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
            <Prose text={create.error.message} />
          </Text>
        </Alert>
      )}
      <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="md" verticalSpacing="sm">
        <TextInput
          label="Id"
          description="Part of its URLs. Cannot be changed later."
          placeholder="people"
          data-autofocus
          required
          maxLength={200}
          pattern={ID_PATTERN}
          title="An id without slashes, other than . and .."
          {...text('id')}
        />
        <TextInput label="Name" description="Default: the id" placeholder="People" {...text('name')} />
      </SimpleGrid>
      <Select
        label="Source"
        data={[
          { value: 'http', label: 'A URL: JSON, CSV, HTML or XML' },
          { value: 'push', label: 'Records pushed over the API' },
        ]}
        value={draft.type}
        onChange={(value) => set({ type: value === 'http' ? 'http' : 'push' })}
        allowDeselect={false}
      />
      {draft.type === 'http' && (
        <>
          <TextInput
            label="URL"
            type="url"
            placeholder="https://example.com/people.json"
            required
            pattern="https?://.+"
            title="A URL that starts with http:// or https://"
            {...text('url')}
          />
          <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="md" verticalSpacing="sm">
            <Select
              label="Format"
              description="Default: detected"
              placeholder="Detect"
              data={['json', 'ndjson', 'csv', 'html', 'xml']}
              value={draft.parse === '' ? null : draft.parse}
              onChange={(value) => set({ parse: value ?? '' })}
              clearable
            />
            <TextInput
              label="Records"
              description="Where they are in the response"
              placeholder="$.data.items"
              {...text('records')}
            />
          </SimpleGrid>
          <TextInput
            label="Fields"
            description="Comma-separated, each with the path of its value"
            placeholder="id = $.contact_id, name = $.title"
            {...text('fields')}
          />
          <TextInput
            label="Schedule"
            description="How often it runs. Default: only on request"
            placeholder="15m"
            pattern="\d+(ms|s|m|h|d)"
            title="A duration, such as 30s, 15m or 2h"
            {...text('every')}
          />
        </>
      )}
      <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="md" verticalSpacing="sm">
        <TextInput
          label="Key"
          description="Fields that identify a record"
          placeholder="email"
          {...text('key')}
        />
        <Select
          label="Mode"
          description="What happens to existing records"
          data={[
            { value: 'replace', label: 'Replace: remove missing records' },
            { value: 'upsert', label: 'Upsert: keep missing records' },
            { value: 'append', label: 'Append: only add new records' },
          ]}
          value={draft.mode}
          onChange={(value) => set({ mode: (value ?? 'replace') as Draft['mode'] })}
          allowDeselect={false}
        />
      </SimpleGrid>
    </ActionForm>
  );
}

/** `put` would change an existing workflow, which a form for new ones must not do. */
async function exists(workflowId: string): Promise<boolean> {
  try {
    await flowhook.workflows.get(workflowId);
    return true;
  } catch (error) {
    if (error instanceof NotFound) return false;
    throw error;
  }
}
