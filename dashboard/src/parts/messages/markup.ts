/** The markup of chat messages: styles, code and links. Unknown markup stays visible as it is written. */

export interface Span {
  text: string;
  isBold?: boolean;
  isItalic?: boolean;
  isStruck?: boolean;
  isCode?: boolean;
  /** `http:` or `https:`. */
  url?: string;
}

export interface Markup {
  /** The next markup in a text; its groups are named `bold`, `italic`, `struck`, `code`, `label` and `url`. */
  next: RegExp;
  /** Returns a text without escapes. */
  unescape: (text: string) => string;
}

/** Characters without a width, which keep a chat from seeing markup. */
const INVISIBLE = /[\u200b\u2060\ufeff]/g;

const ENTITIES: Record<string, string> = { '&lt;': '<', '&gt;': '>', '&amp;': '&' };

/** Of Slack, whose texts are escaped like HTML. */
export const SLACK: Markup = {
  next: /<(?<url>https?:[^|>\s]+)(?:\|(?<label>[^>]*))?>|`(?<code>[^`\n]+)`|(?<![\w*])\*(?<bold>[^*\n]+)\*(?![\w*])|(?<!\w)_(?<italic>[^_\n]+)_(?!\w)|(?<!\w)~(?<struck>[^~\n]+)~(?!\w)/,
  unescape: (text) =>
    text.replaceAll(/&(?:lt|gt|amp);/g, (entity) => ENTITIES[entity] ?? '').replaceAll(INVISIBLE, ''),
};

const MARKDOWN: Markup = {
  next: /(?<!\\)\[(?<label>(?:\\.|[^\]\\])*)\]\((?<url>https?:[^\s)]+)\)|(?<!\\)`(?<code>[^`\n]+)`|(?<!\\)\*\*(?<bold>(?:\\.|[^*\\\n])+)\*\*|(?<!\\)~~(?<struck>(?:\\.|[^~\\\n])+)~~/,
  unescape: (text) => text.replaceAll(/\\([!-/:-@[-`{-~])/g, '$1').replaceAll(INVISIBLE, ''),
};

export const DISCORD = MARKDOWN;
export const TEAMS = MARKDOWN;

/** Text without markup. */
export const PLAIN: Markup = { next: /(?!)/, unescape: (text) => text.replaceAll(INVISIBLE, '') };

/** The spans of a text. */
export function inline(text: string, markup: Markup): Span[] {
  const spans: Span[] = [];
  const add = (raw: string, style: Omit<Span, 'text'> = {}) => {
    const plain = style.isCode === true ? raw.replaceAll(INVISIBLE, '') : markup.unescape(raw);
    if (plain !== '') spans.push({ text: plain, ...style });
  };
  let rest = text;
  for (let found = markup.next.exec(rest); found !== null; found = markup.next.exec(rest)) {
    const { bold, italic, struck, code, label, url } = found.groups ?? {};
    add(rest.slice(0, found.index));
    if (url !== undefined) add(label ?? url, { url: markup.unescape(url) });
    if (bold !== undefined) spans.push(...inline(bold, markup).map((span) => ({ ...span, isBold: true })));
    if (italic !== undefined) add(italic, { isItalic: true });
    if (struck !== undefined) add(struck, { isStruck: true });
    if (code !== undefined) add(code, { isCode: true });
    rest = rest.slice(found.index + found[0].length);
  }
  add(rest);
  return spans;
}
