/** A workflow file for reading: its lines with their numbers, coloured a little. */
import { Copy } from '../../parts/copy.tsx';
import styles from './source-text.module.css';
import { type SourceLanguage, sourceTokens } from './source-tokens.ts';

/** Larger texts are shown without colours: each word of them would be an element. */
const MAX_COLOURED = 100_000;

export function SourceText({
  text,
  language,
  label,
}: {
  text: string;
  language: SourceLanguage;
  label: string;
}) {
  const lines = text.replace(/\n$/, '').split('\n');
  return (
    <div className={styles.box}>
      <section className={styles.scroll} aria-label={label}>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard */}
        <pre className={styles.text} tabIndex={0}>
          {text.length > MAX_COLOURED
            ? text
            : sourceTokens(lines, language).map((tokens, index) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: a line is its number
                <span key={index} className={styles.line}>
                  {tokens.map(({ kind, text: part, at }) => (
                    <span key={at} className={kind === 'plain' ? undefined : styles[kind]}>
                      {part}
                    </span>
                  ))}
                  {'\n'}
                </span>
              ))}
        </pre>
      </section>
      <div className={styles.copy}>
        <Copy value={text} label={`Copy: ${label}`} />
      </div>
    </div>
  );
}
