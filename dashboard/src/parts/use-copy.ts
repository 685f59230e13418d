/** Copies to the clipboard, which browsers keep from pages over plain HTTP: there by the older way. */
import { useEffect, useState } from 'react';
import { sayRefused } from './action.tsx';

/** So long a button says that it has copied, in milliseconds. */
const SAYS_MS = 1_500;

/** Copies a text; where neither way is open, it says so. */
export function useCopy(): { copied: boolean; copy: (text: string) => void } {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => setCopied(false), SAYS_MS);
    return () => clearTimeout(timer);
  }, [copied]);
  const copy = async (text: string) => {
    if (await isCopied(text)) setCopied(true);
    else sayRefused(new Error('The browser did not let the page copy: choose the text, and press Ctrl+C'));
  };
  return { copied, copy: (text) => void copy(text) };
}

async function isCopied(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return isCopiedFromField(text);
  }
}

/** Beside what has the focus: a dialog or a row of a table would take it for being left. */
function isCopiedFromField(text: string): boolean {
  const focused = document.activeElement instanceof HTMLElement ? document.activeElement : null;
  const field = document.createElement('textarea');
  field.value = text;
  field.className = 'visually-hidden';
  (focused?.parentElement ?? document.body).append(field);
  field.select();
  const isDone = document.execCommand('copy');
  field.remove();
  focused?.focus({ preventScroll: true });
  return isDone;
}
