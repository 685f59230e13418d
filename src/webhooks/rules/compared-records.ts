/**
 * The differences of a version, as filters see them. Pages are read once and kept for a while, so that a hundred filters
 * on the same version parse each record once.
 */
import type { Names } from '../../model/expression.ts';
import { type Difference, differenceOfValues, type ExactRecord, exactRecord } from '../../model/same-json.ts';
import type { Compare } from '../../model/workflow.ts';
import type { ChangesCursor } from '../../store/operations/history/changes.ts';
import type { StoreReader } from '../../store/store.ts';

/** What a filter knows about one difference. */
export type RecordNames = Pick<Names, 'change' | 'id' | 'record' | 'previous' | 'changed'>;

/** For events without differences. */
export const NO_RECORD: RecordNames = { change: null, id: null, record: null, previous: null, changed: [] };

/** Two states of one record, which are compared. Each state is parsed once, when it is first needed. */
export class ComparedRecord {
  readonly id: string;
  /** JSON text; null if the record did not exist before. */
  readonly before: string | null;
  /** JSON text; null if the record no longer exists. */
  readonly after: string | null;
  readonly #compare: Compare;
  #difference: Difference | undefined;
  #names: RecordNames | undefined;
  #exact: { record: ExactRecord | undefined; previous: ExactRecord | undefined } | undefined;

  constructor({
    id,
    before,
    after,
    compare = 'value',
  }: {
    id: string;
    before: string | null;
    after: string | null;
    compare?: Compare;
  }) {
    this.id = id;
    this.before = before;
    this.after = after;
    this.#compare = compare;
  }

  /** The fields that differ, with exact numbers. */
  get difference(): Difference {
    const { record, previous } = this.exact;
    this.#difference ??= differenceOfValues({ id: this.id, before: previous, after: record }, this.#compare);
    return this.#difference;
  }

  /** Both states, with exact numbers. */
  get exact(): { record: ExactRecord | undefined; previous: ExactRecord | undefined } {
    this.#exact ??= {
      record: exactRecord(this.after ?? undefined, this.#compare),
      previous: exactRecord(this.before ?? undefined, this.#compare),
    };
    return this.#exact;
  }

  /** What filters read. */
  get names(): RecordNames {
    const { record, previous } = this.exact;
    const { type, fields } = this.difference;
    this.#names ??= {
      change: type,
      id: this.id,
      record: record ?? null,
      previous: previous ?? null,
      changed: fields.map(({ key }) => key),
    };
    return this.#names;
  }
}

/** A version of a workflow's records, compared with the version before it. */
export interface Published {
  teamId: string;
  workflowId: string;
  version: number;
  /** Changes whenever records of the workflow or events of the team are erased. */
  rewrites: number;
}

export interface Page {
  records: ComparedRecord[];
  next: ChangesCursor | null;
}

const PAGE_ROWS = 500;
/** Maximum number of characters of records that are kept. Parsed, they take about five times as many bytes. */
const KEPT_CHARACTERS = 8_388_608;

/** Reads pages of differences, and keeps those that were used last. */
export class DifferencePages {
  readonly #reader: Pick<StoreReader, 'records'>;
  readonly #kept = new Map<string, Page & { characters: number }>();
  #characters = 0;

  constructor(reader: Pick<StoreReader, 'records'>) {
    this.#reader = reader;
  }

  /** Returns the page that begins at a cursor (null: the first page), or undefined if the version is gone. */
  async read(published: Published, after: ChangesCursor | null): Promise<Page | undefined> {
    const { teamId, workflowId, version, rewrites } = published;
    const key = JSON.stringify([teamId, workflowId, version, rewrites, after]);
    const kept = this.#kept.get(key);
    if (kept !== undefined) {
      this.#kept.delete(key);
      this.#kept.set(key, kept);
      return kept;
    }
    const place = { teamId, workflowId };
    const since = version - 1;
    const { rows, next } = await this.#reader.records.changes({
      ...place,
      since,
      until: version,
      after,
      limit: PAGE_ROWS,
    });
    const known = await this.#reader.records.version(place);
    // Version 0 has no records, so nothing of it can be pruned.
    const needed = since === 0 ? version : since;
    if (known === undefined || known.oldest > needed) return undefined;
    const page = { records: rows.map((row) => new ComparedRecord(row)), next };
    this.#keep(key, page);
    return page;
  }

  #keep(key: string, page: Page): void {
    let characters = 0;
    for (const { before, after } of page.records) characters += (before?.length ?? 0) + (after?.length ?? 0);
    this.#kept.set(key, { ...page, characters });
    this.#characters += characters;
    for (const [oldest, { characters: freed }] of this.#kept) {
      if (this.#characters <= KEPT_CHARACTERS || oldest === key) return;
      this.#kept.delete(oldest);
      this.#characters -= freed;
    }
  }
}

/** The differences in the body of an event, for a version that is gone. Changed records have only their changed fields. */
export function listedRecords(differences: readonly Difference[]): ComparedRecord[] {
  return differences.map(({ type, id, fields }) => {
    const text = (name: 'value' | 'previousValue') =>
      JSON.stringify({
        id,
        ...Object.fromEntries(fields.flatMap((field) => (name in field ? [[field.key, field[name]]] : []))),
      });
    return new ComparedRecord({
      id,
      before: type === 'added' ? null : text('previousValue'),
      after: type === 'removed' ? null : text('value'),
    });
  });
}
