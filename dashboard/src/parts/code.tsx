/** Texts of others for reading, in a box with a copy button: as text, never as markup. */
import type { ReactNode } from 'react';
import styles from './code.module.css';
import { Copy } from './copy.tsx';
import { type SourceLanguage, tokensOf } from './tokens.ts';

/** Larger texts are shown without colours: each word of them would be an element. */
const MAX_COLOURED = 100_000;

/**
 * JSON, indented and coloured.
 *
 * @param props.value any value of JSON. A text is shown as it is, indented where it is JSON
 * @param props.label what it is, to those who do not see it: `The body of the event`
 * @param props.maxHeight of CSS; it scrolls beyond
 */
export function JsonView({
  value,
  label,
  maxHeight = '480px',
}: {
  value: unknown;
  label: string;
  maxHeight?: string;
}) {
  const text = typeof value === 'string' ? indented(value) : JSON.stringify(value, null, 2);
  return (
    <CodeBox text={text} label={label} maxHeight={maxHeight}>
      {text.length > MAX_COLOURED ? text : <Coloured text={text} language="json" />}
    </CodeBox>
  );
}

/** A workflow file: its lines with their numbers. A text that goes on over lines is coloured in its first one only. */
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
    <CodeBox text={text} label={label}>
      {text.length > MAX_COLOURED
        ? text
        : lines.map((line, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: a line is its number
            <span key={index} className={styles.line}>
              <Coloured text={line} language={language} />
              {'\n'}
            </span>
          ))}
    </CodeBox>
  );
}

/** Headers as they were. */
export function HeaderTable({ label, headers }: { label: string; headers: Record<string, string> }) {
  const lines = Object.entries(headers);
  if (lines.length === 0) return <p className={styles.none}>None.</p>;
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
          label={`Copy: ${label}`}
        />
      </div>
    </div>
  );
}

function CodeBox({
  text,
  label,
  maxHeight,
  children,
}: {
  text: string;
  label: string;
  maxHeight?: string;
  children: ReactNode;
}) {
  return (
    <div className={styles.box}>
      <div className={styles.scroll} style={{ maxHeight }}>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex lint/a11y/useSemanticElements: what scrolls is reached by the keyboard, and is no form */}
        <pre className={styles.text} tabIndex={0} role="group" aria-label={label}>
          {children}
        </pre>
      </div>
      <div className={styles.copy}>
        <Copy value={text} label={`Copy: ${label}`} />
      </div>
    </div>
  );
}

function Coloured({ text, language }: { text: string; language: SourceLanguage }) {
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

function indented(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
