/** Makes texts of records safe to show: on one line, without characters that hide or reorder others, and not too long. */

/**
 * Control characters and invisible ones, such as those that change the direction of text. Joiners, which emoji and some
 * scripts need, and Arabic number signs, which are visible, stay.
 */
const INVISIBLE =
  /[[\p{Cc}\p{Cf}\u3164\uffa0\u115f\u1160]--[\u200c\u200d\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u{110bd}\u{110cd}]]/gv;
const SPACES = /[\s\u0085]+/gu;
/** Only this many times the wanted length is searched for visible characters. */
const SEARCHED = 8;

/** Returns a text on one line, without invisible characters, and at most `most` characters long. */
export function oneLine(text: string, most: number): string {
  const searched = text.slice(0, most * SEARCHED);
  const line = visible(searched);
  return searched.length === text.length ? cut(line, most) : cut(`${line}…`, most);
}

/** A text without invisible characters, on one line. */
export function visible(text: string): string {
  // Line breaks are control characters, so they become spaces first. Spaces around what was removed become one.
  return text.toWellFormed().replace(SPACES, ' ').replace(INVISIBLE, '').replace(SPACES, ' ').trim();
}

let segmenter: Intl.Segmenter | undefined;
/** A character with accents or joined emoji that is longer than this is cut as well. */
const LONGEST_CHARACTER = 32;

/** Cuts a text to `most` UTF-16 units, never within what a reader sees as one character. Adds "…" if it cuts. */
export function cut(text: string, most: number): string {
  if (text.length <= most) return text;
  segmenter ??= new Intl.Segmenter('en', { granularity: 'grapheme' });
  const room = Math.max(0, most - 1);
  const near = Math.max(0, room - 2 * LONGEST_CHARACTER);
  const from = beforePair(text, near);
  let end = from;
  for (const { index, segment } of segmenter.segment(text.slice(from, room + 2 * LONGEST_CHARACTER))) {
    if (from + index + segment.length > room) break;
    end = from + index + segment.length;
  }
  if (room - end > LONGEST_CHARACTER) end = beforePair(text, room);
  return `${text.slice(0, end).trimEnd()}…`;
}

/** The place itself, or one before it if it is in the middle of a surrogate pair. */
function beforePair(text: string, place: number): number {
  const isInside = place > 0 && /^[\ud800-\udbff][\udc00-\udfff]$/.test(text.slice(place - 1, place + 1));
  return isInside ? place - 1 : place;
}

/** Cuts a text so that its escaped form has at most `most` UTF-16 units. */
export function cutEscaped(text: string, most: number, escaped: (text: string) => string): string {
  for (let length = Math.min(text.length, most); length > 0; length = Math.floor(length * 0.9)) {
    const made = escaped(cut(text, length));
    if (made.length <= most) return made;
  }
  return '';
}

/** A value of a record as people read it: texts as they are, others as JSON. */
export function valueText(value: unknown, most: number): string {
  const text = oneLine(asText(value), most);
  return text === '' ? '""' : text;
}

/**
 * The texts of a value before and after a change. If both are long and begin equally, what they have in common is left
 * out, so that the reader sees what differs.
 */
export function valueTexts(before: unknown, after: unknown, most: number): { before: string; after: string } {
  const [one, other] = [visible(asText(before)), visible(asText(after))];
  const from =
    Math.max(one.length, other.length) > most ? beforePair(one, commonStart(one, other) - CONTEXT) : 0;
  if (from <= 0) return { before: valueText(before, most), after: valueText(after, most) };
  return { before: cut(`…${one.slice(from)}`, most), after: cut(`…${other.slice(from)}`, most) };
}

/** How much of the equal beginning of two long texts is shown. */
const CONTEXT = 40;

function commonStart(one: string, other: string): number {
  const end = Math.min(one.length, other.length);
  let same = 0;
  while (same < end && one.charCodeAt(same) === other.charCodeAt(same)) same += 1;
  return same;
}

function asText(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
}
