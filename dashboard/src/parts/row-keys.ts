/** Rows by the keyboard: `j` and `k` move, Enter opens, `x` chooses, Escape leaves. */
import { type RefObject, useEffect, useRef } from 'react';
import { isTyping } from './typing.ts';

export interface RowKeys {
  /** Of the row that has the focus; −1: none. */
  active: number;
  count: number;
  onMove: (index: number) => void;
  onOpen: ((index: number) => void) | undefined;
  onChoose: ((index: number) => void) | undefined;
}

/** Listens on the whole page. Of several tables the one with the focus is meant, else the first. */
export function useRowKeys(ref: RefObject<HTMLElement | null>, keys: RowKeys): void {
  const latest = useRef(keys);
  useEffect(() => {
    latest.current = keys;
  });
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const { active, count, onMove, onOpen, onChoose } = latest.current;
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      if (ref.current === null || count === 0 || !isMeant(ref.current)) return;
      const isOnRow = event.target instanceof HTMLElement && event.target.dataset.index !== undefined;
      if (event.key === 'j') onMove(Math.min(count - 1, active + 1));
      else if (event.key === 'k') onMove(Math.max(0, active - 1));
      else if (event.key === 'Enter' && isOnRow && active >= 0) onOpen?.(active);
      else if (event.key === 'x' && active >= 0) onChoose?.(active);
      else if (event.key === 'Escape' && active >= 0) onMove(-1);
      else return;
      event.preventDefault();
    };
    document.addEventListener('keydown', press);
    return () => document.removeEventListener('keydown', press);
  }, [ref]);
}

function isMeant(element: HTMLElement): boolean {
  const all = [...document.querySelectorAll('[data-rows]')];
  const focused = all.find((each) => each.contains(document.activeElement));
  return (focused ?? all[0]) === element;
}
