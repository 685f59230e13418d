/** Says to those who do not see the page what has happened on it. */
import { useSyncExternalStore } from 'react';

let said = '';
const listeners = new Set<() => void>();

/** Such as `Run finished: failed`. The same words twice are said once. */
export function announce(text: string): void {
  said = text;
  for (const listener of listeners) listener();
}

/** What was said last, for the live region of the frame. */
export function useAnnounced(): string {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => said,
  );
}
