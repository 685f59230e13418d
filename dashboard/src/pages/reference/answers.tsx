/** What an operation answers, by status: a sentence, its headers, an example, its fields. */
import { Stack, Text, Title, UnstyledButton } from '@mantine/core';
import { useState } from 'react';
import { Icon } from '../../parts/icon.tsx';
import { JsonView } from '../../parts/json-view.tsx';
import { Prose } from '../../parts/prose.tsx';
import styles from './answers.module.css';
import { FieldTable } from './field-table.tsx';
import type { OperationProps } from './operation.tsx';

export function Answers({ operation, schemas }: OperationProps) {
  const { responses } = operation;
  const [isShown, setIsShown] = useState(false);
  const [, good] = Object.entries(responses).find(([status]) => status.startsWith('2')) ?? [];
  const [type, content] = Object.entries(good?.content ?? {})[0] ?? [];
  return (
    <section aria-label="Answers">
      <Title order={4} size="h6" mb={4}>
        Answers
      </Title>
      <Stack gap="sm">
        <dl className={styles.list}>
          {Object.entries(responses).map(([status, { description, headers = {} }]) => (
            <div key={status} className={styles.answer}>
              <dt className={styles.status}>{status}</dt>
              <dd className={styles.what}>
                <Prose text={description} />
                {Object.entries(headers).map(
                  ([name, { description: about }]) =>
                    about !== undefined && (
                      <Text key={name} size="xs" c="dimmed">
                        <code>{name}</code>: <Prose text={about} />
                      </Text>
                    ),
                )}
              </dd>
            </div>
          ))}
        </dl>
        {content?.example !== undefined && (
          <JsonView value={content.example} label={`An example of the answer (${type})`} maxHeight="320px" />
        )}
        {content?.schema !== undefined && type === 'application/json' && (
          <>
            <UnstyledButton
              className={styles.more}
              aria-expanded={isShown}
              onClick={() => setIsShown(!isShown)}
            >
              <Icon name={isShown ? 'chevronDown' : 'chevronRight'} size={14} />
              The fields of the answer
            </UnstyledButton>
            {isShown && <FieldTable title="Fields" schema={content.schema} schemas={schemas} />}
          </>
        )}
      </Stack>
    </section>
  );
}
