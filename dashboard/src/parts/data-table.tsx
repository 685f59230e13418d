/** A list as a table, or as cards in a narrow window. Only visible rows are rendered. */
import { Box, Button, Center, Group, Loader, Text } from '@mantine/core';
import { useMediaQuery } from '@mantine/hooks';
import { type ReactNode, useCallback, useEffect, useRef, useState } from 'react';
import type { List } from '../queries/list.ts';
import styles from './data-table.module.css';
import type { Filters } from './filters.ts';
import { count, many, plural } from './format.ts';
import { useHeldRows } from './held-rows.ts';
import { Icon } from './icon.tsx';
import { useRowKeys } from './keyboard.ts';
import { EmptyState, ErrorBox } from './page.tsx';
import { CardRows, type Column, openRow, type RowSelection, type Sort, TableRows, toggled } from './rows.tsx';

interface DataTableProps<Row> {
  /** For screen readers. */
  label: string;
  /** From `useList`, or `listOf(rows)` for rows that are already loaded. */
  list: List<Row>;
  /** The first column is the title of a card. Enter, or a click on a row, activates its link or button. */
  columns: readonly (Column<Row> | false)[];
  /** Default: the row's `id`. */
  idOf?: (row: Row) => string;
  /** An `EmptyState`, shown if there are no rows. */
  empty: ReactNode;
  /** The filters of the list. If they hide all rows, the table offers to clear them. */
  filters?: Filters<string> | undefined;
  /** Reports the rows that the user sees: new ones are left out while they only wait to be shown. */
  onShown?: (rows: readonly Row[]) => void;
  /** The ids of the selected rows. */
  selection?: RowSelection | undefined;
  sort?: Sort | undefined;
  /** A CSS length; a longer table scrolls (default: the rest of the window). */
  maxHeight?: string;
  /** The singular name of a row: `run`. */
  noun: string;
}

export function DataTable<Row>(props: DataTableProps<Row>) {
  const { list, filters, noun, empty } = props;
  if (list.error !== null && list.rows.length === 0)
    return <ErrorBox error={list.error} onRetry={list.retry} />;
  if (list.isLoading) {
    return (
      <Center p="xl">
        <Loader aria-label="Loading" size="sm" />
      </Center>
    );
  }
  if (list.rows.length === 0) {
    return filters?.isFiltered ? (
      <EmptyState title={`No ${plural(noun)} match these filters`} onClear={filters.clear} />
    ) : (
      empty
    );
  }
  // The key resets scrolling, selection and held rows for another list.
  return <Filled key={`${list.name} ${list.isOld === true}`} {...props} />;
}

function Filled<Row>({
  label,
  list,
  columns,
  idOf = (row) => (row as { id: string }).id,
  onShown,
  selection,
  sort,
  maxHeight = 'max(320px, calc(100dvh - 230px))',
  noun,
}: DataTableProps<Row>) {
  const ref = useRef<HTMLDivElement>(null);
  const isNarrow = useMediaQuery('(max-width: 40em)', undefined, { getInitialValueInEffect: false });
  const [isAway, setIsAway] = useState(false);
  const [active, setActive] = useState(-1);
  // A selection from the previous list must neither be acted on nor hold rows in place.
  const before = useRef(selection);
  useEffect(() => {
    if ((before.current?.ids.size ?? 0) > 0) before.current?.onChange(new Set());
  }, []);
  const isReading = isAway || active >= 0 || (selection?.ids.size ?? 0) > 0;
  const { shown, waiting } = useHeldRows(list.rows, { idOf, isReading });
  useEffect(() => onShown?.(shown), [shown, onShown]);

  const { hasMore, isLoadingMore, error, loadMore } = list;
  const onEnd = useCallback(() => {
    if (hasMore && !isLoadingMore && error === null) loadMore();
  }, [hasMore, isLoadingMore, error, loadMore]);

  const select = (index: number) => {
    const row = shown[index];
    if (row !== undefined) selection?.onChange(toggled(selection.ids, idOf(row)));
  };
  useRowKeys(ref, {
    active,
    count: shown.length,
    onMove: (index) => {
      setActive(index);
      if (index < 0 && document.activeElement instanceof HTMLElement) document.activeElement.blur();
    },
    onOpen: openRow,
    onSelect: selection === undefined ? undefined : select,
  });

  const showNew = () => {
    setActive(-1);
    setIsAway(false);
    selection?.onChange(new Set());
    const box = ref.current?.querySelector('[data-scrolls]');
    if (box === null || box === undefined) scrollTo({ top: 0 });
    else box.scrollTop = 0;
  };
  const Rows = isNarrow ? CardRows : TableRows;
  return (
    <Box
      ref={ref}
      data-rows
      data-old={list.isOld || undefined}
      className={styles.table}
      onBlur={(event) => {
        if (!event.currentTarget.contains(event.relatedTarget)) setActive(-1);
      }}
    >
      <div role="status">
        {waiting > 0 && (
          <Button
            className={styles.pill}
            radius="xl"
            onClick={showNew}
            leftSection={<Icon name="arrowUp" size={14} />}
          >
            {count(waiting)} new
          </Button>
        )}
      </div>
      <Rows
        label={label}
        rows={shown}
        columns={columns.filter((column) => column !== false)}
        idOf={idOf}
        selection={selection}
        sort={sort}
        maxHeight={maxHeight}
        active={active}
        onActive={setActive}
        onScrolled={setIsAway}
        onEnd={onEnd}
      />
      {error !== null && (
        <ErrorBox error={error} title="More rows could not be loaded" onRetry={list.retry} />
      )}
      <Group gap="xs" mt={6}>
        {isLoadingMore && <Loader size={12} aria-label="Loading more" />}
        <Text size="xs" c="dimmed" className="numbers">
          {list.total !== null && list.total > shown.length
            ? `${count(shown.length)} of ${many(list.total, noun)}, scroll for more`
            : `${many(shown.length, noun)}${hasMore ? ', scroll for more' : ''}`}
        </Text>
      </Group>
    </Box>
  );
}
