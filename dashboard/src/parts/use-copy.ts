/** Copies to the clipboard. Over plain HTTP browsers offer no clipboard API: there `execCommand` is used. */
import { useEffect, useState } from 'react';
import { sayRefused } from './action.tsx';

/** How long a button shows that it has copied, in milliseconds. */
const SAYS_MS = 1_500;

/** Copies a text; shows an error if neither way works. */
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

/** The field is put beside the focused element: a dialog or a table row would otherwise notice the focus leaving. */
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
