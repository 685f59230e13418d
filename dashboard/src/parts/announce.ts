/** Announces changes on the page to users of screen readers. */
import { useEffect, useRef } from 'react';
import { Store } from './store.ts';

/** The latest announcement, such as `Run of people: Failed`, which the shell's live region reads out. */
export const announced = new Store('');

/** Announces a change of `value` in the words that `words` returns; false announces nothing. */
export function useAnnouncedChange<Value>(
  value: Value | undefined,
  words: (now: Value, before: Value) => string | false,
): void {
  const before = useRef(value);
  useEffect(() => {
    if (value === undefined || value === before.current) return;
    const text = before.current !== undefined && words(value, before.current);
    if (text) announced.set(text);
    before.current = value;
  });
}
