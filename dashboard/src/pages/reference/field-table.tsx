/** The fields of a body or of an answer. */
import { Box, Stack, Text, Title } from '@mantine/core';
import { Prose } from '../../parts/prose.tsx';
import styles from './field-table.module.css';
import type { Schema } from './openapi.ts';
import { fieldsOf, typeOf } from './schema-fields.ts';

export function FieldTable({
  title,
  schema,
  schemas,
}: {
  title: string;
  schema: Schema;
  schemas: Record<string, Schema>;
}) {
  const fields = fieldsOf(schema, schemas);
  return (
    <section aria-label={title}>
      <Title order={4} size="h6" mb={4}>
        {title}
      </Title>
      {fields.length === 0 ? (
        <Text size="sm">
          <Prose text={schema.description ?? typeOf(schema, schemas)} />
        </Text>
      ) : (
        <Stack component="dl" gap={0} m={0}>
          {fields.map(({ path, type, isRequired, description }) => (
            <Box key={path} className={styles.field}>
              <dt className={styles.name}>
                {path}
                <Text span size="xs" c="dimmed" ms={8} ff="text">
                  {type}
                  {isRequired ? '' : ', may be missing'}
                </Text>
              </dt>
              {description !== '' && (
                <dd className={styles.description}>
                  <Prose text={description} />
                </dd>
              )}
            </Box>
          ))}
        </Stack>
      )}
    </section>
  );
}
