/** One operation: a line that unfolds into what it takes, what it answers, and how it is called. */
import { SimpleGrid, Stack, Text, UnstyledButton } from '@mantine/core';
import { useState } from 'react';
import { CommandLine } from '../../parts/command-line.tsx';
import { curl } from '../../parts/curl.ts';
import { Icon } from '../../parts/icon.tsx';
import { JsonView } from '../../parts/json-view.tsx';
import { Prose } from '../../parts/prose.tsx';
import { tone } from '../../parts/state-badge.tsx';
import { Answers } from './answers.tsx';
import { FieldTable } from './field-table.tsx';
import type { Schema } from './openapi.ts';
import { canBeTried, type Operation } from './operations.ts';
import { Parameters } from './parameters.tsx';
import styles from './reference.module.css';
import { type Filled, requestOf } from './request.ts';
import { TryIt } from './try-it.tsx';

const COLORS: Record<string, string | undefined> = {
  POST: tone('good'),
  PUT: tone('changed'),
  PATCH: tone('changed'),
  DELETE: tone('bad'),
};

export interface OperationProps {
  operation: Operation;
  schemas: Record<string, Schema>;
}

export function OperationItem({
  isOpen,
  onToggle,
  ...props
}: OperationProps & { isOpen: boolean; onToggle: () => void }) {
  const { method, path, summary, operationId } = props.operation;
  return (
    <>
      <h3 className={styles.heading}>
        <UnstyledButton
          className={styles.head}
          aria-expanded={isOpen}
          aria-controls={isOpen ? operationId : undefined}
          onClick={onToggle}
        >
          <Text span className={styles.method} c={COLORS[method] ?? 'blue'}>
            {method}
          </Text>
          <span className={styles.path}>{path}</span>
          <span className={styles.summary}>
            <Prose text={summary} />
          </span>
          <span className={styles.arrow}>
            <Icon name="chevronRight" size={14} />
          </span>
        </UnstyledButton>
      </h3>
      {isOpen && (
        <div id={operationId} className={styles.body}>
          <Unfolded {...props} />
        </div>
      )}
    </>
  );
}

function Unfolded({ operation, schemas }: OperationProps) {
  const { method, description, requestBody, security } = operation;
  const [filled, setFilled] = useState<Filled>({});
  const request = requestOf(operation, filled);
  const [bodyType, body] = Object.entries(requestBody?.content ?? {})[0] ?? [];
  return (
    <SimpleGrid cols={{ base: 1, lg: 2 }} spacing="xl">
      <Stack gap="md" miw={0}>
        {description !== undefined && (
          <Text size="sm">
            <Prose text={description} />
          </Text>
        )}
        <Text size="xs" c="dimmed">
          {security.length === 0 ? 'Anybody may call it, without a key.' : 'Takes a key.'}
        </Text>
        <Parameters operation={operation} filled={filled} onFill={setFilled} />
        {body?.schema !== undefined && (
          <FieldTable
            title={`Body (${Object.keys(requestBody?.content ?? {}).join(', ')})`}
            schema={body.schema}
            schemas={schemas}
          />
        )}
      </Stack>
      <Stack gap="md" miw={0}>
        <CommandLine
          command={curl({
            method,
            path: request.path,
            headers: request.headers,
            ...(body === undefined || bodyType !== 'application/json' ? {} : { json: body.example }),
            withoutKey: security.length === 0,
          })}
        />
        {canBeTried(operation) && <TryIt operation={operation} request={request} />}
        {body !== undefined && (
          <JsonView value={body.example} label="An example of the body" maxHeight="280px" />
        )}
        <Answers operation={operation} schemas={schemas} />
      </Stack>
    </SimpleGrid>
  );
}
