/** Exports the records: the browser downloads them from the service as a file, however many there are. */
import { Button, Menu } from '@mantine/core';
import { Icon } from '../../parts/icon.tsx';

const FORMATS = [
  { format: 'csv', label: 'CSV, for tables' },
  { format: 'json', label: 'JSON, one array' },
  { format: 'ndjson', label: 'NDJSON, a record a line' },
] as const;

export function ExportMenu({
  workflowId,
  version,
  query,
  isWhole,
}: {
  workflowId: string;
  version: number;
  /** The parameters that what is shown was asked with. */
  query: string;
  /** Nothing is searched for. */
  isWhole: boolean;
}) {
  if (version === 0) return null;
  return (
    <Menu position="bottom-end" withinPortal>
      <Menu.Target>
        <Button variant="default" leftSection={<Icon name="download" size={14} />}>
          Export
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>
          {isWhole ? 'All records of this version' : 'The records found, at most 1,000'}
        </Menu.Label>
        {FORMATS.map(({ format, label }) => (
          <Menu.Item
            key={format}
            component="a"
            href={`/ui/api/v1/workflows/${encodeURIComponent(workflowId)}/data?format=${format}${query === '' ? '' : `&${query}`}`}
            download={`${fileName(workflowId)}-v${version}.${format}`}
          >
            {label}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}

/** An id may hold anything: what is safe in every file system stays. */
function fileName(workflowId: string): string {
  return workflowId.replace(/[^A-Za-z0-9_-]+/g, '_').slice(0, 100);
}
