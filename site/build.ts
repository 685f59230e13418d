/** Builds the guide from docs/ into a directory, `site/dist` unless `--outDir` names another: `npm run docs`. */
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, posix, relative } from 'node:path';
import { parseArgs } from 'node:util';
import { GUIDE, hashOfSources, SOURCES_MARK } from '../src/http/ui/background-build.ts';
import { compressTexts } from '../toolchain/compress.ts';
import { licensesOf } from '../toolchain/licenses.ts';
import { INDEX, type Page, readPages, sectionsOf } from './pages.ts';
import { htmlOf, passagesOf } from './render.ts';
import { absentHtml, pageHtml } from './template.ts';

const ROOT = join(import.meta.dirname, '..');
const DOCS = join(ROOT, 'docs');
/** The path at which the service serves the guide. 404.html is served at any path, so its links cannot be relative. */
const BASE = '/docs/guide/';

const { values } = parseArgs({
  options: { outDir: { type: 'string', default: join(import.meta.dirname, 'dist') } },
});
const into = values.outDir;
const hash = await hashOfSources(ROOT, GUIDE.inputs);
rmSync(into, { recursive: true, force: true });

const write = (path: string, text: string) => {
  mkdirSync(dirname(join(into, path)), { recursive: true });
  writeFileSync(join(into, path), text);
};

const pages = readPages(DOCS);
const sections = sectionsOf(pages);
const inOrder = [pages.get(INDEX) as Page, ...sections.flatMap((section) => section.pages)];
const files = new Set(inOrder.flatMap((page) => filesOf(page)));
const isPart = (path: string) => pages.has(path) || files.has(path);
const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };

write('404.html', absentHtml(BASE));
for (const file of files) {
  mkdirSync(dirname(join(into, file)), { recursive: true });
  cpSync(join(DOCS, file), join(into, file));
}
for (const name of ['guide.css', 'guide.js'])
  cpSync(join(import.meta.dirname, 'assets', name), join(into, name));
const library = join(dirname(createRequire(import.meta.url).resolve('minisearch')), '..', '..');
const search = readFileSync(join(library, 'dist', 'umd', 'index.js'), 'utf8');
write('minisearch.js', search.replace(/\n\/\/# sourceMappingURL=.*\n?$/, '\n'));
write('LICENSES.txt', licensesOf([join(library, 'package.json')]));
write('passages.js', `globalThis.passages = ${JSON.stringify(inOrder.flatMap(passagesOf))};\n`);
write(SOURCES_MARK, `${hash}\n`);
for (const [at, page] of inOrder.entries()) {
  const surroundings = { sections, previous: inOrder[at - 1], next: inOrder[at + 1], version };
  write(page.path.replace(/\.md$/, '.html'), pageHtml(page, htmlOf(page, { isPart }), surroundings));
}
compressTexts(into);
console.log(`${relative(process.cwd(), into)}: ${inOrder.length} pages`);

/** Images and other files below docs/ that a page links to. */
function filesOf({ path, links }: Page): string[] {
  return links
    .filter((target) => !/^([a-z]+:|#)/.test(target))
    .map((target) => posix.join(posix.dirname(path), target.replace(/#.*/, '')))
    .filter((target) => !target.startsWith('..') && !target.endsWith('.md') && posix.extname(target) !== '');
}
