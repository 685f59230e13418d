/** Single values: times, durations, messages of the service, counts and URLs. */
import { Anchor, Group, Text, type TextProps } from '@mantine/core';
import { Fragment, type ReactNode } from 'react';
import type { Version } from '../../../client/src/flowhook-client.ts';
import {
  absolute,
  count,
  duration,
  lasting,
  lastLine,
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
  /** ISO 8601; null if it has not happened. */
  at: string | null;
  /** Shown for null (default: `–`). */
  none?: string | undefined;
  /**
   * The form inside a sentence. `since`: "for 3 min" or "since 2026-11-21 03:04:05"; `at`: "in 3 min" or
   * "at 2026-11-21 03:04:05"; `itself`: always absolute, for times in messages of the service.
   */
  as?: 'since' | 'at' | 'itself' | undefined;
}

/** A time in the format that the user chose. The tooltip has it in local time and in UTC. */
export function Time({ at, none = '–', as }: TimeProps) {
  const style = timeStyle.use();
  if (at === null) return <span>{none}</span>;
  return (
    <time
      dateTime={at}
      title={`${absolute(at, 'local')} local time\n${absolute(at, 'utc')}`}
      className="numbers"
    >
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

/** A duration. @param props.from ISO 8601; null before the start @param props.to null while it is still growing */
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

/** One clock for all relative times; it stops while the tab is hidden. */
const now = new Store(Date.now());
setInterval(() => document.hidden || now.set(Date.now()), 1_000);

/** The current time in epoch milliseconds, updated every second. */
export const useNow = now.use;

/** A message of the service: text between backticks becomes code, and times are shown in the user's time zone. */
export function Prose({ text }: { text: string }) {
  return sentenceParts(text).map((part, index) => {
    const key = `${index} ${part.text}`;
    if (part.kind === 'code') return <code key={key}>{part.text}</code>;
    if (part.kind === 'time') return <Time key={key} at={part.text} as="itself" />;
    return <Fragment key={key}>{part.text}</Fragment>;
  });
}

/** Numbers that stay on one line. */
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

/** `+3 ~1 −0`, and words for screen readers. @param props.withZeros also shows counts of zero */
export function CountSigns(props: { records: Omit<Version['records'], 'total'>; withZeros?: boolean }) {
  const { withZeros = false } = props;
  const { added, changed, removed } = props.records;
  const parts = [
    { sign: '+', value: added, word: 'added', color: tone('good') },
    { sign: '~', value: changed, word: 'changed', color: tone('changed') },
    { sign: '−', value: removed, word: 'removed', color: tone('bad') },
  ];
  return (
    <Numbers>
      {parts
        .filter(({ value }) => withZeros || value > 0)
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
 * A URL on one line, cut in the middle if it does not fit. The tooltip, a copied selection and screen readers get the whole
 * URL. `https://` is left out, as in a browser's address bar, and so is `mailto:`.
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
        {/^(https:\/\/|mailto:)$/i.test(scheme) ? host : scheme + host}
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

/** The id of a record, which opens it. @param props.onOpen without it, the id is not clickable */
export function IdButton({ id, onOpen }: { id: string; onOpen?: ((id: string) => void) | undefined }) {
  const look = {
    inherit: true,
    c: 'inherit',
    ff: 'monospace',
    className: styles.id,
    title: id,
    children: id,
  };
  if (onOpen === undefined) return <Text span {...look} />;
  return <Anchor component="button" type="button" onClick={() => onOpen(id)} {...look} />;
}

/** A dimmed sentence. */
export function Note({ children }: { children: ReactNode }) {
  return (
    <Text size="sm" c="dimmed" component="div">
      {children}
    </Text>
  );
}

/** A message of the service on one line. The tooltip has all of it. */
export function Message({ text, isBad, ...props }: TextProps & { text: string; isBad: boolean }) {
  const color = isBad ? 'var(--mantine-color-error)' : 'dimmed';
  return (
    <Text span inherit truncate display="block" c={color} title={text} {...props}>
      <Prose text={lastLine(text)} />
    </Text>
  );
}

/** Dimmed text inside a line. */
export function Dim(props: TextProps & { children: ReactNode; title?: string }) {
  return <Text span inherit c="dimmed" {...props} />;
}
