/**
 * Pages for pictures of chat messages. Teams' card is drawn by Microsoft's own renderer. Slack and Discord publish none,
 * so this file draws their messages: all texts, links and styles are those of the message, but not the looks of the product.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { escapedHtml } from '../../src/std/escaped-html.ts';

const RENDERER = join(import.meta.dirname, '../../node_modules/adaptivecards/dist/adaptivecards.min.js');

export type Theme = 'light' | 'dark';

const COLORS = {
  light: {
    page: '#ffffff',
    text: '#1d1c1d',
    muted: '#616061',
    link: '#0b63c4',
    card: '#f4f5f6',
    line: '#dcdde0',
  },
  dark: {
    page: '#1b1d21',
    text: '#e6e7e8',
    muted: '#a6a8ad',
    link: '#5ea8f0',
    card: '#26282d',
    line: '#3b3e45',
  },
} as const;

function page(theme: Theme, content: string, style = ''): string {
  const { page, text, muted, link, card, line } = COLORS[theme];
  return `<!doctype html><meta charset="utf-8"><style>
body { margin: 0; padding: 20px 24px; background: ${page}; color: ${text}; font: 15px/1.47 Lato, 'Segoe UI', Helvetica, Arial, sans-serif }
a { color: ${link}; text-decoration: none }
.muted { color: ${muted} } .small { font-size: 12px }
pre { margin: 6px 0; padding: 8px; border: 1px solid ${line}; border-radius: 4px; background: ${card}; font: 12px/1.5 monospace; white-space: pre-wrap }
ul { margin: 0 0 4px; padding-left: 26px } h1 { margin: 4px 0 6px; font-size: 18px }
.message { display: grid; grid-template-columns: 36px 1fr; gap: 4px 12px; max-width: 620px }
.avatar { width: 36px; height: 36px; border-radius: 6px; background: #0969da; color: #fff; font-weight: 700; text-align: center; line-height: 36px }
.badge { padding: 0 4px; border-radius: 3px; background: ${line}; font-size: 10px }
.embed { margin-top: 4px; padding: 10px 16px 12px; border-left: 4px solid; border-radius: 4px; background: ${card}; font-size: 14px }
.embed h2 { margin: 0 0 6px; font-size: 16px } .embed p { margin: 0 0 8px; white-space: pre-wrap }
.fields { display: grid; grid-template-columns: repeat(3, 1fr); gap: 8px } .wide { grid-column: 1 / -1 }
.name { font-weight: 600 } .value { white-space: pre-wrap }
${style}</style>${content}`;
}

function fromFlowhook(content: string): string {
  return `<div class="message"><div class="avatar">F</div><div><div><b>Flowhook</b> <span class="badge">APP</span> <span class="muted small">08:30</span></div>${content}</div></div>`;
}

/** A message of Block Kit. */
export function slackPage(message: unknown, theme: Theme): string {
  const blocks = (message as { blocks: Block[] }).blocks;
  return page(theme, fromFlowhook(blocks.map(slackBlock).join('')));
}

interface Block {
  type: string;
  text?: { text: string };
  elements?: Block[];
  url?: string;
  style?: { bold?: true; strike?: true };
}

function slackBlock(block: Block): string {
  const { type, text, elements = [] } = block;
  const inner = elements.map(slackBlock).join('');
  switch (type) {
    case 'header':
      return `<h1>${escapedHtml(text?.text ?? '')}</h1>`;
    case 'rich_text':
      return `<div style="margin-bottom:8px">${inner}</div>`;
    case 'rich_text_section':
      return `<div style="white-space:pre-wrap">${inner}</div>`;
    case 'rich_text_list':
      return `<ul>${elements.map((one) => `<li>${slackBlock(one)}</li>`).join('')}</ul>`;
    case 'rich_text_preformatted':
      return `<pre>${inner}</pre>`;
    case 'context':
      return `<div class="muted small" style="margin-top:6px">${elements.map((one) => `<span>${contextText(one)}</span>`).join(' ')}</div>`;
    default:
      return styled(block);
  }
}

/** An element of rich text. */
function styled({ url, text, style = {} }: Block): string {
  let made = escapedHtml(String(text));
  if (url !== undefined) made = `<a href="${escapedHtml(url)}">${made}</a>`;
  if (style.strike) made = `<s class="muted">${made}</s>`;
  return style.bold ? `<b>${made}</b>` : made;
}

/** Texts of a context block are plain, except for one link, which Slack writes as `<url|text>`. */
function contextText({ text }: Block): string {
  const words = String(text);
  const [, url, name] = /^<([^|>]*)\|([^>]*)>$/.exec(words) ?? [];
  return url === undefined ? escapedHtml(words) : `<a href="${url}">${name}</a>`;
}

/** A message with embeds. */
export function discordPage(message: unknown, theme: Theme): string {
  const { embeds } = message as { embeds: Embed[] };
  return page(theme, fromFlowhook(embeds.map(discordEmbed).join('')));
}

interface Embed {
  title?: string;
  url?: string;
  description?: string;
  color: number;
  fields: { name: string; value: string; inline: boolean }[];
  footer?: { text: string };
}

function discordEmbed({ title, url, description, color, fields, footer }: Embed): string {
  const name = title === undefined ? '' : markdown(title);
  return `<div class="embed" style="border-color:#${color.toString(16).padStart(6, '0')}">
${title === undefined ? '' : `<h2>${url === undefined ? name : `<a href="${escapedHtml(url)}">${name}</a>`}</h2>`}
${description === undefined ? '' : `<p>${markdown(description)}</p>`}
<div class="fields">${fields.map((one) => `<div class="${one.inline ? '' : 'wide'}"><div class="name">${markdown(one.name)}</div><div class="value">${markdown(one.value)}</div></div>`).join('')}</div>
${footer === undefined ? '' : `<div class="muted small" style="margin-top:8px">${escapedHtml(footer.text)}</div>`}</div>`;
}

/** The part of Discord's Markdown that our messages use: links, struck text, a fence, and escaped characters. */
function markdown(text: string): string {
  const token = /```\n([\s\S]*?)\n```|\[([^\]]*)\]\((https?:[^)]*)\)|~~((?:\\.|[^~\\])+)~~|\\([\s\S])/g;
  let made = '';
  let at = 0;
  for (const match of text.matchAll(token)) {
    const [all, fence, name, url, struck, character] = match;
    made += escapedHtml(text.slice(at, match.index));
    if (fence !== undefined) made += `<pre>${escapedHtml(fence)}</pre>`;
    else if (url !== undefined) made += `<a href="${escapedHtml(url)}">${markdown(name ?? '')}</a>`;
    else if (struck !== undefined) made += `<s class="muted">${markdown(struck)}</s>`;
    else made += escapedHtml(character ?? '');
    at = match.index + all.length;
  }
  return made + escapedHtml(text.slice(at));
}

/** A card, drawn by Microsoft's renderer in the colors of Teams. */
export function teamsPage(message: unknown, theme: Theme): string {
  const { text, muted, card, line, link } = COLORS[theme];
  const of = (color: string, subtle: string = muted) => ({ default: color, subtle });
  const colors = {
    default: of(text),
    accent: of(link, link),
    attention: of(theme === 'light' ? '#c4314b' : '#f9526b'),
    warning: of(theme === 'light' ? '#9a6700' : '#f2c661'),
    good: of('#237b4b'),
  };
  const host = {
    fontFamily: "'Segoe UI', Helvetica, Arial, sans-serif",
    fontSizes: { small: 12, default: 14, medium: 14, large: 18, extraLarge: 24 },
    spacing: { none: 0, small: 8, default: 12, medium: 16, large: 20, extraLarge: 24, padding: 16 },
    separator: { lineThickness: 1, lineColor: line },
    containerStyles: { default: { backgroundColor: card, foregroundColors: colors } },
    actions: { maxActions: 6, spacing: 'default', buttonSpacing: 8, actionsOrientation: 'horizontal' },
  };
  const { content } = (message as { attachments: [{ content: object }] }).attachments[0];
  const json = (value: object) => JSON.stringify(value).replaceAll('<', '\\u003c');
  return page(
    theme,
    `<div class="message"><div class="avatar">F</div><div><div><b>Workflows</b> <span class="muted small">08:30</span></div><div id="card"></div></div></div>
<script>${readFileSync(RENDERER, 'utf8').replaceAll('</script', '<\\/script')}</script>
<script>const card = new AdaptiveCards.AdaptiveCard(); card.hostConfig = new AdaptiveCards.HostConfig(${json(host)});
card.parse(${json(content)}); document.getElementById('card').append(card.render());</script>`,
    `#card { margin-top: 4px; border: 1px solid ${line}; border-radius: 6px; overflow: hidden }
.ac-pushButton { padding: 5px 12px; border: 1px solid ${line}; border-radius: 4px; background: transparent; color: ${text}; font: 600 14px 'Segoe UI', Arial, sans-serif }`,
  );
}
