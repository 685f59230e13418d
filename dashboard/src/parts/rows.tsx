/** The rows of a list as a table that scrolls in its box, head and all. A native table: every reader knows it. */
import { Checkbox, Group, UnstyledButton } from '@mantine/core';
import { useVirtualizer, useWindowVirtualizer } from '@tanstack/react-virtual';
import { type CSSProperties, useCallback, useEffect, useLayoutEffect, useRef, useState } from 'react';
import styles from './data-table.module.css';
import { type Column, isOnRowItself, NEAR_END, type RowsProps, type Sort, toggled } from './data-table.tsx';
import { Icon } from './icon.tsx';

const ROW_PX = 37;
/** A column without a width is never narrower. */
const LEAST_PX = 200;
const CHECKBOX_PX = 36;

export function TableRows<Row>({
  label,
  rows,
  columns,
  idOf,
  onOpen,
  selection,
  sort,
  maxHeight,
  active,
  onActive,
  onScrolled,
  onEnd,
}: RowsProps<Row>) {
  const box = useRef<HTMLDivElement>(null);
  const [rowPx, setRowPx] = useState(ROW_PX);
  const virtualizer = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: () => rowPx,
    overscan: 10,
    getItemKey: useRowName(rows, idOf),
  });
  const items = virtualizer.getVirtualItems();
  const share = `${100 / columns.filter(({ width }) => width === undefined).length}%`;
  const above = items[0]?.start ?? 0;
  const below = virtualizer.getTotalSize() - (items.at(-1)?.end ?? 0);
  const lastIndex = items.at(-1)?.index ?? -1;

  useEffect(() => {
    if (lastIndex >= rows.length - NEAR_END) onEnd();
  }, [lastIndex, rows, onEnd]);
  const hasDrawn = items.length > 0;
  // As high as the first one: a row of another height than was thought moves all below it.
  useLayoutEffect(() => {
    const height = box.current?.querySelector<HTMLElement>('tr[data-index]')?.offsetHeight;
    if (hasDrawn && height !== undefined) setRowPx(height);
  }, [hasDrawn]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: what was reckoned with the height before is forgotten
  useLayoutEffect(() => virtualizer.measure(), [rowPx, virtualizer]);
  useEffect(() => {
    if (active < 0) return;
    virtualizer.scrollToIndex(active);
    const row = () => box.current?.querySelector<HTMLElement>(`tr[data-index="${active}"]`);
    // At once, so that an Enter right after is the row's; it may have to be drawn first.
    if (row()) row()?.focus({ preventScroll: true });
    else requestAnimationFrame(() => row()?.focus({ preventScroll: true }));
  }, [active, virtualizer]);

  return (
    <div
      ref={box}
      className={styles.box}
      style={{ maxHeight }}
      data-scrolls
      data-scroll-restoration-id={label}
      onScroll={(event) => onScrolled(event.currentTarget.scrollTop > ROW_PX)}
    >
      <table className={styles.native} aria-rowcount={rows.length + 1}>
        <caption className="visually-hidden">{label}</caption>
        <colgroup>
          {selection !== undefined && <col style={{ width: CHECKBOX_PX }} />}
          {columns.map(({ id, width }) => (
            <col key={id} style={{ width: width === 'fits' ? 1 : (width ?? share) }} />
          ))}
        </colgroup>
        <thead>
          <tr aria-rowindex={1}>
            {selection !== undefined && (
              <th scope="col">
                <Checkbox
                  aria-label="Select all loaded rows"
                  checked={rows.length > 0 && selection.ids.size === rows.length}
                  indeterminate={selection.ids.size > 0 && selection.ids.size < rows.length}
                  onChange={() => selection.onChange(new Set(selection.ids.size > 0 ? [] : rows.map(idOf)))}
                />
              </th>
            )}
            {columns.map((column) => (
              <Head key={column.id} column={column} sort={sort} />
            ))}
          </tr>
        </thead>
        <tbody style={{ '--above': `${above}px`, '--below': `${below}px` } as CSSProperties}>
          {items.map(({ index, key }) => {
            const row = rows[index] as Row;
            const id = idOf(row);
            const isChosen = selection?.ids.has(id) ?? false;
            return (
              <tr
                key={key}
                ref={virtualizer.measureElement}
                data-index={index}
                data-chosen={isChosen || undefined}
                data-opens={onOpen !== undefined || undefined}
                aria-rowindex={index + 2}
                tabIndex={-1}
                onFocus={(event) => event.target === event.currentTarget && onActive(index)}
                onClick={(event) => isOnRowItself(event.target) && onOpen?.(row)}
              >
                {selection !== undefined && (
                  <td>
                    <Checkbox
                      aria-label={`Select ${id}`}
                      checked={isChosen}
                      onChange={() => selection.onChange(toggled(selection.ids, id))}
                    />
                  </td>
                )}
                {columns.map(({ id: name, cell, align, isWrapped, width }) => (
                  <td
                    key={name}
                    data-align={align}
                    data-wraps={isWrapped}
                    style={{ maxWidth: mostOf(width) }}
                  >
                    {cell(row)}
                  </td>
                ))}
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

function Head<Row>({ column, sort }: { column: Column<Row>; sort: Sort | undefined }) {
  const { id, header, align, isSortable, width } = column;
  const least = width === 'fits' ? undefined : (width ?? LEAST_PX);
  if (isSortable !== true || sort === undefined) {
    return (
      <th scope="col" data-align={align} style={{ minWidth: least }}>
        {header}
      </th>
    );
  }
  const direction = sort.by === id ? 'ascending' : sort.by === `-${id}` ? 'descending' : 'none';
  return (
    <th scope="col" data-align={align} aria-sort={direction} style={{ minWidth: least }}>
      <UnstyledButton
        className={styles.sort}
        onClick={() => sort.onChange(direction === 'ascending' ? `-${id}` : id)}
      >
        {header}
        {direction !== 'none' && (
          <Icon name={direction === 'ascending' ? 'arrowUp' : 'arrowDown'} size={12} />
        )}
      </UnstyledButton>
    </th>
  );
}

/** What a cell is cut off at: nothing where the column is as wide as what it holds; the others get what is left. */
function mostOf(width: Column<unknown>['width']): string | number | undefined {
  return width === 'fits' ? undefined : (width ?? 0);
}

const CARD_PX = 140;

/** The rows of a list as cards below each other, for narrow windows. They scroll with the page. */
export function CardRows<Row>({
  label,
  rows,
  columns: [title, ...columns],
  idOf,
  onOpen,
  selection,
  active,
  onActive,
  onScrolled,
  onEnd,
}: RowsProps<Row>) {
  const list = useRef<HTMLUListElement>(null);
  const [top, setTop] = useState(0);
  useLayoutEffect(() => {
    setTop((list.current?.getBoundingClientRect().top ?? 0) + scrollY);
  }, []);
  const virtualizer = useWindowVirtualizer({
    count: rows.length,
    estimateSize: () => CARD_PX,
    overscan: 5,
    scrollMargin: top,
    getItemKey: useRowName(rows, idOf),
  });
  const items = virtualizer.getVirtualItems();
  const above = (items[0]?.start ?? top) - top;
  const below = virtualizer.getTotalSize() - ((items.at(-1)?.end ?? top) - top);
  const lastIndex = items.at(-1)?.index ?? -1;

  useEffect(() => {
    if (lastIndex >= rows.length - NEAR_END) onEnd();
  }, [lastIndex, rows, onEnd]);
  useEffect(() => {
    const tell = () => onScrolled(scrollY > top + CARD_PX);
    addEventListener('scroll', tell, { passive: true });
    return () => removeEventListener('scroll', tell);
  }, [onScrolled, top]);
  useEffect(() => {
    if (active < 0) return;
    virtualizer.scrollToIndex(active);
    const card = () => list.current?.querySelector<HTMLElement>(`li[data-index="${active}"]`);
    if (card()) card()?.focus({ preventScroll: true });
    else requestAnimationFrame(() => card()?.focus({ preventScroll: true }));
  }, [active, virtualizer]);

  return (
    <ul
      ref={list}
      aria-label={label}
      className={styles.cards}
      style={{ paddingTop: above, paddingBottom: Math.max(0, below) }}
    >
      {items.map(({ index, key }) => {
        const row = rows[index] as Row;
        const id = idOf(row);
        const isChosen = selection?.ids.has(id) ?? false;
        return (
          // biome-ignore lint/a11y/useKeyWithClickEvents: Enter opens it, by row-keys.ts, and its link does too
          <li
            key={key}
            ref={virtualizer.measureElement}
            data-index={index}
            data-chosen={isChosen || undefined}
            tabIndex={-1}
            onFocus={(event) => event.target === event.currentTarget && onActive(index)}
            onClick={(event) => isOnRowItself(event.target) && onOpen?.(row)}
          >
            <Group justify="space-between" wrap="nowrap" className={styles.cardTitle}>
              <div>{title?.cell(row)}</div>
              {selection !== undefined && (
                <Checkbox
                  aria-label={`Select ${id}`}
                  checked={isChosen}
                  onChange={() => selection.onChange(toggled(selection.ids, id))}
                />
              )}
            </Group>
            <dl>
              {columns.map(({ id: name, header, cell }) => (
                <div key={name}>
                  <dt>{header}</dt>
                  <dd>{cell(row)}</dd>
                </div>
              ))}
            </dl>
          </li>
        );
      })}
    </ul>
  );
}

/** The function changes only with the rows: for a new function the virtualizer would measure every row again. */
export function useRowName<Row>(rows: readonly Row[], idOf: (row: Row) => string): (index: number) => string {
  const latest = useRef(idOf);
  useEffect(() => {
    latest.current = idOf;
  });
  return useCallback(
    (index) => {
      const row = rows[index];
      return row === undefined ? String(index) : latest.current(row);
    },
    [rows],
  );
}
