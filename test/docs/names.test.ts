/** Everything that the documentation refers to exists: pages, anchors, pictures, commands, flags, settings, files. */
import assert from 'node:assert/strict';
import { existsSync, globSync } from 'node:fs';
import { join, posix } from 'node:path';
import { test } from 'node:test';
import type { Command } from 'commander';
import { type Page, pageOf, readPages, sectionsOf } from '../../site/pages.ts';
import { SETTINGS } from '../../src/config/settings.ts';
import { environmentName } from '../../src/config/sources.ts';
import { programOf } from '../../src/main.ts';
import { PAGES, ROOT, snippetsOf, textOfPage } from '../support/docs/snippets.ts';

const ALL = [...PAGES, 'ARCHITECTURE.md'];
const pages = new Map(ALL.map((path) => [path, pageOf(path, textOfPage(path))]));

test('every link and picture leads to an existing file and anchor', () => {
  assert.deepEqual([...pages.values()].flatMap(brokenLinks), []);
});

function brokenLinks({ path, links }: Page): string[] {
  return links
    .filter((target) => !/^[a-z]+:/.test(target))
    .filter((target) => {
      const [, file = '', part] = /^([^#]*)(?:#(.*))?$/.exec(target) ?? [];
      const at = file === '' ? path : posix.join(posix.dirname(path), file);
      if (at.startsWith('..') || !existsSync(join(ROOT, at))) return true;
      if (part === undefined || !at.endsWith('.md')) return false;
      const { headings } = pages.get(at) ?? pageOf(at, textOfPage(at));
      return !headings.some(({ id }) => id === part);
    })
    .map((target) => `${path} links to ${target}`);
}

test('docs/index.md links to every page', () => {
  const docs = readPages(join(ROOT, 'docs'));
  const led = new Set(sectionsOf(docs).flatMap((section) => section.pages.map(({ path }) => path)));
  assert.deepEqual(
    [...docs.keys()].filter((path) => path !== 'index.md' && !led.has(path)),
    [],
  );
});

const program = await programOf(undefined);

test('every command and flag in the documentation exists', () => {
  const mistakes = ALL.flatMap((path) => {
    const text = textOfPage(path);
    const ofShell = snippetsOf(path, text).filter(({ language }) => language === 'sh');
    const lines = ofShell.flatMap((snippet) => snippet.text.replaceAll('\\\n', ' ').split('\n'));
    const inProse = [...text.matchAll(/(?<!`)`(?:npx )?flowhook ([a-z][^`\n]*)`/g)].map(
      ([, rest]) => rest ?? '',
    );
    const inShell = lines.flatMap((line) =>
      [...line.matchAll(/(?:^|[\s(])flowhook ((?!flowhook\b)[a-z][^;&|)>#]*(?:\|(?=\S)[^;&|)>#]*)*)/g)].map(
        ([, rest]) => rest ?? '',
      ),
    );
    return [...inProse, ...inShell].flatMap((call) =>
      mistakesOf(call).map((mistake) => `${path}: ${mistake}`),
    );
  });
  assert.deepEqual(mistakes, []);
});

test('every command that the dashboard suggests exists', () => {
  const mistakes = globSync('dashboard/src/**/*.tsx', { cwd: ROOT }).flatMap((path) =>
    [...textOfPage(path).matchAll(/npx flowhook ([a-z][^&\\`'"<]*)/g)].flatMap(([, call]) =>
      mistakesOf(call ?? '').map((mistake) => `${path}: ${mistake}`),
    ),
  );
  assert.deepEqual(mistakes, []);
});

/** @param call the text after `flowhook`: `jobs show|cancel JOB --json` */
function mistakesOf(call: string): string[] {
  const words = call.trim().split(/\s+/);
  let at = 0;
  let commands: readonly Command[] = [program];
  for (; at < words.length; at++) {
    const below = commands.flatMap((command) => command.commands);
    if (below.length === 0) break;
    const names = (words[at] ?? '').split('|');
    // A noun alone, or a placeholder for any verb.
    if (at > 0 && !/^[a-z][a-z-]*$/.test(names[0] ?? '')) break;
    if (names[0] === 'help') return [];
    const found = names.map((name) => below.find((command) => command.name() === name));
    const missing = names.filter(
      (_, place) => found[place] === undefined && !/^(…|\.\.\.)$/.test(names[place] ?? ''),
    );
    if (missing.length > 0) return [`\`flowhook ${call.trim()}\`: there is no ${missing.join(', ')}`];
    commands = found.filter((command) => command !== undefined);
  }
  const isNoun = commands.some((command) => command.commands.length > 0);
  if (isNoun) return [];
  const flags = (
    words
      .slice(at)
      .join(' ')
      .match(/(?<=^|[\s[])--[a-z][a-z-]*/g) ?? []
  ).filter((flag) => !['--help', '--version'].includes(flag));
  return flags
    .filter((flag) => !commands.some((command) => command.options.some(({ long }) => long === flag)))
    .map((flag) => `\`flowhook ${call.trim()}\`: there is no ${flag}`);
}

/** Variables of single teams. */
const NO_SETTING = /^FLOWHOOK_SECRET/;

test('every variable in the documentation is a setting, or is used in the code', () => {
  const inCode = globSync('{src,test,benchmarks}/**/*.ts', { cwd: ROOT }).flatMap((path) =>
    variablesIn(textOfPage(path)),
  );
  const known = new Set([
    ...SETTINGS.flatMap(({ name }) => [environmentName(name), `${environmentName(name)}_FILE`]),
    ...inCode,
  ]);
  const unknown = ALL.flatMap((path) =>
    variablesIn(textOfPage(path))
      .filter((name) => !NO_SETTING.test(name) && !known.has(name))
      .map((name) => `${path}: ${name}`),
  );
  assert.deepEqual(unknown, []);
});

function variablesIn(text: string): string[] {
  return [...text.matchAll(/FLOWHOOK_[A-Z_]*[A-Z]/g)].map(([name]) => name);
}

test('every file of the repository in the documentation exists', () => {
  const missing = ALL.flatMap((path) =>
    [
      ...textOfPage(path).matchAll(
        /`((?:src|test|examples|dashboard|client|benchmarks|site|integrations)\/[\w./-]+\.\w+)`/g,
      ),
    ]
      .map(([, file = '']) => file)
      .filter((file) => !existsSync(join(ROOT, file)))
      .map((file) => `${path}: ${file}`),
  );
  assert.deepEqual(missing, []);
});
