/** A sentence of the service: what stands between backticks is code, and times are in the zone of the reader. */
import { Fragment } from 'react';
import { sentenceParts } from './sentence.ts';
import { Time } from './time.tsx';

export function Prose({ text }: { text: string }) {
  return sentenceParts(text).map((part, index) => {
    const key = `${index} ${part.text}`;
    if (part.kind === 'code') return <code key={key}>{part.text}</code>;
    if (part.kind === 'time') return <Time key={key} at={part.text} as="itself" />;
    return <Fragment key={key}>{part.text}</Fragment>;
  });
}
