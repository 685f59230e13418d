/** A list as a table, or as cards in a narrow window. Virtualized: only the rows in sight are rendered. */
import { Box, Button, Center, Group, Loader, Text } from '@mantine/core';
import { useMediaQuery } from '@mantine/hooks';
import { type ReactNode, useCallback, useEffect, useRef, useState } from 'react';
import type { List } from '../queries/list.ts';
import styles from './data-table.module.css';
import type { Filters } from './filters.ts';
import { count, many } from './format.ts';
import { useHeldRows } from './held-rows.ts';
import { Icon } from './icon.tsx';
import { useRowKeys } from './keyboard.ts';
import { EmptyState, ErrorBox } from './page.tsx';
import { CardRows, type Column, openRow, type RowSelection, type Sort, TableRows, toggled } from './rows.tsx';

interface DataTableProps<Row> {
  /** What the table is called to those who do not see it. */
  label: string;
  /** From `useList`, or `listOf(rows)` for rows that are loaded as a whole. */
  list: List<Row>;
  /** The first one is the title of a card. Enter, or a click anywhere in a row, does what its link or button does. */
  columns: readonly (Column<Row> | false)[];
  /** Their `id` unless told. */
  idOf?: (row: Row) => string;
  /** In the place of no rows: an `EmptyState`. */
  empty: ReactNode;
  /** What hides rows: where there are none then, it can be cleared. */
  filters?: Filters<string> | undefined;
  /** Which rows are chosen, by their ids, for doing something with all of them. */
  selection?: RowSelection | undefined;
  sort?: Sort | undefined;
  /** How high it may grow, of CSS, before it scrolls in itself; the rest of the window unless told. */
  maxHeight?: string;
  /** What the rows are called: `run`. */
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
      <EmptyState title={`No ${noun} matches these filters`} onClear={filters.clear} />
    ) : (
      empty
    );
  }
  // Another list begins at its top, with nothing held and nothing selected.
  return <Filled key={`${list.name} ${list.isOld === true}`} {...props} />;
}

function Filled<Row>({
  label,
  list,
  columns,
  idOf = (row) => (row as { id: string }).id,
  selection,
  sort,
  maxHeight = 'max(320px, calc(100dvh - 230px))',
  noun,
}: DataTableProps<Row>) {
  const ref = useRef<HTMLDivElement>(null);
  const isNarrow = useMediaQuery('(max-width: 40em)', undefined, { getInitialValueInEffect: false });
  const [isAway, setIsAway] = useState(false);
  const [active, setActive] = useState(-1);
  // What was selected in the list before is not to be acted on, and keeps no rows in place.
  const before = useRef(selection);
  useEffect(() => {
    if ((before.current?.ids.size ?? 0) > 0) before.current?.onChange(new Set());
  }, []);
  const isReading = isAway || active >= 0 || (selection?.ids.size ?? 0) > 0;
  const { shown, waiting } = useHeldRows(list.rows, { idOf, isReading });

  const { hasMore, isLoadingMore, error, loadMore } = list;
  const onEnd = useCallback(() => {
    if (hasMore && !isLoadingMore && error === null) loadMore();
  }, [hasMore, isLoadingMore, error, loadMore]);

  const choose = (index: number) => {
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
    onChoose: selection === undefined ? undefined : choose,
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
        <ErrorBox error={error} title="The next ones could not be read" onRetry={list.retry} />
      )}
      <Group gap="xs" mt={6}>
        {isLoadingMore && <Loader size={12} aria-label="Loading more" />}
        <Text size="xs" c="dimmed" className="numbers">
          {list.total !== null && list.total > shown.length
            ? `${count(shown.length)} of ${many(list.total, noun)}, more as you scroll`
            : `${many(shown.length, noun)}${hasMore ? ', more as you scroll' : ''}`}
        </Text>
      </Group>
    </Box>
  );
}
