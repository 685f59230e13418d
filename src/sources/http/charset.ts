/** Finds the character set of a response: from the definition, a byte order mark, the server or the text itself. */
import { isUtf8 } from 'node:buffer';

/** For text that is not UTF-8 and names no character set; browsers assume the same in most of the world. */
const FALLBACK = 'windows-1252';

interface Charset {
  /** TextDecoder's name for it. */
  label: string;
  /** Says so when the response claims UTF-8 and is not. */
  warning: string | undefined;
}

/** @param head the first bytes; `hints.whole` when there are no more */
export function charsetOf(
  head: Uint8Array,
  hints: { charset: string | null; contentType: string; whole: boolean },
): Charset {
  if (hints.charset !== null) return { label: known(hints.charset) ?? FALLBACK, warning: undefined };
  const marked = byMark(head);
  if (marked !== undefined) return { label: marked, warning: undefined };
  const said = /charset\s*=\s*["']?([^"';,\s]+)/i.exec(hints.contentType)?.[1] ?? saidInText(head);
  const label = said === undefined ? undefined : known(said);
  if (label !== undefined && label !== 'utf-8') return { label, warning: undefined };
  if (head.indexOf(0) === -1 && isUtf8(upToCharacter(head, hints.whole)))
    return { label: 'utf-8', warning: undefined };
  const guessed = byZeros(head) ?? FALLBACK;
  return {
    label: guessed,
    warning:
      label === undefined
        ? undefined
        : `The answer says that it is UTF-8 and is not: it is read as ${guessed}. Name its character set with \`source.charset\``,
  };
}

/** TextDecoder's name for a label; undefined if it does not know it. */
export function known(label: string): string | undefined {
  try {
    return new TextDecoder(label).encoding;
  } catch {
    return undefined;
  }
}

function byMark(head: Uint8Array): string | undefined {
  const [a, b, c] = head;
  if (a === 0xef && b === 0xbb && c === 0xbf) return 'utf-8';
  if (a === 0xff && b === 0xfe) return 'utf-16le';
  if (a === 0xfe && b === 0xff) return 'utf-16be';
  return undefined;
}

/** ASCII letters in UTF-16 have a zero in every other byte. */
function byZeros(head: Uint8Array): string | undefined {
  if (head.length < 2) return undefined;
  if (head[0] === 0 && head[1] !== 0) return 'utf-16be';
  return head[0] !== 0 && head[1] === 0 ? 'utf-16le' : undefined;
}

/**
 * `<meta charset=…>`, `<meta … content="text/html; charset=…">` or `<?xml … encoding="…"?>`. Only in markup: in JSON or
 * CSV such a text would be a value.
 */
function saidInText(head: Uint8Array): string | undefined {
  const text = Buffer.from(head.buffer, head.byteOffset, Math.min(head.length, 2_048)).toString('latin1');
  if (!/^\s*</.test(text)) return undefined;
  const xml = /^\s*<\?xml[^>]*\bencoding\s*=\s*["']([\w.:-]+)["']/.exec(text);
  return (xml ?? /<meta\b[^>]*\bcharset\s*=\s*["']?([\w.:-]+)/i.exec(text))?.[1];
}

/** Leaves out a last character that is cut in the middle. */
function upToCharacter(head: Uint8Array, whole: boolean): Uint8Array {
  if (whole) return head;
  let end = head.length;
  for (let back = 1; back <= 4 && back <= head.length; back++) {
    const byte = head[head.length - back] as number;
    if (byte < 0x80) break;
    if (byte >= 0xc0) {
      end = head.length - back;
      break;
    }
  }
  return head.subarray(0, end);
}
