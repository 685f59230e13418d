/** Counts in how many records each field is filled: a field that is suddenly empty shows that a page has changed. */
import type { HttpSource } from '../../model/http-source.ts';
import type { Outcome } from './field.ts';

export interface FillCount {
  /** Counts one record. */
  record(): void;
  /** Counts the result for one field of it. */
  tell(name: string, outcome: Outcome): void;
  records(): number;
  /** How often each field was filled, in the order of the definition. */
  filled(): ReadonlyMap<string, number>;
  /** Log lines about fields that were not always filled. */
  sentences(): string[];
  /** The error message of the guard on filled fields, if it refuses these counts. */
  mistake(filled: HttpSource['filled']): string | undefined;
}

const EXAMPLE = 60;

export function countFills(names: readonly string[]): FillCount {
  const counts = new Map(names.map((name) => [name, 0]));
  const unread = new Map<string, { count: number; example: string }>();
  let records = 0;

  const percent = (name: string) => ((counts.get(name) ?? 0) * 100) / records;

  return {
    record: () => {
      records += 1;
    },
    tell(name, outcome) {
      if (outcome === 'filled') counts.set(name, (counts.get(name) ?? 0) + 1);
      else if (outcome !== 'empty') {
        const before = unread.get(name);
        unread.set(name, {
          count: (before?.count ?? 0) + 1,
          example: before?.example ?? outcome.unread.slice(0, EXAMPLE),
        });
      }
    },
    records: () => records,
    filled: () => counts,
    sentences() {
      if (records === 0) return [];
      return [...counts].flatMap(([name, count]) => {
        const wrong = unread.get(name);
        const said =
          wrong === undefined
            ? ''
            : `; ${wrong.count} could not be read, such as ${JSON.stringify(wrong.example)}`;
        if (count === 0) return [`The field \`${name}\` was found in none of ${records} records${said}`];
        return count < records
          ? [`The field \`${name}\` was found in ${count} of ${records} records${said}`]
          : [];
      });
    },
    mistake(filled) {
      if (filled === null || records === 0) return undefined;
      const poor = (filled.fields ?? [...counts.keys()]).filter((name) => percent(name) < filled.minPercent);
      if (poor.length === 0) return undefined;
      const said = poor
        .map((name) => `\`${name}\` in ${counts.get(name) ?? 0} of ${records} records`)
        .join(', ');
      return (
        `The guard on filled fields refused to publish: ${said}, and ${filled.minPercent} % must have it. ` +
        'The published records stay as they are. Look at what the source returned: it may have changed'
      );
    },
  };
}
