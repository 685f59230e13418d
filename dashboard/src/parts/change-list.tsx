/** Changes of records, with old and new values. */
import { Badge, Group, Text } from '@mantine/core';
import type { Change } from '../../../client/src/flowhook-client.ts';
import styles from './change-list.module.css';
import { Copy } from './copy.tsx';

interface ChangeListProps {
  changes: readonly Change[];
}

const LOOKS = {
  added: { label: '+ Added', color: 'green' },
  changed: { label: '~ Changed', color: 'orange' },
  removed: { label: '− Removed', color: 'red' },
} as const;

/** Values are untrusted, so they are rendered as text, never as markup. */
export function ChangeList({ changes }: ChangeListProps) {
  return (
    <ul className={styles.list}>
      {changes.map((change) => (
        <li key={`${change.version} ${change.id}`} className={styles.change}>
          <Group gap="xs" wrap="nowrap" miw={0}>
            <Badge variant="light" color={LOOKS[change.type].color} className={styles.type}>
              {LOOKS[change.type].label}
            </Badge>
            <Text span inherit ff="monospace" truncate title={change.id}>
              {change.id}
            </Text>
            <Copy value={change.id} label={`Copy ${change.id}`} />
          </Group>
          <Fields change={change} />
        </li>
      ))}
    </ul>
  );
}

function Fields({ change: { type, fields = [], record } }: { change: Change }) {
  if (type === 'removed') return null;
  const shown =
    type === 'changed' || record === undefined
      ? fields
      : Object.entries(record).flatMap(([key, value]) =>
          key === 'id' ? [] : [{ key, value, previousValue: undefined }],
        );
  return (
    <dl className={styles.fields}>
      {shown.map(({ key, value, previousValue }) => (
        <div key={key} className={styles.field}>
          <dt>{key}</dt>
          <dd>
            {type === 'changed' && (
              <>
                <del title={words(previousValue)}>{words(previousValue)}</del>
                <span aria-hidden="true"> → </span>
                <span className="visually-hidden">changed to</span>
              </>
            )}
            <ins title={words(value)}>{words(value)}</ins>
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
