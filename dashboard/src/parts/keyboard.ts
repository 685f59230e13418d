/** The keyboard: shortcuts of the frame and of the current page, and the keys of tables. */
import { type RefObject, useEffect, useRef } from 'react';
import { Remembered, Store } from './store.ts';

export interface Shortcut {
  /** One key, or several with spaces between: `?`, `g w`. */
  keys: string;
  /** What it does, for the list of shortcuts: `Go to Workflows`. */
  label: string;
  run: () => void;
}

/** The longest time between the keys of a sequence, in milliseconds. */
const SEQUENCE_MS = 1_500;
const all = new Set<Shortcut>();
let pressed: { keys: string; atMs: number } | undefined;

/** All shortcuts of the moment. */
export const shortcuts = new Store<readonly Shortcut[]>([]);

/** Whether single-key shortcuts are on: users of speech input must be able to turn them off (WCAG 2.1.4). */
export const singleKeys = new Remembered('flowhook-shortcuts', ['on', 'off']);

/** Registers a shortcut while the component is mounted. */
export function useShortcut(keys: string, label: string, run: () => void): void {
  const latest = useRef(run);
  useEffect(() => {
    latest.current = run;
  });
  useEffect(() => {
    const shortcut = { keys, label, run: () => latest.current() };
    all.add(shortcut);
    shortcuts.set([...all]);
    return () => {
      all.delete(shortcut);
      shortcuts.set([...all]);
    };
  }, [keys, label]);
}

/** Listens to the page, once for all shortcuts. */
export function useShortcutKeys(): void {
  useEffect(() => {
    document.addEventListener('keydown', press);
    return () => document.removeEventListener('keydown', press);
  }, []);
}

function press(event: KeyboardEvent): void {
  if (
    singleKeys.value === 'off' ||
    event.ctrlKey ||
    event.metaKey ||
    event.altKey ||
    event.repeat ||
    isTyping(event.target)
  )
    return;
  const before = pressed !== undefined && event.timeStamp - pressed.atMs < SEQUENCE_MS ? pressed.keys : '';
  const keys = [before, event.key].filter((key) => key !== '').join(' ');
  // The last one registered: a page's own has precedence over the shell's; but `g r` is never the `r` of a page.
  const called = (name: string) => [...all].findLast((shortcut) => shortcut.keys === name);
  const found = called(keys) ?? called(event.key);
  pressed = undefined;
  if (found !== undefined) {
    event.preventDefault();
    found.run();
  } else if ([...all].some((shortcut) => shortcut.keys.startsWith(`${event.key} `))) {
    pressed = { keys: event.key, atMs: event.timeStamp };
  }
}

/** Rows by the keyboard: `j` and `k` move, Enter opens, `x` chooses, Escape leaves. */
interface RowKeys {
  /** Of the row that has the focus; −1: none. */
  active: number;
  count: number;
  onMove: (index: number) => void;
  onOpen: (row: Element) => void;
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
      const row =
        event.target instanceof Element && event.target.matches('[data-index]') ? event.target : null;
      if (event.key === 'j') onMove(Math.min(count - 1, active + 1));
      else if (event.key === 'k') onMove(Math.max(0, active - 1));
      else if (event.key === 'Enter' && row !== null && active >= 0) onOpen(row);
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

const KINDS_WITHOUT_TEXT = ['checkbox', 'radio', 'button', 'submit', 'reset', 'range', 'file'];

/** Keys typed into a field or an open dialog are no shortcuts. */
function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target.closest('[role="dialog"], [role="menu"], [role="listbox"]') !== null) return true;
  if (target instanceof HTMLInputElement) return !KINDS_WITHOUT_TEXT.includes(target.type);
  return target.isContentEditable || target.matches('textarea, select');
}
