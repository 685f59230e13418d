/** Keyboard shortcuts: those of the shell, and those of the current page. */
import { useEffect, useRef, useSyncExternalStore } from 'react';
import { isTyping } from '../parts/typing.ts';

export interface Shortcut {
  /** One key, or several with spaces between: `?`, `g w`. */
  keys: string;
  /** What it does, for the list of shortcuts: `Go to Workflows`. */
  label: string;
  run: () => void;
}

/** The longest time between the keys of a sequence, in milliseconds. */
const SEQUENCE_MS = 1_500;
const STORED = 'flowhook-shortcuts';

const all = new Set<Shortcut>();
const listeners = new Set<() => void>();
let shown: readonly Shortcut[] = [];
let isOn = stored();
let pressed: { keys: string; atMs: number } | undefined;

/** Registers a shortcut while the component is mounted. */
export function useShortcut(keys: string, label: string, run: () => void): void {
  const latest = useRef(run);
  useEffect(() => {
    latest.current = run;
  });
  useEffect(() => {
    const shortcut = { keys, label, run: () => latest.current() };
    all.add(shortcut);
    changed();
    return () => {
      all.delete(shortcut);
      changed();
    };
  }, [keys, label]);
}

/** All shortcuts of the moment. */
export function useShortcuts(): readonly Shortcut[] {
  return useSyncExternalStore(subscribe, () => shown);
}

/** Whether single-key shortcuts are on: users of speech input must be able to turn them off (WCAG 2.1.4). */
export function useShortcutsOn(): boolean {
  return useSyncExternalStore(subscribe, () => isOn);
}

export function setShortcutsOn(on: boolean): void {
  isOn = on;
  try {
    localStorage.setItem(STORED, on ? 'on' : 'off');
  } catch {
    // Storage is forbidden: the choice lasts as long as the page.
  }
  changed();
}

/** Listens to the page, once for all shortcuts. */
export function useShortcutKeys(): void {
  useEffect(() => {
    document.addEventListener('keydown', press);
    return () => document.removeEventListener('keydown', press);
  }, []);
}

function press(event: KeyboardEvent): void {
  if (!isOn || event.ctrlKey || event.metaKey || event.altKey || event.repeat || isTyping(event.target))
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

function changed(): void {
  shown = [...all];
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function stored(): boolean {
  try {
    return localStorage.getItem(STORED) !== 'off';
  } catch {
    return true;
  }
}
