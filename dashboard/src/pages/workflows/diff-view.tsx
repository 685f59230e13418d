/** What an edit changes, line by line. */

import { lineDiff } from './line-diff.ts';
import styles from './source-text.module.css';

const SIGNS = { same: ' ', added: '+', removed: '−' };

export function DiffView({ before, after }: { before: string; after: string }) {
  return (
    <section className={styles.box} aria-label="What changes">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard */}
      <pre className={styles.text} tabIndex={0}>
        {lineDiff(before, after).map(({ kind, text }, index) => {
          const line = (
            <>
              <span className={styles.sign}>{SIGNS[kind]}</span>
              {text}
              {'\n'}
            </>
          );
          const Line = kind === 'same' ? 'span' : kind === 'added' ? 'ins' : 'del';
          return (
            // biome-ignore lint/suspicious/noArrayIndexKey: a line is its number
            <Line key={index} className={kind === 'same' ? undefined : styles[kind]}>
              {line}
            </Line>
          );
        })}
      </pre>
    </section>
  );
}
