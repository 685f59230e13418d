/** A message for people as its reader sees it, about: a mail in a frame without scripts, or a chat message as plain text. */
import { Anchor, SegmentedControl, Stack, Text, useComputedColorScheme } from '@mantine/core';
import { Fragment, type ReactNode, useMemo, useRef, useState } from 'react';
import { JsonView } from '../code.tsx';
import { type Letter, letterPage } from './letter.ts';
import type { Span } from './markup.ts';
import { type Chat, type Message, messageOf, type Part } from './message.ts';
import styles from './message-view.module.css';

const MEDIA = { mail: 'Mail', slack: 'Slack', discord: 'Discord', teams: 'Teams' } as const;

interface BodyViewProps {
  /** As it is sent. */
  body: string;
  /** For screen readers: `Request body`. */
  label: string;
  /** Shown above JSON. */
  note?: ReactNode;
}

/** The body of a delivery: as a message if it is one, otherwise as JSON. */
export function BodyView({ body, label, note }: BodyViewProps) {
  const message = useMemo(() => messageOf(body), [body]);
  const json = (
    <>
      {note}
      <JsonView value={body} label={label} />
    </>
  );
  return message === undefined ? json : <MessageView message={message} json={json} label={label} />;
}

function MessageView({ message, json, label }: { message: Message; json: ReactNode; label: string }) {
  const [shown, setShown] = useState('message');
  const { medium } = message;
  return (
    <Stack gap="xs">
      <SegmentedControl
        aria-label={`Form of the ${label.charAt(0).toLowerCase()}${label.slice(1)}`}
        data={[
          { value: 'message', label: MEDIA[medium] },
          ...(medium === 'mail' ? [{ value: 'text', label: 'Text' }] : []),
          { value: 'json', label: 'JSON' },
        ]}
        value={shown}
        onChange={setShown}
        style={{ alignSelf: 'flex-start' }}
      />
      {shown === 'json' ? (
        json
      ) : medium === 'mail' ? (
        <LetterView letter={message.letter} asText={shown === 'text'} />
      ) : (
        <ChatView medium={medium} parts={message.parts} />
      )}
    </Stack>
  );
}

function LetterView({ letter: { subject, text, html }, asText }: { letter: Letter; asText: boolean }) {
  return (
    <section className={styles.message} aria-label="Mail">
      <div className={styles.subject}>
        <Text span size="xs" c="dimmed">
          Subject
        </Text>
        <Text span size="sm" fw={600} style={{ overflowWrap: 'anywhere' }}>
          {subject}
        </Text>
      </div>
      {asText ? (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable box must be reachable by keyboard
        <pre className={styles.plain} tabIndex={0}>
          {text}
        </pre>
      ) : (
        <LetterFrame html={html} />
      )}
    </section>
  );
}

/** Without `allow-scripts`, nothing in the frame runs; the policy that it inherits also blocks remote resources. */
const SANDBOX = 'allow-same-origin allow-popups allow-popups-to-escape-sandbox';
const LEAST_HEIGHT = 120;
const MOST_HEIGHT = 640;

function LetterFrame({ html }: { html: string }) {
  const scheme = useComputedColorScheme('light');
  const frame = useRef<HTMLIFrameElement>(null);
  const [height, setHeight] = useState(LEAST_HEIGHT);
  const page = useMemo(() => letterPage(html, { nonce: nonce(), scheme }), [html, scheme]);
  return (
    <iframe
      ref={frame}
      title="Mail"
      className={styles.frame}
      sandbox={SANDBOX}
      srcDoc={page}
      height={height}
      onLoad={() => {
        const content = frame.current?.contentDocument?.documentElement.scrollHeight ?? 0;
        setHeight(Math.min(MOST_HEIGHT, Math.max(LEAST_HEIGHT, content)));
      }}
    />
  );
}

function nonce(): string {
  return document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? '';
}

function ChatView({ medium, parts }: { medium: Chat; parts: readonly Part[] }) {
  return (
    <section className={`${styles.message} ${styles.chat}`} aria-label={`Message in ${MEDIA[medium]}`}>
      {parts.map((part, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a part is its place in the message
        <PartView key={index} part={part} />
      ))}
    </section>
  );
}

function PartView({ part }: { part: Part }) {
  if (part.kind === 'line') return <hr className={styles.line} />;
  if (part.kind === 'code') return <pre className={styles.code}>{part.text}</pre>;
  return (
    <p className={styles[part.kind]}>
      <Spans spans={part.spans} />
    </p>
  );
}

function Spans({ spans }: { spans: readonly Span[] }) {
  return spans.map(({ text, isBold, isItalic, isStruck, isCode, url }, index) => {
    let said: ReactNode = text;
    if (isCode) said = <code>{said}</code>;
    if (isItalic) said = <em>{said}</em>;
    if (isBold) said = <strong>{said}</strong>;
    if (isStruck) said = <del>{said}</del>;
    if (url !== undefined) {
      said = (
        <Anchor inherit href={url} target="_blank" rel="noopener noreferrer" underline="always">
          {said}
        </Anchor>
      );
    }
    const key = `${index} ${text}`;
    return <Fragment key={key}>{said}</Fragment>;
  });
}
