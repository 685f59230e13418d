/** The rows of a list: a native table that scrolls in a box, or cards in a narrow window. */
import { Checkbox, Group, UnstyledButton } from '@mantine/core';
import { useVirtualizer, useWindowVirtualizer, type Virtualizer } from '@tanstack/react-virtual';
import {
  type CSSProperties,
  type FocusEvent,
  type MouseEvent,
  type ReactNode,
  type RefObject,
  useCallback,
  useEffect,
  useLayoutEffect,
  useRef,
  useState,
} from 'react';
import styles from './data-table.module.css';
import { Icon } from './icon.tsx';

export interface Column<Row> {
  /** React key, and the name to sort by. */
  id: string;
  header: string;
  cell: (row: Row) => ReactNode;
  /**
   * `120px`: longer content is cut off. `fits`: as wide as its content, for times, numbers and states, which must never be
   * cut off. Columns without a width share the remaining space.
   */
  width?: `${number}px` | 'fits';
  align?: 'start' | 'end';
  isSortable?: boolean;
  /** Long text wraps. */
  isWrapped?: boolean;
}

export interface RowSelection {
  ids: ReadonlySet<string>;
  onChange: (ids: ReadonlySet<string>) => void;
}

export interface Sort {
  /** `name`, or `-name` for descending, as in the URL. */
  by: string | undefined;
  onChange: (by: string) => void;
}

export interface RowsProps<Row> {
  label: string;
  rows: readonly Row[];
  columns: readonly Column<Row>[];
  idOf: (row: Row) => string;
  selection: RowSelection | undefined;
  sort: Sort | undefined;
  maxHeight: string;
  /** Index of the focused row; −1 means none. */
  active: number;
  onActive: (index: number) => void;
  /** Reports whether the list is scrolled away from its top. */
  onScrolled: (isAway: boolean) => void;
  /** Called when the last rows come into view. */
  onEnd: () => void;
}

const ROW_PX = 37;
/** Minimum width of a column without a fixed width. */
const MIN_PX = 200;
const CHECKBOX_PX = 36;
const CARD_PX = 140;
/** The next page is loaded when this many rows remain below. */
const NEAR_END = 20;

export function TableRows<Row>(props: RowsProps<Row>) {
  const { label, rows, columns, idOf, selection, sort, maxHeight, onScrolled } = props;
  const box = useRef<HTMLDivElement>(null);
  const [rowPx, setRowPx] = useState(ROW_PX);
  const virtualizer = useVirtualizer<HTMLDivElement, HTMLElement>({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: () => rowPx,
    overscan: 10,
    getItemKey: useRowName(rows, idOf),
  });
  const { drawn, above, below } = useDrawn(virtualizer, box, props);
  const share = `${100 / columns.filter(({ width }) => width === undefined).length}%`;
  const hasDrawn = drawn.length > 0;
  // Uses the height of the first row as the estimate, because a wrong estimate would move all rows below.
  useLayoutEffect(() => {
    const height = box.current?.querySelector<HTMLElement>('tr[data-index]')?.offsetHeight;
    if (hasDrawn && height !== undefined) setRowPx(height);
  }, [hasDrawn]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: positions from the previous estimate must be discarded
  useLayoutEffect(() => virtualizer.measure(), [rowPx, virtualizer]);
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
          {drawn.map(({ key, row, index, attributes, checkbox }) => (
            <tr key={key} aria-rowindex={index + 2} {...attributes}>
              {checkbox !== undefined && <td>{checkbox}</td>}
              {columns.map(({ id, cell, align, isWrapped, width }, at) => (
                <td
                  key={id}
                  data-title={at === 0 || undefined}
                  data-align={align}
                  data-wraps={isWrapped}
                  // A cell without a width must not widen its column, which gets a share of the remaining space.
                  style={{ maxWidth: width === 'fits' ? undefined : (width ?? 0) }}
                >
                  {cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Head<Row>({ column, sort }: { column: Column<Row>; sort: Sort | undefined }) {
  const { id, header, align, isSortable, width } = column;
  const minWidth = width === 'fits' ? undefined : (width ?? MIN_PX);
  if (isSortable !== true || sort === undefined) {
    return (
      <th scope="col" data-align={align} style={{ minWidth }}>
        {header}
      </th>
    );
  }
  const direction = sort.by === id ? 'ascending' : sort.by === `-${id}` ? 'descending' : 'none';
  return (
    <th scope="col" data-align={align} aria-sort={direction} style={{ minWidth }}>
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

export function CardRows<Row>(props: RowsProps<Row>) {
  const { label, rows, columns, idOf, onScrolled } = props;
  const list = useRef<HTMLUListElement>(null);
  const [top, setTop] = useState(0);
  useLayoutEffect(() => {
    setTop((list.current?.getBoundingClientRect().top ?? 0) + scrollY);
  }, []);
  const virtualizer = useWindowVirtualizer<HTMLElement>({
    count: rows.length,
    estimateSize: () => CARD_PX,
    overscan: 5,
    scrollMargin: top,
    getItemKey: useRowName(rows, idOf),
  });
  const { drawn, above, below } = useDrawn(virtualizer, list, props, top);
  useEffect(() => {
    const report = () => onScrolled(scrollY > top + CARD_PX);
    addEventListener('scroll', report, { passive: true });
    return () => removeEventListener('scroll', report);
  }, [onScrolled, top]);
  const [title, ...others] = columns;
  return (
    <ul
      ref={list}
      aria-label={label}
      className={styles.cards}
      style={{ paddingTop: above, paddingBottom: Math.max(0, below) }}
    >
      {drawn.map(({ key, row, attributes, checkbox }) => (
        <li key={key} {...attributes}>
          <Group justify="space-between" wrap="nowrap" className={styles.cardTitle}>
            <div data-title>{title?.cell(row)}</div>
            {checkbox}
          </Group>
          <dl>
            {others.map(({ id, header, cell }) => (
              <div key={id}>
                <dt>{header}</dt>
                <dd>{cell(row)}</dd>
              </div>
            ))}
          </dl>
        </li>
      ))}
    </ul>
  );
}

/** Shared by tables and cards: the visible rows, loading more of them, focus, opening and selection. */
function useDrawn<Row, Scrolled extends Element | Window>(
  virtualizer: Virtualizer<Scrolled, HTMLElement>,
  box: RefObject<HTMLElement | null>,
  { rows, idOf, selection, active, onActive, onEnd }: RowsProps<Row>,
  top = 0,
) {
  const items = virtualizer.getVirtualItems();
  const lastIndex = items.at(-1)?.index ?? -1;
  useEffect(() => {
    if (lastIndex >= rows.length - NEAR_END) onEnd();
  }, [lastIndex, rows, onEnd]);
  useEffect(() => {
    if (active < 0) return;
    virtualizer.scrollToIndex(active);
    const row = () => box.current?.querySelector<HTMLElement>(`[data-index="${active}"]`);
    // The row gets the focus immediately, so that it also gets an Enter that follows. If it is not rendered yet, it
    // gets the focus on the next frame.
    if (row()) row()?.focus({ preventScroll: true });
    else requestAnimationFrame(() => row()?.focus({ preventScroll: true }));
  }, [active, virtualizer, box]);
  const drawn = items.map(({ index, key }) => {
    const row = rows[index] as Row;
    const id = idOf(row);
    const isSelected = selection?.ids.has(id) ?? false;
    return {
      key,
      row,
      index,
      attributes: {
        ref: virtualizer.measureElement,
        'data-index': index,
        'data-chosen': isSelected || undefined,
        tabIndex: -1,
        onFocus: (event: FocusEvent) => event.target === event.currentTarget && onActive(index),
        onClick: (event: MouseEvent) => isOnRowItself(event.target) && openRow(event.currentTarget),
      },
      checkbox: selection && (
        <Checkbox
          aria-label={`Select ${id}`}
          checked={isSelected}
          onChange={() => selection.onChange(toggled(selection.ids, id))}
        />
      ),
    };
  });
  return {
    drawn,
    above: (items[0]?.start ?? top) - top,
    below: virtualizer.getTotalSize() - ((items.at(-1)?.end ?? top) - top),
  };
}

/** Activates the link or button in the first column, if there is one. */
export function openRow(row: Element): void {
  row.querySelector<HTMLElement>('[data-title] :is(a, button)')?.click();
}

export function toggled(ids: ReadonlySet<string>, id: string): ReadonlySet<string> {
  const changed = new Set(ids);
  if (!changed.delete(id)) changed.add(id);
  return changed;
}

/** A click on a control in the row, or the end of a text selection, does not open the row. */
function isOnRowItself(target: EventTarget): boolean {
  if (!(target instanceof Element)) return false;
  return target.closest('a, button, input, label, summary') === null && (getSelection()?.isCollapsed ?? true);
}

/**
 * Returns the same function until the rows change, because the virtualizer measures every row again for a new function.
 */
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
