/** Makes records: passes them on as they came, or builds them from `fields`. */
import type { HttpSource, Parse } from '../../model/http-source.ts';
import { compileFields, type FieldReader } from './field.ts';
import type { FillCount } from './fill-count.ts';
import { type Grammar, grammarOf, isMarkup } from './grammar.ts';
import type { Item } from './items.ts';
import type { StateTracker } from './kept-state.ts';
import { SourceError } from './source-error.ts';

/** What the records of one page have in common. */
export interface PageKind {
  parse: Parse;
  grammar: Grammar;
  /** The base URL of its links. */
  base: string;
}

export interface RecordMaker {
  /** Whether it needs records parsed. If not, they can be passed on as text. */
  parses: boolean;
  /** The record as JSON text. */
  line(item: Item, page: PageKind): string;
  /** The record as an object, to which details can be added. */
  record(item: Item, page: PageKind): Record<string, unknown>;
}

/** The names of the fields of the records, in the order of the definition. */
export function fieldNames({ fields, follow }: HttpSource): string[] {
  return [...new Set([...Object.keys(fields), ...Object.keys(follow?.fields ?? {})])];
}

export function createRecordMaker(source: HttpSource, memory: StateTracker, fills: FillCount): RecordMaker {
  const hasFields = Object.keys(source.fields).length > 0;
  const readers = new Map<Parse, FieldReader>();

  function readerOf(parse: Parse): FieldReader {
    let reader = readers.get(parse);
    if (reader === undefined) {
      if (!hasFields)
        throw new SourceError(`The answer is ${parse}: \`fields\` must say what its records consist of`);
      reader = compileFields(source.fields, grammarOf(parse), { trim: isMarkup(parse) });
      readers.set(parse, reader);
    }
    return reader;
  }

  function recordValue(item: Item, { parse, grammar, base }: PageKind): unknown {
    memory.look?.(item.value, grammar);
    fills.record();
    if (!hasFields && !isMarkup(parse)) return item.value;
    const record: Record<string, unknown> = {};
    readerOf(parse).read(item.value, { base, record, tell: fills.tell });
    return record;
  }

  return {
    parses: hasFields || source.follow !== null || memory.look !== undefined,
    line(item, page) {
      if (item.text === undefined) return JSON.stringify(recordValue(item, page));
      fills.record();
      return item.text;
    },
    record(item, page) {
      const value = recordValue(item, page);
      return typeof value === 'object' && value !== null ? { ...value } : { value };
    },
  };
}
