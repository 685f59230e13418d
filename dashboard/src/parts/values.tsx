/** How single values are shown: times, lengths, sentences of the service, counts and URLs. */
import { Group, Text, type TextProps } from '@mantine/core';
import type { Version } from 'flowhook-client';
import { Fragment, type ReactNode } from 'react';
import {
  absolute,
  count,
  duration,
  lasting,
  relative,
  sentenceParts,
  type TimeStyle,
  timeStyle,
  urlParts,
} from './format.ts';
import { tone } from './state-badge.tsx';
import { Store } from './store.ts';
import styles from './values.module.css';

interface TimeProps {
  /** ISO 8601; null: it has not happened. */
  at: string | null;
  /** Stands for null; `–` unless told. */
  none?: string;
  /**
   * In a sentence. `since`: "for 3 min" or "since 2026-11-21 03:04:05"; `at`: "in 3 min" or "at 2026-11-21 03:04:05";
   * `itself`: the time, even where ages are chosen, for a sentence that the service has put together.
   */
  as?: 'since' | 'at' | 'itself';
}

/** A time in the way that is chosen for the page. */
export function Time({ at, none = '–', as }: TimeProps) {
  const style = timeStyle.use();
  if (at === null) return <span>{none}</span>;
  return (
    <time dateTime={at} title={`${absolute(at, 'local')} local\n${absolute(at, 'utc')}`} className="numbers">
      {style === 'relative' && as !== 'itself' ? <Age at={at} as={as} /> : words(at, style, as)}
    </time>
  );
}

function Age({ at, as }: { at: string; as: TimeProps['as'] }) {
  const now = useNow();
  return as === 'since' ? lasting(at, now) : relative(at, now);
}

function words(at: string, style: TimeStyle, as: TimeProps['as']): string {
  const itself = absolute(at, style === 'utc' ? 'utc' : 'local');
  return as === 'since' || as === 'at' ? `${as} ${itself}` : itself;
}

/**
 * How long something took, or has been going on.
 *
 * @param props.from ISO 8601; null: it has not begun
 * @param props.to null: it still goes on, and the number grows
 */
export function Duration({ from, to }: { from: string | null; to: string | null }) {
  if (from === null) return '–';
  return to === null ? <Growing from={from} /> : <Length ms={Date.parse(to) - Date.parse(from)} />;
}

function Growing({ from }: { from: string }) {
  return <Length ms={Math.max(0, Math.floor((useNow() - Date.parse(from)) / 1_000) * 1_000)} />;
}

function Length({ ms }: { ms: number }) {
  return <span className="numbers">{duration(ms)}</span>;
}

/** One clock: all ages tick together, each second, and not while the tab is hidden. */
const now = new Store(Date.now());
setInterval(() => document.hidden || now.set(Date.now()), 1_000);

/** Milliseconds since 1970, to the second. */
export const useNow = now.use;

/** A sentence of the service: what stands between backticks is code, and times are in the zone of the reader. */
export function Prose({ text }: { text: string }) {
  return sentenceParts(text).map((part, index) => {
    const key = `${index} ${part.text}`;
    if (part.kind === 'code') return <code key={key}>{part.text}</code>;
    if (part.kind === 'time') return <Time key={key} at={part.text} as="itself" />;
    return <Fragment key={key}>{part.text}</Fragment>;
  });
}

/** Numbers that belong together: beside each other on one line, however narrow the place is. */
export function Numbers({ children }: { children: ReactNode }) {
  return (
    <Group
      component="span"
      display="inline-flex"
      gap="xs"
      wrap="nowrap"
      className="numbers"
      style={{ whiteSpace: 'nowrap', flexShrink: 0 }}
    >
      {children}
    </Group>
  );
}

/** @param props.withNothing also shows what is none of */
export function CountSigns({
  records: { added, changed, removed },
  withNothing = false,
}: {
  records: Omit<Version['records'], 'total'>;
  withNothing?: boolean;
}) {
  const parts = [
    { sign: '+', value: added, word: 'added', color: tone('good') },
    { sign: '~', value: changed, word: 'changed', color: tone('changed') },
    { sign: '−', value: removed, word: 'removed', color: tone('bad') },
  ];
  return (
    <Numbers>
      {parts
        .filter(({ value }) => withNothing || value > 0)
        .map(({ sign, value, word, color }) => (
          <Text key={word} span inherit title={`${count(value)} ${word}`} c={value === 0 ? 'dimmed' : color}>
            <span aria-hidden="true">
              {sign}
              {count(value)}
            </span>
            <span className="visually-hidden">{`${count(value)} ${word},`}</span>
          </Text>
        ))}
    </Numbers>
  );
}

/**
 * A URL in one line: where it does not fit, its middle is cut. The title has all of it, as has the copy of a selection,
 * and what a screen reader hears. `https://` goes without saying, as in the address bar of a browser.
 */
export function UrlText({ url }: { url: string }) {
  const { scheme, host, middle, end } = urlParts(url);
  return (
    <span
      className={styles.url}
      title={url}
      onCopy={(event) => {
        const selection = getSelection();
        const isWithin = (node: Node | null | undefined) => event.currentTarget.contains(node ?? null);
        if (!isWithin(selection?.anchorNode) || !isWithin(selection?.focusNode)) return;
        event.clipboardData.setData('text/plain', url);
        event.preventDefault();
      }}
    >
      <span className={`visually-hidden ${styles.whole}`}>{url}</span>
      <span className={styles.host} aria-hidden="true">
        {scheme === 'https://' ? host : scheme + host}
      </span>
      {middle !== '' && (
        <span className={styles.middle} aria-hidden="true">
          <bdi dir="ltr">{middle}</bdi>
        </span>
      )}
      <span className={styles.end} aria-hidden="true">
        {end}
      </span>
    </span>
  );
}

/** A side remark, within a line. */
export function Dim(props: TextProps & { children: ReactNode; title?: string }) {
  return <Text span inherit c="dimmed" {...props} />;
}
