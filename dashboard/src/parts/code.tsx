/** Code and untrusted text in a box with a copy button: rendered as text, never as markup. */
import type { ReactNode } from 'react';
import styles from './code.module.css';
import { Copy } from './copy.tsx';
import { uncapitalized } from './format.ts';
import { indented, type SourceLanguage, tokensOf } from './tokens.ts';

/** Maximum length of a highlighted text, in characters, because each token becomes an element. */
const MAX_HIGHLIGHTED = 100_000;

/**
 * JSON, indented and highlighted.
 *
 * @param props.value any JSON value; a string is indented if it contains JSON, otherwise shown as it is
 * @param props.label for screen readers: `Event body`
 * @param props.maxHeight a CSS length; longer content scrolls
 */
export function JsonView(props: { value: unknown; label: string; maxHeight?: string }) {
  const { value, label, maxHeight = '480px' } = props;
  const text = typeof value === 'string' ? indented(value) : JSON.stringify(value, null, 2);
  return (
    <CodeBox text={text} label={label} maxHeight={maxHeight}>
      {text.length > MAX_HIGHLIGHTED ? text : <Highlighted text={text} language="json" />}
    </CodeBox>
  );
}

/** A workflow file with line numbers. Of a string or comment over several lines, only the first is highlighted. */
export function SourceText(props: { text: string; language: SourceLanguage; label: string }) {
  const { text, language, label } = props;
  const lines = text.replace(/\n$/, '').split('\n');
  return (
    <CodeBox text={text} label={label}>
      {text.length > MAX_HIGHLIGHTED
        ? text
        : lines.map((line, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: a line is its number
            <span key={index} className={styles.line}>
              <Highlighted text={line} language={language} />
              {'\n'}
            </span>
          ))}
    </CodeBox>
  );
}

/** HTTP headers. */
export function HeaderTable({ label, headers }: { label: string; headers: Record<string, string> }) {
  const lines = Object.entries(headers);
  if (lines.length === 0) return <p className={styles.none}>No headers</p>;
  return (
    <div className={styles.box}>
      <div className={styles.text}>
        <table aria-label={label}>
          <tbody>
            {lines.map(([name, value]) => (
              <tr key={name}>
                <th scope="row">{name}</th>
                <td>{value}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <div className={styles.copy}>
        <Copy
          value={() => lines.map(([name, value]) => `${name}: ${value}`).join('\n')}
          label={`Copy ${uncapitalized(label)}`}
        />
      </div>
    </div>
  );
}

function CodeBox(props: { text: string; label: string; maxHeight?: string; children: ReactNode }) {
  const { text, label, maxHeight, children } = props;
  return (
    <div className={styles.box}>
      <div className={styles.scroll} style={{ maxHeight }}>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex lint/a11y/useSemanticElements: a scrollable box must be reachable by keyboard, and a fieldset would be a form */}
        <pre className={styles.text} tabIndex={0} role="group" aria-label={label}>
          {children}
        </pre>
      </div>
      <div className={styles.copy}>
        <Copy value={text} label={`Copy ${uncapitalized(label)}`} />
      </div>
    </div>
  );
}

function Highlighted({ text, language }: { text: string; language: SourceLanguage }) {
  return tokensOf(text, language).map(({ kind, text: part, at }) =>
    kind === 'plain' ? (
      part
    ) : (
      <span key={at} className={styles[kind]}>
        {part}
      </span>
    ),
  );
}
