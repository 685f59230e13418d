/** Whether a key belongs to a field, or to a dialog that is open, rather than to the page. */

const KINDS_WITHOUT_TEXT = ['checkbox', 'radio', 'button', 'submit', 'reset', 'range', 'file'];

/** Keys typed into a field or an open dialog are no shortcuts. */
export function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target.closest('[role="dialog"], [role="menu"], [role="listbox"]') !== null) return true;
  if (target instanceof HTMLInputElement) return !KINDS_WITHOUT_TEXT.includes(target.type);
  return target.isContentEditable || target.matches('textarea, select');
}
