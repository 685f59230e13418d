/** One record as a whole, beside the table. */
import { Drawer, Group, Text } from '@mantine/core';
import type { DataRecord } from 'flowhook-client';
import { Copy } from '../../parts/copy.tsx';
import { JsonView } from '../../parts/json-view.tsx';

export function RecordDrawer({ record, onClose }: { record: DataRecord | null; onClose: () => void }) {
  return (
    <Drawer
      opened={record !== null}
      onClose={onClose}
      position="right"
      size="min(560px, 100vw)"
      title={
        record !== null && (
          <Group gap={4} wrap="nowrap" miw={0}>
            <Text span fw={600} truncate title={record.id}>
              Record {record.id}
            </Text>
            <Copy value={record.id} label="Copy its id" />
          </Group>
        )
      }
    >
      {record !== null && (
        <JsonView value={record} label={`Record ${record.id}`} maxHeight="calc(100dvh - 110px)" />
      )}
    </Drawer>
  );
}
