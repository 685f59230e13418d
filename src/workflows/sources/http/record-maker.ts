/** Makes records out of the parts of answers. */
import type { HttpSource, Parse } from '../../../model/http-source.ts';
import { compileFields, type FieldReader } from './field.ts';
import type { FillCount } from './fill-count.ts';
import { type Grammar, grammarOf, isMarkup } from './grammar.ts';
import type { Item } from './items.ts';
import type { StateTracker } from './kept-state.ts';
import { SourceError } from './source-error.ts';

/** What the parts of one page have in common. */
export interface PageKind {
  parse: Parse;
  grammar: Grammar;
  /** What its links are relative to. */
  base: string;
}

export interface RecordMaker {
  /** Whether it looks into the parts: else they can go on as they came. */
  looks: boolean;
  /** The record as JSON text. */
  line(item: Item, page: PageKind): string;
  /** The record, to be added to. */
  record(item: Item, page: PageKind): Record<string, unknown>;
}

/** Of the records, in order. */
export function fieldNames({ fields, follow }: HttpSource): string[] {
  return [...new Set([...Object.keys(fields), ...Object.keys(follow?.fields ?? {})])];
}

export function createRecordMaker(source: HttpSource, memory: StateTracker, fills: FillCount): RecordMaker {
  const asTheyAre = Object.keys(source.fields).length === 0;
  const readers = new Map<Parse, FieldReader>();

  function readerOf(parse: Parse): FieldReader {
    let reader = readers.get(parse);
    if (reader === undefined) {
      if (asTheyAre)
        throw new SourceError(`The answer is ${parse}: \`fields\` must say what its records consist of`);
      reader = compileFields(source.fields, grammarOf(parse), { trim: isMarkup(parse) });
      readers.set(parse, reader);
    }
    return reader;
  }

  function taken(item: Item, { parse, grammar, base }: PageKind): unknown {
    memory.look?.(item.value, grammar);
    fills.record();
    if (asTheyAre && !isMarkup(parse)) return item.value;
    const record: Record<string, unknown> = {};
    readerOf(parse).read(item.value, { base, record, tell: fills.tell });
    return record;
  }

  return {
    looks: !asTheyAre || source.follow !== null || memory.look !== undefined,
    line(item, page) {
      if (item.text === undefined) return JSON.stringify(taken(item, page));
      fills.record();
      return item.text;
    },
    record(item, page) {
      const value = taken(item, page);
      return typeof value === 'object' && value !== null ? { ...value } : { value };
    },
  };
}
