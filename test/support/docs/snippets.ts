/**
 * The fenced blocks of the documentation, and what becomes of each. A block is run as what its language says, unless a
 * comment on the line before it, which readers of the page do not see, says otherwise:
 *
 *     <!-- not run: needs Docker -->
 *     <!-- run: parsed only -->
 *
 * CONTRIBUTING.md has the table.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export const ROOT = join(import.meta.dirname, '../../..');

export interface Snippet {
  /** Relative to the repository, with slashes. */
  page: string;
  /** Of its fence, from 1. */
  line: number;
  language: string;
  text: string;
  /** What the comment before it says: `run` with how, or `not run` with why. */
  verdict: { run: string } | { notRun: string } | undefined;
}

/** From this block of a shell on there is no server. */
export const SERVER_STOPPED = 'server stopped';
/** A module that is run by Node, between the commands of the shell. */
export const BY_NODE = 'node';
/** YAML of other programs: nobody here knows their settings. */
const PARSED_ONLY = 'parsed only';
/** By language: what a comment `run: …` may say. Without one a block is run as its language says. */
export const KNOWN: Readonly<Record<string, readonly string[]>> = {
  sh: [SERVER_STOPPED],
  ts: [BY_NODE],
  yaml: [PARSED_ONLY],
  json: [],
};
/** The language of what is printed by something, drawn, or said. */
export const NO_CODE = 'text';

/** Every page that people read of this repository, relative to it. */
export const PAGES: readonly string[] = [
  'README.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  ...readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`)
    .sort(),
];

export function textOfPage(page: string): string {
  return readFileSync(join(ROOT, page), 'utf8');
}

const FENCE = /^ *(`{3,}|~{3,})(.*)$/;
const COMMENT = /^ *<!-- (run|not run): (.+) -->$/;

/** The blocks of a page, in its order. */
export function snippetsOf(page: string, markdown: string): Snippet[] {
  const lines = markdown.split('\n');
  const found: Snippet[] = [];
  for (let at = 0; at < lines.length; at++) {
    const [, fence = '', language = ''] = FENCE.exec(lines[at] ?? '') ?? [];
    if (fence === '') continue;
    const begin = at;
    const indent = (lines[at] ?? '').indexOf(fence);
    do at++;
    while (at < lines.length && (lines[at] ?? '').trim() !== fence);
    found.push({
      page,
      line: begin + 1,
      language: language.trim(),
      text: lines
        .slice(begin + 1, at)
        .map((line) => line.replace(new RegExp(`^ {0,${indent}}`), ''))
        .join('\n'),
      verdict: verdictOf(lines[begin - 1] ?? ''),
    });
  }
  return found;
}

function verdictOf(line: string): Snippet['verdict'] {
  const [, word, rest = ''] = COMMENT.exec(line) ?? [];
  if (word === undefined) return undefined;
  return word === 'run' ? { run: rest } : { notRun: rest };
}

/** All blocks, by page. */
export const SNIPPETS: readonly Snippet[] = PAGES.flatMap((page) => snippetsOf(page, textOfPage(page)));

export function isRun({ language, verdict }: Snippet): boolean {
  return Object.hasOwn(KNOWN, language) && (verdict === undefined || 'run' in verdict);
}

/** `docs/start.md:12`. */
export function placeOf({ page, line }: Snippet): string {
  return `${page}:${line}`;
}
