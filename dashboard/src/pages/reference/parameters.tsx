/** What an operation takes beside its body: each with a field, for the command and for trying it. */
import { Autocomplete, Select, SimpleGrid, Text, TextInput, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Prose } from '../../parts/prose.tsx';
import { workflowNamesQuery } from '../../queries/workflows.ts';
import { useSession } from '../../session.tsx';
import type { OpenApiParameter } from './openapi.ts';
import type { Operation } from './operations.ts';
import { exampleOf, type Filled } from './request.ts';
import { typeOf } from './schema-fields.ts';

export function Parameters({
  operation,
  filled,
  onFill,
}: {
  operation: Operation;
  filled: Filled;
  onFill: (filled: Filled) => void;
}) {
  const { parameters = [] } = operation;
  if (parameters.length === 0) return null;
  return (
    <section aria-label="Parameters">
      <Title order={4} size="h6" mb="xs">
        Parameters
      </Title>
      <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="md" verticalSpacing="sm">
        {parameters.map((parameter) => (
          <Field
            key={parameter.name}
            parameter={parameter}
            value={filled[parameter.name] ?? ''}
            onChange={(value) => onFill({ ...filled, [parameter.name]: value })}
          />
        ))}
      </SimpleGrid>
    </section>
  );
}

function Field({
  parameter,
  value,
  onChange,
}: {
  parameter: OpenApiParameter;
  value: string;
  onChange: (value: string) => void;
}) {
  const { name, in: where, required = false, description, schema } = parameter;
  const shared = {
    label: (
      <>
        <code>{name}</code>{' '}
        <Text span size="xs" c="dimmed" fw={400}>
          {schema.enum === undefined ? typeOf(schema) : ''}
          {where === 'header' && ', a header'}
        </Text>
      </>
    ),
    description: <Prose text={description ?? ''} />,
    inputWrapperOrder: FIELD_ORDER,
    placeholder: `such as ${exampleOf(parameter)}`,
    required,
  };
  if (schema.enum !== undefined) {
    return (
      <Select
        {...shared}
        data={schema.enum.map(String)}
        value={value === '' ? null : value}
        onChange={(chosen) => onChange(chosen ?? '')}
        clearable
      />
    );
  }
  if (name === 'workflowId') return <WorkflowField {...shared} value={value} onChange={onChange} />;
  return <TextInput {...shared} value={value} onChange={(event) => onChange(event.currentTarget.value)} />;
}

/** The sentence below: the fields of one row stand side by side. */
const FIELD_ORDER: ('label' | 'input' | 'description')[] = ['label', 'input', 'description'];

/** Suggests existing workflows. */
function WorkflowField(props: {
  label: ReactNode;
  description: ReactNode;
  inputWrapperOrder: typeof FIELD_ORDER;
  placeholder: string;
  required: boolean;
  value: string;
  onChange: (value: string) => void;
}) {
  const { can } = useSession();
  const { data = [] } = useQuery({ ...workflowNamesQuery(), enabled: can('read') });
  return <Autocomplete {...props} size="xs" data={data.map(({ value }) => value)} limit={50} />;
}
