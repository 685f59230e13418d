/** The versions that are kept, the newest first. */
import { Button, Group, Text, UnstyledButton } from '@mantine/core';
import type { Version } from 'flowhook-client';
import { CountSigns } from '../../parts/count-signs.tsx';
import { Time } from '../../parts/time.tsx';
import type { List } from '../../queries/list.ts';
import styles from './changes-tab.module.css';

export function VersionNav({
  list,
  chosen,
  onChoose,
}: {
  list: List<Version>;
  chosen: number;
  onChoose: (version: number) => void;
}) {
  return (
    <nav aria-label="Versions">
      <ul className={styles.versions}>
        {list.rows.map(({ number, publishedAt, records }) => (
          <li key={number}>
            <UnstyledButton
              className={styles.version}
              aria-current={number === chosen || undefined}
              onClick={() => onChoose(number)}
            >
              <Group justify="space-between" wrap="nowrap" gap="xs">
                <Text span inherit fw={500} className="numbers">
                  Version {number}
                </Text>
                <Text span size="xs" c="dimmed">
                  <Time at={publishedAt} />
                </Text>
              </Group>
              <CountSigns withNothing records={records} />
            </UnstyledButton>
          </li>
        ))}
      </ul>
      {list.hasMore && (
        <Button variant="subtle" mt="xs" fullWidth onClick={list.loadMore} loading={list.isLoadingMore}>
          Older versions
        </Button>
      )}
    </nav>
  );
}
