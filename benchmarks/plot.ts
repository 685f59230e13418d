/**
 * Draws a result as an SVG: a panel for each figure, and a bar for each contestant's median, with a line over it for the
 * range of its rounds. Colors follow the reader's theme. We draw by hand, because chart libraries need a browser's document
 * and would be installed with every clone.
 */
import { figuresOf, median, type Result, ratio, rounded } from './benchmark.ts';

const WIDTH = 840;
const NAMES = 280;
const VALUES = 190;
const ROW = 22;
const TITLE = 34;

/** @param figures the figures to draw, in order. Default: all */
export function plot(result: Result, figures: readonly string[] = figuresOf(result)): string {
  let y = 0;
  const panels = figures.map((figure) => {
    const measured = Object.entries(result.figures).filter(([, all]) => all[figure] !== undefined);
    const panel = panelOf(
      result,
      figure,
      measured.map(([name, all]) => [name, all[figure] ?? []] as const),
      y,
    );
    y += TITLE + measured.length * ROW;
    return panel;
  });
  const height = y + 10;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img">
<title>${escaped(result.name)}: ${escaped(figures.join(', '))}</title>
<style>
text{font:13px system-ui,sans-serif;fill:#1f2328}.title{font-weight:600}.value{fill:#59636e}
.bar{fill:#8c959f}.ours{fill:#0969da}.limit{fill:#c4cbd2}.spread{stroke:#1f2328;stroke-width:1}
@media (prefers-color-scheme:dark){text{fill:#f0f6fc}.value{fill:#9198a1}.bar{fill:#656c76}.ours{fill:#4493f8}.limit{fill:#3d444d}.spread{stroke:#f0f6fc}}
</style>
${panels.join('\n')}
</svg>
`;
}

function panelOf(
  result: Result,
  figure: string,
  measured: readonly (readonly [string, readonly number[]])[],
  top: number,
): string {
  const most = Math.max(...measured.map(([, values]) => Math.max(...values)));
  const x = (value: number) => NAMES + (most === 0 ? 0 : (value / most) * (WIDTH - NAMES - VALUES));
  const bars = measured.map(([name, values], row) => {
    const y = top + TITLE + row * ROW;
    const middle = median(values);
    const [least, greatest] = [Math.min(...values), Math.max(...values)];
    const ofLimit = ratio(result, name, figure);
    const text = `${rounded(middle)}${ofLimit === undefined ? '' : ` · ${rounded(ofLimit)} × the first`}`;
    const kind = name === result.limit ? 'limit' : name.startsWith('Flowhook') ? 'ours' : 'bar';
    return [
      `<text x="${NAMES - 8}" y="${y + 12}" text-anchor="end">${escaped(name)}</text>`,
      `<rect class="${kind}" x="${NAMES}" y="${y}" width="${(x(middle) - NAMES).toFixed(1)}" height="${ROW - 6}"/>`,
      `<line class="spread" x1="${x(least).toFixed(1)}" x2="${x(greatest).toFixed(1)}" y1="${y + 8}" y2="${y + 8}"/>`,
      `<text class="value" x="${(x(greatest) + 6).toFixed(1)}" y="${y + 12}">${escaped(text)}</text>`,
    ].join('');
  });
  const unit = result.units[figure];
  const title = unit === undefined ? figure : `${figure} (${unit === '/s' ? 'per second' : unit})`;
  return `<text class="title" x="0" y="${top + 22}">${escaped(title)}</text>\n${bars.join('\n')}`;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}
