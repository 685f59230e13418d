/**
 * Recognizes a message for people by its body, and reduces a chat message to what it says. Elements that Flowhook does not
 * write, such as images of a template, are left out: the JSON shows them.
 */
import type { Letter } from './letter.ts';
import { DISCORD, inline, type Markup, PLAIN, SLACK, type Span, TEAMS } from './markup.ts';

/** A part of a chat message, in the order of the message. */
export type Part =
  | { kind: 'title' | 'text' | 'item' | 'small'; spans: Span[] }
  | { kind: 'code'; text: string }
  | { kind: 'line' };

export type Chat = 'slack' | 'discord' | 'teams';
export type Message = { medium: 'mail'; letter: Letter } | { medium: Chat; parts: Part[] };

type Json = Record<string, unknown>;

const CARD = 'application/vnd.microsoft.card.adaptive';

/** @param body of a delivery @returns undefined if it is not a message for people */
export function messageOf(body: string): Message | undefined {
  const value = parsed(body);
  if (value === undefined) return undefined;
  const { subject, text, html, blocks, embeds, attachments } = value;
  if (typeof subject === 'string' && typeof text === 'string' && typeof html === 'string') {
    return { medium: 'mail', letter: { subject, text, html } };
  }
  if (Array.isArray(blocks)) return chat('slack', objects(blocks).flatMap(ofBlock));
  if (Array.isArray(embeds)) {
    return chat('discord', [...said(value.content, DISCORD), ...objects(embeds).flatMap(ofEmbed)]);
  }
  const cards = objects(attachments).filter(({ contentType }) => contentType === CARD);
  return chat(
    'teams',
    cards.flatMap(({ content }) => ofElement(content as Json)),
  );
}

function chat(medium: Chat, all: readonly Part[]): Message | undefined {
  const parts: Part[] = [];
  for (const part of all) {
    const last = parts.at(-1);
    // In Teams, each line of code is a block.
    if (last?.kind === 'code' && part.kind === 'code') last.text += `\n${part.text}`;
    else parts.push({ ...part });
  }
  return parts.length === 0 ? undefined : { medium, parts };
}

function parsed(body: string): Json | undefined {
  try {
    return objects([JSON.parse(body)])[0];
  } catch {
    return undefined;
  }
}

/** A block of Slack's Block Kit. */
function ofBlock({ type, text, fields, elements }: Json): Part[] {
  if (type === 'divider') return [{ kind: 'line' }];
  if (type === 'header') return [{ kind: 'title', spans: slackText(text) }];
  if (type === 'section')
    return objects([text, ...objects(fields)]).flatMap((one) => said(one.text, markupOf(one)));
  if (type === 'context') return [{ kind: 'small', spans: joined(objects(elements).map(slackText), ' · ') }];
  if (type === 'rich_text') return objects(elements).flatMap(ofRichText);
  return [];
}

function ofRichText({ type, elements }: Json): Part[] {
  const inside = objects(elements);
  if (type === 'rich_text_list') {
    return inside.map((item) => ({ kind: 'item', spans: objects(item.elements).map(richSpan) }));
  }
  if (type === 'rich_text_preformatted') return [code(inside.map(({ text }) => textOf(text)).join(''))];
  return [{ kind: 'text', spans: inside.map(richSpan) }];
}

function richSpan({ text, url, style }: Json): Span {
  const { bold, italic, strike, code: isCode } = (style ?? {}) as Json;
  return {
    text: textOf(text) || textOf(url),
    ...(bold === true && { isBold: true }),
    ...(italic === true && { isItalic: true }),
    ...(strike === true && { isStruck: true }),
    ...(isCode === true && { isCode: true }),
    ...link(url),
  };
}

function slackText(value: unknown): Span[] {
  const text = (value ?? {}) as Json;
  return inline(textOf(text.text), markupOf(text));
}

function markupOf({ type }: Json): Markup {
  return type === 'mrkdwn' ? SLACK : PLAIN;
}

/** An embed of Discord. */
function ofEmbed({ title, url, description, fields, footer }: Json): Part[] {
  const heading = inline(textOf(title), DISCORD).map((span) => ({ ...span, ...link(url) }));
  return [
    ...(heading.length === 0 ? [] : [{ kind: 'title' as const, spans: heading }]),
    ...said(description, DISCORD),
    ...objects(fields).flatMap(({ name, value, inline: isBeside }) => {
      const bold = inline(textOf(name), DISCORD).map((span) => ({ ...span, isBold: true }));
      const parts = said(value, DISCORD);
      const [first] = parts;
      // Fields beside each other are a name and a short value, which fit into one line.
      if (isBeside === true && first?.kind === 'text') {
        return [{ ...first, spans: joined([bold, first.spans], ': ') }, ...parts.slice(1)];
      }
      return bold.length === 0 ? parts : [{ kind: 'text' as const, spans: bold }, ...parts];
    }),
    ...said((footer as Json | undefined)?.text, PLAIN).map((part) =>
      part.kind === 'text' ? { ...part, kind: 'small' as const } : part,
    ),
  ];
}

/** An Adaptive Card, or an element of one. */
function ofElement(element: Json): Part[] {
  const { type, text, facts, inlines, size, weight, isSubtle, separator } = element;
  const line: Part[] = separator === true ? [{ kind: 'line' }] : [];
  const kind = /^(Extra)?Large$/.test(textOf(size)) ? 'title' : isSubtle === true ? 'small' : 'text';
  if (type === 'TextBlock') {
    const spans = inline(textOf(text), TEAMS);
    return [
      ...line,
      { kind, spans: weight === 'Bolder' ? spans.map((span) => ({ ...span, isBold: true })) : spans },
    ];
  }
  if (type === 'RichTextBlock' && Array.isArray(inlines)) return [...line, ofRuns(inlines)];
  if (type === 'FactSet') {
    return objects(facts).map(({ title, value }) => ({
      kind: 'text',
      spans: joined([inline(textOf(title), TEAMS), inline(textOf(value), TEAMS)], ': '),
    }));
  }
  const inside = [element.body, element.items, element.columns].flatMap(objects).flatMap(ofElement);
  const buttons = objects(element.actions).map(({ title, url }) => [{ text: textOf(title), ...link(url) }]);
  return [
    ...line,
    ...inside,
    ...(buttons.length === 0 ? [] : [{ kind: 'text' as const, spans: joined(buttons, ' · ') }]),
  ];
}

/** A line of rich text: each run has its own style. */
function ofRuns(runs: readonly unknown[]): Part {
  const all = runs.map((run): Json => (typeof run === 'string' ? { text: run } : ((run ?? {}) as Json)));
  const spans = all.map(({ text, weight, strikethrough, selectAction }) => ({
    text: PLAIN.unescape(textOf(text)),
    ...(weight === 'Bolder' && { isBold: true }),
    ...(strikethrough === true && { isStruck: true }),
    ...link((selectAction as Json | undefined)?.url),
  }));
  if (all.every(({ fontType }) => fontType === 'Monospace'))
    return code(spans.map(({ text }) => text).join(''));
  const isTitle = all.some(({ size }) => size === 'Large');
  const isSmall = all.every(({ size }) => size === 'Small');
  return { kind: isTitle ? 'title' : isSmall ? 'small' : 'text', spans };
}

/** Text, with code between lines of three backticks. */
function said(value: unknown, markup: Markup): Part[] {
  return textOf(value)
    .split('```')
    .flatMap((text, index): Part[] => {
      const trimmed = text.replace(/^\n|\n$/g, '');
      if (index % 2 === 1) return [code(trimmed)];
      const spans = inline(trimmed, markup);
      return spans.length === 0 ? [] : [{ kind: 'text', spans }];
    });
}

function code(text: string): Part {
  return { kind: 'code', text: text.replace(/\n$/, '') };
}

function link(url: unknown): { url?: string } {
  return /^https?:/i.test(textOf(url)) ? { url: textOf(url) } : {};
}

function joined(all: readonly Span[][], between: string): Span[] {
  return all.flatMap((spans, index) => (index === 0 ? spans : [{ text: between }, ...spans]));
}

function objects(value: unknown): Json[] {
  if (!Array.isArray(value)) return [];
  return value.filter((one): one is Json => typeof one === 'object' && one !== null);
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
