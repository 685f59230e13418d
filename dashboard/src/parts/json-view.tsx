/** JSON for reading: as text, never as markup. */
import { Copy } from './copy.tsx';
import { type JsonToken, tokensOf } from './json-tokens.ts';
import styles from './json-view.module.css';

export interface JsonViewProps {
  /** Any value of JSON. A text is shown as it is, indented where it is JSON. */
  value: unknown;
  /** What it is, to those who do not see it: `The body of the event`. */
  label: string;
  /** Of CSS; it scrolls beyond. */
  maxHeight?: string;
}

/** Larger texts are shown without colours: each word of them would be an element. */
const MAX_COLOURED = 100_000;

/** A value, indented, coloured, with its copy button. */
export function JsonView({ value, label, maxHeight = '480px' }: JsonViewProps) {
  const text = typeof value === 'string' ? indented(value) : JSON.stringify(value, null, 2);
  return (
    <div className={styles.box}>
      <div className={styles.scroll} style={{ maxHeight }}>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex lint/a11y/useSemanticElements: what scrolls is reached by the keyboard, and is no form */}
        <pre className={styles.text} tabIndex={0} role="group" aria-label={label}>
          {text.length > MAX_COLOURED
            ? text
            : tokensOf(text).map(({ kind, text: part, at }: JsonToken) =>
                kind === 'plain' ? (
                  part
                ) : (
                  <span key={at} className={styles[kind]}>
                    {part}
                  </span>
                ),
              )}
        </pre>
      </div>
      <div className={styles.copy}>
        <Copy value={text} label={`Copy: ${label}`} />
      </div>
    </div>
  );
}

function indented(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
