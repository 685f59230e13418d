/** Changes of records, with old and new values. */
import { Badge, Group, Text, UnstyledButton } from '@mantine/core';
import type { Change, RecordChange } from '../../../client/src/flowhook-client.ts';
import styles from './change-list.module.css';
import { Copy } from './copy.tsx';
import { IdButton } from './values.tsx';

interface ChangeListProps {
  changes: readonly Change[];
  /** Opens a record. Without it, ids are not clickable. */
  onOpen?: (recordId: string) => void;
  /** Chooses a field. Without it, names of fields are not clickable. */
  onField?: (name: string) => void;
  /** Shows in which version each record got its last state. */
  withVersions?: boolean;
}

const LOOKS = {
  added: { label: '+ Added', color: 'green' },
  changed: { label: '~ Changed', color: 'orange' },
  removed: { label: '− Removed', color: 'red' },
  existing: { label: 'Oldest known state', color: 'gray' },
} as const;

/** Values are untrusted, so they are rendered as text, never as markup. */
export function ChangeList({ changes, onOpen, onField, withVersions = false }: ChangeListProps) {
  return (
    <ul className={styles.list}>
      {changes.map((change) => (
        <li key={`${change.version} ${change.id}`} className={styles.change}>
          <Group gap="xs" wrap="nowrap" miw={0}>
            <ChangeType type={change.type} />
            <IdButton id={change.id} onOpen={onOpen} />
            <Copy value={change.id} label={`Copy ${change.id}`} />
            {withVersions && (
              <Text span size="xs" c="dimmed" ms="auto" className="numbers" style={{ flex: 'none' }}>
                Version {change.version}
              </Text>
            )}
          </Group>
          <ChangedFields change={change} onField={onField} />
        </li>
      ))}
    </ul>
  );
}

export function ChangeType({ type }: { type: keyof typeof LOOKS }) {
  return (
    <Badge variant="light" color={LOOKS[type].color} className={styles.type}>
      {LOOKS[type].label}
    </Badge>
  );
}

/** The fields of an added record, or those that changed, with their previous values. */
export function ChangedFields(props: {
  change: Pick<RecordChange, 'type' | 'fields' | 'record'>;
  onField?: ((name: string) => void) | undefined;
}) {
  const { onField } = props;
  const { type, fields = [], record } = props.change;
  const shown =
    record === undefined
      ? fields
      : Object.entries(record).flatMap(([key, value]) =>
          key === 'id' ? [] : [{ key, value, previousValue: undefined }],
        );
  if (shown.length === 0) return null;
  const hasPrevious = type === 'changed' || type === 'removed';
  return (
    <dl className={styles.fields}>
      {shown.map(({ key, value, previousValue }) => (
        <div key={key} className={styles.field}>
          <dt>
            {onField === undefined ? (
              key
            ) : (
              <UnstyledButton
                className={styles.name}
                title={`Only changes of ${key}`}
                onClick={() => onField(key)}
              >
                {key}
              </UnstyledButton>
            )}
          </dt>
          <dd>
            {hasPrevious && <del title={words(previousValue)}>{words(previousValue)}</del>}
            {type === 'changed' && (
              <>
                <span aria-hidden="true"> → </span>
                <span className="visually-hidden">changed to</span>
              </>
            )}
            {type !== 'removed' && <ins title={words(value)}>{words(value)}</ins>}
          </dd>
        </div>
      ))}
    </dl>
  );
}

/** A value on one line. A missing field differs from an empty one. */
function words(value: unknown): string {
  if (value === undefined) return '(none)';
  if (value === '') return '(empty)';
  return typeof value === 'string' ? value : JSON.stringify(value);
}
