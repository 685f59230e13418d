/** The dialog for a new workflow: as a file, from a shell, or, with an admin key, by a form. */
import { Alert, Modal, Select, SimpleGrid, Stack, Tabs, Text, TextInput } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { flowhook } from '../../client.ts';
import { ActionForm, useAction } from '../../parts/action.tsx';
import { CommandLine } from '../../parts/copy.tsx';
import { Prose } from '../../parts/values.tsx';
import { useSession } from '../../session.tsx';
import { type Draft, definitionFrom, mistakesIn } from './definition.ts';

const EMPTY: Draft = {
  id: '',
  name: '',
  type: 'push',
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
  const mayMake = can('admin');
  return (
    <Modal opened={isOpen} onClose={onClose} title="New workflow" size="lg">
      <Tabs defaultValue={mayMake ? 'here' : 'file'}>
        <Tabs.List mb="md">
          <Tabs.Tab value="here">Create it here</Tabs.Tab>
          <Tabs.Tab value="file">As a file</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="here">
          {mayMake ? (
            <DraftForm onClose={onClose} />
          ) : (
            <Text size="sm" c="dimmed">
              This key lacks the scope <b>admin</b>. Sign in with one that has it, or define the workflow as a
              file.
            </Text>
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
        A workflow that runs a program, or code in TypeScript, is a file in the workflows directory of the
        service, in the folder of the team: <b>{team.slug}</b>. On its machine:
      </Text>
      <Text size="xs" c="dimmed">
        Write a file to start from
      </Text>
      <CommandLine
        command={`npx flowhook workflows add ${team.slug}/people --url https://example.com/people.json --every 1h`}
      />
      <Text size="xs" c="dimmed">
        Look for mistakes, and try it without publishing anything
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
  const [isTried, setIsTried] = useState(false);
  const navigate = useNavigate();
  const set = (change: Partial<Draft>) => setDraft((before) => ({ ...before, ...change }));
  const mistakes = isTried ? mistakesIn(draft) : {};
  const { act, isActing, error } = useAction({
    run: async () => {
      const id = draft.id.trim();
      if (await isTaken(id)) throw new Error(`There already is a workflow with the id ${id}`);
      return flowhook.workflows.put(id, definitionFrom(draft));
    },
    changes: ['workflows'],
    isRefusalShown: true,
    done: ({ name }) => `${name} was created`,
    onDone: ({ id }) => {
      onClose();
      void navigate({ to: '/workflows/$workflowId/data', params: { workflowId: id } });
    },
  });
  const submit = () => {
    setIsTried(true);
    if (Object.keys(mistakesIn(draft)).length === 0) act();
  };
  const text = (name: Exclude<keyof Draft, 'type' | 'mode' | 'parse'>) => ({
    value: draft[name],
    onChange: (event: { currentTarget: { value: string } }) => set({ [name]: event.currentTarget.value }),
    error: mistakes[name],
  });
  const isHttp = draft.type === 'http';
  return (
    <ActionForm action={{ act: submit, isActing }} verb="Create the workflow" onBack={onClose}>
      {error !== null && (
        <Alert color="red" role="alert" title="It was not created">
          <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
            <Prose text={error.message} />
          </Text>
        </Alert>
      )}
      <Select
        label="Where its records come from"
        data={[
          { value: 'push', label: 'They are pushed over the API' },
          { value: 'http', label: 'They are read from an address: JSON, CSV, HTML, XML' },
        ]}
        value={draft.type}
        onChange={(value) => set({ type: value === 'http' ? 'http' : 'push' })}
        allowDeselect={false}
      />
      <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="md" verticalSpacing="sm">
        <TextInput
          label="Id"
          description="Part of its URLs; it cannot be changed"
          placeholder="people"
          data-autofocus
          withAsterisk
          {...text('id')}
        />
        <TextInput
          label="Name"
          description="For people; the id if empty"
          placeholder="People"
          {...text('name')}
        />
      </SimpleGrid>
      {isHttp && (
        <>
          <TextInput
            label="Address"
            placeholder="https://example.com/people.json"
            inputMode="url"
            withAsterisk
            {...text('url')}
          />
          <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="md" verticalSpacing="sm">
            <Select
              label="Read as"
              description="Detected unless set"
              placeholder="json"
              data={['json', 'ndjson', 'csv', 'html', 'xml']}
              value={draft.parse === '' ? null : draft.parse}
              onChange={(value) => set({ parse: value ?? '' })}
              clearable
            />
            <TextInput
              label="Records"
              description="Where they are in the answer"
              placeholder="$.data.items"
              {...text('records')}
            />
          </SimpleGrid>
          <TextInput
            label="Fields"
            description="Each with where its value is found"
            placeholder="id = $.contact_id, name = $.title"
            {...text('fields')}
          />
          <TextInput
            label="Every"
            description="How often it runs by itself; empty: only on request"
            placeholder="15m"
            {...text('every')}
          />
        </>
      )}
      <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="md" verticalSpacing="sm">
        <TextInput
          label="Key"
          description="Fields that make a record's id"
          placeholder="email"
          {...text('key')}
        />
        <Select
          label="Mode"
          description="What happens to earlier records"
          data={[
            { value: 'replace', label: 'replace: the rest is removed' },
            { value: 'upsert', label: 'upsert: the rest stays' },
            { value: 'append', label: 'append: only new ones are added' },
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
async function isTaken(workflowId: string): Promise<boolean> {
  for await (const { id } of flowhook.workflows.list({ q: workflowId, limit: 1_000 })) {
    if (id === workflowId) return true;
  }
  return false;
}
