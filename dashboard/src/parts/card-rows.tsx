/** The rows of a list as cards below each other, for narrow windows. They scroll with the page. */
import { Checkbox, Group } from '@mantine/core';
import { useWindowVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useLayoutEffect, useRef, useState } from 'react';
import styles from './data-table.module.css';
import { isOnRowItself, NEAR_END, type RowsProps, toggled } from './data-table.tsx';
import { useRowName } from './row-name.ts';

const CARD_PX = 140;

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
