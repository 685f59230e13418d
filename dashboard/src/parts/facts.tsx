/** A few facts side by side: a name in grey, what it is below. */
import { Text } from '@mantine/core';
import type { ReactNode } from 'react';
import styles from './facts.module.css';

export type Fact = readonly [name: string, value: ReactNode];

/** As many beside each other as there is room for. */
export function Facts({ facts }: { facts: readonly Fact[] }) {
  return (
    <dl className={styles.facts}>
      {facts.map(([name, value]) => (
        <div key={name} className={styles.fact}>
          <Text component="dt" size="xs" c="dimmed">
            {name}
          </Text>
          {/* Broken between words, unless one is longer than the line. */}
          <Text component="dd" size="sm" m={0} className="numbers" style={{ overflowWrap: 'break-word' }}>
            {value}
          </Text>
        </div>
      ))}
    </dl>
  );
}
