/** Keyboard shortcuts of the shell, of the current page and of tables. */
import { type RefObject, useEffect, useRef } from 'react';
import { Remembered, Store } from './store.ts';

export interface Shortcut {
  /** One key, or a sequence separated by spaces: `?`, `g w`. */
  keys: string;
  /** In the list of shortcuts: `Go to Workflows`. */
  label: string;
  run: () => void;
}

/** The maximum time between two keys of a sequence. */
const SEQUENCE_MS = 1_500;
const all = new Set<Shortcut>();
let pressed: { keys: string; atMs: number } | undefined;

export const shortcuts = new Store<readonly Shortcut[]>([]);

/** Whether single-key shortcuts are enabled. Users of speech input must be able to disable them (WCAG 2.1.4). */
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

/** Handles the keys of all shortcuts; called once, by the shell. */
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
  // The latest one wins, so a page overrides the shell. A sequence wins over its last key: `g r` is not `r`.
  const named = (name: string) => [...all].findLast((shortcut) => shortcut.keys === name);
  const found = named(keys) ?? named(event.key);
  pressed = undefined;
  if (found !== undefined) {
    event.preventDefault();
    found.run();
  } else if ([...all].some((shortcut) => shortcut.keys.startsWith(`${event.key} `))) {
    pressed = { keys: event.key, atMs: event.timeStamp };
  }
}

/** Keys of a table: `j` and `k` move, Enter opens, `x` selects, Escape leaves. */
interface RowKeys {
  /** Index of the focused row; −1 means none. */
  active: number;
  count: number;
  onMove: (index: number) => void;
  onOpen: (row: Element) => void;
  onSelect: ((index: number) => void) | undefined;
}

/** Handles the keys of a table on the whole page. Of several tables, the focused or else the first one reacts. */
export function useRowKeys(ref: RefObject<HTMLElement | null>, keys: RowKeys): void {
  const latest = useRef(keys);
  useEffect(() => {
    latest.current = keys;
  });
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const { active, count, onMove, onOpen, onSelect } = latest.current;
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      if (ref.current === null || count === 0 || !isTarget(ref.current)) return;
      const row =
        event.target instanceof Element && event.target.matches('[data-index]') ? event.target : null;
      if (event.key === 'j') onMove(Math.min(count - 1, active + 1));
      else if (event.key === 'k') onMove(Math.max(0, active - 1));
      else if (event.key === 'Enter' && row !== null && active >= 0) onOpen(row);
      else if (event.key === 'x' && active >= 0) onSelect?.(active);
      else if (event.key === 'Escape' && active >= 0) onMove(-1);
      else return;
      event.preventDefault();
    };
    document.addEventListener('keydown', press);
    return () => document.removeEventListener('keydown', press);
  }, [ref]);
}

function isTarget(element: HTMLElement): boolean {
  const all = [...document.querySelectorAll('[data-rows]')];
  const focused = all.find((each) => each.contains(document.activeElement));
  return (focused ?? all[0]) === element;
}

const INPUTS_WITHOUT_TEXT = ['checkbox', 'radio', 'button', 'submit', 'reset', 'range', 'file'];

/** Keys in a text field, dialog or menu are not shortcuts. */
function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target.closest('[role="dialog"], [role="menu"], [role="listbox"]') !== null) return true;
  if (target instanceof HTMLInputElement) return !INPUTS_WITHOUT_TEXT.includes(target.type);
  return target.isContentEditable || target.matches('textarea, select');
}
