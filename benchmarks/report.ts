/**
 * `npm run performance`: draws the plots of docs/images/performance and fills the tables of docs/performance.md from
 * the files in benchmarks/published, which `npm run bench -- --full --out benchmarks/published` has left. A place for a
 * table begins with `<!-- bench: NAME figure; figure -->` and ends with `<!-- /bench -->`; without figures it has all.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { median, type Result, ratio, rounded } from './benchmark.ts';
import { figuresOf, plot } from './plot.ts';
import { promisesTable } from './promises.ts';

const ROOT = join(import.meta.dirname, '..');
const PAGE = 'docs/performance.md';
const IMAGES = 'docs/images/performance';
const PROMISED = /(<!-- promises -->\n)[\s\S]*?(<!-- \/promises -->)/;
const PLACE = /(<!-- bench: (\S+)(?: ([^>]*?))? -->\n)[\s\S]*?(<!-- \/bench -->)/g;

if (import.meta.main) {
  for (const [path, text] of await report()) {
    await mkdir(dirname(join(ROOT, path)), { recursive: true });
    await writeFile(join(ROOT, path), text);
  }
}

/** Every file of the report by its path in the repository, as it has to be. */
export async function report(): Promise<Map<string, string>> {
  const files = new Map<string, string>();
  const page = await readFile(join(ROOT, PAGE), 'utf8');
  const names = new Set([...page.matchAll(PLACE)].map(([, , name = '']) => name));
  const results = new Map<string, Result>();
  for (const name of names) {
    const text = await readFile(join(ROOT, 'benchmarks/published', `${name}.json`), 'utf8');
    results.set(name, JSON.parse(text) as Result);
  }
  let place = 0;
  const filled = page.replace(
    PLACE,
    (_, begin: string, name: string, list: string | undefined, end: string) => {
      const result = results.get(name) as Result;
      const figures = list === undefined ? figuresOf(result) : list.split(';').map((figure) => figure.trim());
      place += 1;
      const image = `${IMAGES}/${place}-${name}.svg`;
      files.set(image, plot(result, figures));
      const alt = `${name}: ${figures.join(', ')}`;
      return `${begin}\n![${alt}](${image.slice('docs/'.length)})\n\n${tableOf(result, figures)}\n\n${captionOf(result)}\n\n${end}`;
    },
  );
  files.set(
    PAGE,
    filled.replace(
      PROMISED,
      (_, begin: string, end: string) => `${begin}\n${promisesTable(results)}\n\n${end}`,
    ),
  );
  return files;
}

function tableOf(result: Result, figures: readonly string[]): string {
  const contestants = Object.keys(result.figures).filter((name) =>
    figures.some((figure) => result.figures[name]?.[figure] !== undefined),
  );
  const head = ['', ...figures.map((figure) => withUnit(figure, result.units[figure]))];
  const rows = contestants.map((name) => [name, ...figures.map((figure) => cellOf(result, name, figure))]);
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map((_, at) => (at === 0 ? '---' : '---:'))), ...rows.map(line)].join('\n');
}

function cellOf(result: Result, name: string, figure: string): string {
  const values = result.figures[name]?.[figure];
  if (values === undefined) return '–';
  const ofLimit = ratio(result, name, figure);
  const spread = `${rounded(Math.min(...values))}–${rounded(Math.max(...values))}`;
  return `${rounded(median(values))} <small>(${spread})</small>${ofLimit === undefined ? '' : `, **${rounded(ofLimit)}**`}`;
}

function captionOf(result: Result): string {
  const ratios = result.limit === undefined ? '' : ` Bold: ratio to ${result.limit}.`;
  const left = result.skipped.map((sentence) => ` Not measured: ${sentence}`).join('');
  return `<small>${result.about} ${result.machine}; ${result.at.slice(0, 10)}, median of ${result.rounds} rounds (lowest–highest), interleaved.${ratios}${left}</small>`;
}

function withUnit(figure: string, unit: string | undefined): string {
  return unit === undefined ? figure : `${figure}, ${unit}`;
}
