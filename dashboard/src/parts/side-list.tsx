/** A list of numbered items beside the content of the selected one; above it in a narrow window. */
import { UnstyledButton } from '@mantine/core';
import type { ReactNode } from 'react';
import styles from './side-list.module.css';

export function SideList<Item extends { number: number }>(props: {
  label: string;
  items: readonly Item[];
  chosen: number;
  onChoose: (number: number) => void;
  line: (item: Item) => ReactNode;
  /** A button below the list. */
  more?: ReactNode;
  children: ReactNode;
}) {
  const { label, items, chosen, onChoose, line, more, children } = props;
  return (
    <div className={styles.sides}>
      <nav aria-label={label}>
        <ul className={styles.list} aria-label={label}>
          {items.map((item) => (
            <li key={item.number}>
              <UnstyledButton
                className={styles.item}
                aria-current={item.number === chosen || undefined}
                onClick={() => onChoose(item.number)}
              >
                {line(item)}
              </UnstyledButton>
            </li>
          ))}
        </ul>
        {more}
      </nav>
      {children}
    </div>
  );
}
