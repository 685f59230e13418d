/** Prepares the HTML of a mail for a frame of the dashboard, whose content security policy forbids inline styles. */

export interface Letter {
  subject: string;
  text: string;
  html: string;
}

interface LetterLook {
  /** Of the dashboard's content security policy, which the frame inherits. */
  nonce: string;
  /** The theme of the dashboard, which may differ from that of the system. */
  scheme: 'light' | 'dark';
}

/**
 * The page to show in a frame. Style attributes become rules of a style sheet with the nonce, links open in a new tab, and
 * the chosen theme applies. The policy blocks scripts and remote resources.
 */
export function letterPage(html: string, { nonce, scheme }: LetterLook): string {
  const numbers = new Map<string, number>();
  const page = html
    .replaceAll(/(<[a-z][^<>]*?\s)style="([^"]*)"/gi, (_, before: string, style: string) => {
      const number = numbers.get(style) ?? numbers.size;
      numbers.set(style, number);
      return `${before}data-look="${number}"`;
    })
    .replaceAll(/<style\b/gi, `<style nonce="${nonce}"`)
    .replaceAll(/@media\s*\(\s*prefers-color-scheme\s*:\s*(light|dark)\s*\)/gi, (_, of: string) =>
      of.toLowerCase() === scheme ? '@media all' : '@media not all',
    );
  const rules = [...numbers].map(([style, number]) => `[data-look="${number}"]{${plainStyle(style)}}`);
  const head = `<base target="_blank"><style nonce="${nonce}">:root{color-scheme:${scheme}!important}${rules.join('')}</style>`;
  return /<head\b[^>]*>/i.test(page) ? page.replace(/<head\b[^>]*>/i, (tag) => tag + head) : head + page;
}

/** The text of a style attribute. Nothing in it can end the rule or the style sheet. */
function plainStyle(attribute: string): string {
  return attribute
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&')
    .replaceAll(/[<>{}]/g, '');
}
