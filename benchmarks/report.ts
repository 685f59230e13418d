/**
 * `npm run performance`: generates the tables and plots of docs/performance.md and docs/performance-tables.md from the
 * results in benchmarks/published, which `npm run bench -- --full --out benchmarks/published` writes. The rest of these
 * pages is written by hand. A generated part is between `<!-- question: NAME -->` or `<!-- figures: BENCHMARK -->` and
 * `<!-- end -->`.
 */
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { figuresOf, median, type Result, ratio, rounded, withUnit } from './benchmark.ts';
import { plot } from './plot.ts';
import { promisesTable } from './promises.ts';
import { QUESTIONS, type Question } from './questions.ts';

const ROOT = join(import.meta.dirname, '..');
const PUBLISHED = join(ROOT, 'benchmarks/published');
const PAGE = 'docs/performance.md';
const TABLES_PAGE = 'docs/performance-tables.md';
const IMAGES = 'docs/images/performance';
const PART = /(<!-- (question|figures|targets)(?:: (\S+))? -->\n)[\s\S]*?(<!-- end -->)/g;

if (import.meta.main) {
  for (const [path, text] of await report()) {
    await mkdir(dirname(join(ROOT, path)), { recursive: true });
    await writeFile(join(ROOT, path), text);
  }
}

/**
 * Both pages and all plots, by their paths in the repository.
 *
 * @throws Error if a page names an unknown question or benchmark, or if a result lacks a figure of a question
 */
export async function report(): Promise<Map<string, string>> {
  const results = await publishedResults();
  const files = new Map<string, string>();
  for (const { name, question, result } of views(results)) {
    files.set(`${IMAGES}/${name}.svg`, plot(result, question.plotted));
  }
  for (const page of [PAGE, TABLES_PAGE]) {
    const text = await readFile(join(ROOT, page), 'utf8');
    const filled = text.replace(PART, (_, start: string, kind: string, name: string, end: string) => {
      const part =
        kind === 'targets'
          ? promisesTable(results)
          : kind === 'question'
            ? questionPart(name, results)
            : figuresPart(found(results, name));
      return `${start}\n${part}\n\n${end}`;
    });
    files.set(page, filled);
  }
  return files;
}

async function publishedResults(): Promise<Map<string, Result>> {
  const names = (await readdir(PUBLISHED)).filter((name) => name.endsWith('.json')).sort();
  const texts = await Promise.all(names.map((name) => readFile(join(PUBLISHED, name), 'utf8')));
  return new Map(texts.map((text) => JSON.parse(text) as Result).map((result) => [result.name, result]));
}

function found(results: ReadonlyMap<string, Result>, name: string): Result {
  const result = results.get(name);
  if (result === undefined) throw new Error(`benchmarks/published has no ${name}.json`);
  return result;
}

interface View {
  name: string;
  question: Question;
  /** The figures and programs of the question only, under its headings and labels. */
  result: Result;
}

function views(results: ReadonlyMap<string, Result>): View[] {
  return QUESTIONS.map((question) => ({
    name: question.name,
    question,
    result: viewOf(found(results, question.benchmark), question),
  }));
}

function viewOf(result: Result, { name, columns, rows }: Question): Result {
  const renamed = <Value>(values: Readonly<Record<string, Value>>, names: Question['columns']) =>
    Object.fromEntries(
      names.flatMap(([from, to]) => {
        const value = values[from];
        return value === undefined ? [] : [[to, value] as const];
      }),
    );
  const missing = columns.map(([figure]) => figure).filter((figure) => result.units[figure] === undefined);
  if (missing.length > 0) throw new Error(`${name}: ${result.name}.json has no ${missing.join(', ')}`);
  const figures = Object.entries(renamed(result.figures, rows)).map(
    ([label, values]) => [label, renamed(values, columns)] as const,
  );
  return {
    ...result,
    ...(result.limit === undefined ? {} : { limit: new Map(rows).get(result.limit) ?? result.limit }),
    units: renamed(result.units, columns),
    figures: Object.fromEntries(figures),
  };
}

/** A plot and a table of medians. */
function questionPart(name: string, results: ReadonlyMap<string, Result>): string {
  const view = views(results).find((one) => one.name === name);
  if (view === undefined) throw new Error(`${PAGE} names the unknown question ${name}`);
  const { question, result } = view;
  const headings = question.columns.map(([, heading]) => heading);
  const rows = Object.entries(result.figures).map(([label, values]) => [
    label.startsWith('Flowhook') ? `**${label}**` : label,
    ...headings.map((heading) => {
      const measured = values[heading];
      return measured === undefined ? '–' : withUnit(rounded(median(measured)), result.units[heading]);
    }),
  ]);
  const image = `${IMAGES}/${name}.svg`.slice('docs/'.length);
  const alt = `Bars: ${(question.plotted ?? headings).join('; ')}`;
  const source = `<small>${measuredWhen(result)} [All figures](${TABLES_PAGE.slice('docs/'.length)}#${question.benchmark}).</small>`;
  return `${tableOf(['', ...headings], rows)}\n\n![${alt}](${image})\n\n${source}`;
}

/** Every figure of a benchmark, with its range and its ratio to the limit. */
function figuresPart(result: Result): string {
  const rows = figuresOf(result).flatMap((figure) =>
    Object.entries(result.figures).flatMap(([program, figures]) => {
      const measured = figures[figure];
      if (measured === undefined) return [];
      const toLimit = ratio(result, program, figure);
      return [
        [
          figure,
          program,
          withUnit(rounded(median(measured)), result.units[figure]),
          `${rounded(Math.min(...measured))}–${rounded(Math.max(...measured))}`,
          ...(result.limit === undefined ? [] : [toLimit === undefined ? '' : rounded(toLimit)]),
        ],
      ];
    }),
  );
  const head = ['Figure', 'Program', 'Median', 'Range'];
  if (result.limit !== undefined) head.push(`Ratio to ${result.limit}`);
  const skipped = result.skipped.map((sentence) => ` Not measured: ${sentence}`).join('');
  return `${result.about}\n\n${measuredWhen(result)}${skipped}\n\n${tableOf(head, rows, 2)}`;
}

function measuredWhen({ at, commit, machine, rounds }: Result): string {
  const code = commit === undefined ? '' : `, commit ${commit}`;
  return `Measured on ${at.slice(0, 10)}${code}: ${machine}; median of ${rounds} rounds.`;
}

/** @param texts the number of columns at the left that hold text; the others are aligned to the right */
function tableOf(head: readonly string[], rows: readonly (readonly string[])[], texts = 1): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  const marks = head.map((_, column) => (column < texts ? '---' : '---:'));
  return [line(head), line(marks), ...rows.map(line)].join('\n');
}
