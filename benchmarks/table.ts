/** A result as a table for a terminal. */
import { median, type Result, ratio, rounded } from './benchmark.ts';

export function table(result: Result): string {
  const rows = Object.entries(result.figures).flatMap(([contestant, all]) =>
    Object.entries(all).map(([figure, measured]) => {
      const ofLimit = ratio(result, contestant, figure);
      return [
        contestant,
        figure,
        `${rounded(median(measured))} ${result.units[figure] ?? ''}`.trim(),
        `(${rounded(Math.min(...measured))}–${rounded(Math.max(...measured))})`,
        ofLimit === undefined ? '' : `${rounded(ofLimit)} of ${result.limit}`,
      ];
    }),
  );
  const widths = [0, 1, 2, 3].map((column) => Math.max(0, ...rows.map((row) => row[column]?.length ?? 0)));
  const lines = rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
  return [
    '',
    `${result.name}: ${result.about}`,
    `${result.machine}; median of ${result.rounds} rounds (lowest–highest), ${result.seconds} s`,
    '',
    ...lines,
    ...result.skipped.map((sentence) => `Not measured: ${sentence}`),
    '',
  ].join('\n');
}
