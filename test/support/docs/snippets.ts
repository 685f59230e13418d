/**
 * The fenced blocks of the documentation, and how each is tested. This depends on its language, and on a comment on the
 * line before the block, which readers of the page do not see:
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
  /** Path relative to the repository, with slashes. */
  page: string;
  /** Line of the opening fence, starting at 1. */
  line: number;
  language: string;
  text: string;
  /** The comment before the block: `run` says how, `not run` says why. */
  verdict: { run: string } | { notRun: string } | undefined;
}

/** A shell block before which the server is stopped. */
export const SERVER_STOPPED = 'server stopped';
/** A module that Node runs between the shell commands. */
export const BY_NODE = 'node';
/** YAML of other programs, which is only parsed. */
const PARSED_ONLY = 'parsed only';
/** By language: allowed texts of a comment `run: …`. */
export const KNOWN: Readonly<Record<string, readonly string[]>> = {
  sh: [SERVER_STOPPED],
  ts: [BY_NODE],
  yaml: [PARSED_ONLY],
  json: [],
};
/** The language of blocks without code, such as output or drawings. */
export const NO_CODE = 'text';

/** Paths of all pages, relative to the repository. */
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

/** The blocks of a page, in order. */
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
