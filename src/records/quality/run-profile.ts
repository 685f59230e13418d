/** The profile of a run: walks over the fields of each record once, also for the expectations of fields. */
import {
  MAX_PROFILE_BYTES,
  MAX_PROFILE_FIELDS,
  type Profile,
  type ProfileField,
  type ValueKind,
} from '../../model/quality/profile.ts';
import { FieldProfile } from './field-profile.ts';

/** How deep the fields of nested objects are counted: `shop.address.city`. */
const MAX_DEPTH = 3;
/** Number of fields beyond the limit that are counted. */
const MAX_OMITTED = 1_000;
/** Fields with longer names are not listed. */
const MAX_NAME = 256;

/** Called with each filled value of a field. */
export type Watch = (value: unknown, kind: ValueKind) => void;

/** One field, and the fields of the objects in it. */
interface Slot {
  /** Name of the field within its object. */
  key: string;
  path: string;
  profile: FieldProfile;
  watch: Watch | undefined;
  inner: Level | undefined;
}

/** The fields of the record, or of the objects in one field. */
interface Level {
  prefix: string;
  depth: number;
  slots: Map<string, Slot>;
  /** The slots of the object before. Objects usually have the same fields in the same order. */
  order: (Slot | undefined)[];
}

/** Counts the fields of a run's records. Its memory is bounded for any records. */
export class RunProfile {
  #records = 0;
  readonly #root: Level = { prefix: '', depth: 1, slots: new Map(), order: [] };
  readonly #fields = new Map<string, Slot>();
  readonly #omitted = new Set<string>();
  readonly #watches: ReadonlyMap<string, Watch>;
  /** The paths that are counted even beyond the limits: those of watched fields, and of the objects around them. */
  readonly #needed = new Set<string>();

  /** @param watches by path: called with each filled value of the field */
  constructor(watches: ReadonlyMap<string, Watch> = new Map()) {
    this.#watches = watches;
    for (const path of watches.keys()) {
      for (let end = path.length; end > 0; end = path.lastIndexOf('.', end - 1)) {
        this.#needed.add(path.slice(0, end));
      }
    }
  }

  /** Number of records added. */
  get records(): number {
    return this.#records;
  }

  /** Counts one parsed record. `keys` are its fields. */
  add(record: Record<string, unknown>, keys: readonly string[] = Object.keys(record)): void {
    this.#records += 1;
    this.#walk(this.#root, record, keys);
  }

  /** Number of records in which the field is filled. */
  filled(path: string): number {
    return this.#fields.get(path)?.profile.filled ?? 0;
  }

  /** @param duplicates how many of the records repeat an id */
  result({ duplicates }: { duplicates: number }): Profile {
    const all = [...this.#fields.values()].map(({ path, profile }) => profile.result(path));
    const fields = fitting(all);
    const omitted = Math.min(MAX_OMITTED, this.#omitted.size + all.length - fields.length);
    return { records: this.#records, duplicates, fields, omitted };
  }

  #walk(level: Level, record: Record<string, unknown>, keys: readonly string[]): void {
    const { order } = level;
    const values = Object.values(record);
    for (let at = 0; at < keys.length; at += 1) {
      const key = keys[at] as string;
      let slot = order[at];
      if (slot?.key !== key) {
        slot = level.slots.get(key) ?? this.#newSlot(level, key);
        if (at < MAX_PROFILE_FIELDS) order[at] = slot;
      }
      if (slot === undefined) continue;
      const value = values[at];
      const kind = slot.profile.add(value);
      if (kind === undefined) continue;
      slot.watch?.(value, kind);
      if (kind === 'object' && (level.depth < MAX_DEPTH || this.#needed.has(slot.path))) {
        slot.inner ??= { prefix: `${slot.path}.`, depth: level.depth + 1, slots: new Map(), order: [] };
        this.#walk(slot.inner, value as Record<string, unknown>, Object.keys(value as object));
      }
    }
  }

  /** Returns undefined if the field is beyond the limits. */
  #newSlot(level: Level, key: string): Slot | undefined {
    const path = level.prefix + key;
    const known = this.#fields.get(path);
    if (known !== undefined) {
      // `{ "a": { "b": 1 } }` and `{ "a.b": 1 }` have the same path, and count as one field.
      level.slots.set(key, known);
      return known;
    }
    const isBeyond = this.#fields.size >= MAX_PROFILE_FIELDS || path.length > MAX_NAME;
    if (isBeyond && !this.#needed.has(path)) {
      if (this.#omitted.size < MAX_OMITTED) this.#omitted.add(path.slice(0, MAX_NAME));
      return undefined;
    }
    const slot: Slot = {
      key,
      path,
      profile: new FieldProfile(),
      watch: this.#watches.get(path),
      inner: undefined,
    };
    level.slots.set(key, slot);
    this.#fields.set(path, slot);
    return slot;
  }
}

/** The first fields that fit into the limits of a stored profile. */
function fitting(fields: readonly ProfileField[]): ProfileField[] {
  let bytes = 0;
  const after = fields.slice(0, MAX_PROFILE_FIELDS).findIndex((field) => {
    bytes += Buffer.byteLength(JSON.stringify(field)) + 1;
    return bytes > MAX_PROFILE_BYTES - 200;
  });
  return fields.slice(0, after === -1 ? MAX_PROFILE_FIELDS : after);
}
