/** A sentence of the service, of its catalogue or its description: what stands between backticks is code. */
import { Fragment } from 'react';

export function Prose({ text }: { text: string }) {
  return text.split('`').map((part, index) => {
    const key = `${index} ${part}`;
    return index % 2 === 1 ? <code key={key}>{part}</code> : <Fragment key={key}>{part}</Fragment>;
  });
}
