/** Says to those who do not see the page what has happened on it. */
import { useEffect, useRef } from 'react';
import { Store } from './store.ts';

/** What was said last, such as `Run finished: failed`, for the live region of the frame. */
export const announced = new Store('');

/** Announces what a change comes to, if anything. @param value undefined: not known yet */
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
