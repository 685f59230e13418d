/**
 * Judges how the records of a run differ from those of earlier runs, without being asked to. The rules prefer silence:
 * thousands of normal runs must not cause an alarm, or nobody reads the next one.
 *
 * - Rates (filled values, repeated ids) and counts have a usual range: from the minimum to the maximum of the earlier
 *   profiles, widened by what chance may add (`rangeOf`).
 * - Something new counts only if the earlier runs would have had at least 20 of it, had it been as frequent then.
 * - A change is reported once: the next run has it among its earlier profiles.
 */
import { countWords } from '../../std/amounts.ts';
import type { Mode } from '../workflow.ts';
import type { JobFinding } from './expect.ts';
import type { Profile, ProfileField, ValueKind } from './profile.ts';

/** Number of earlier profiles that a run is compared with: at most, and at least. */
export const COMPARED_PROFILES = 20;
const MIN_PROFILES = 5;
/** Runs with fewer records say nothing about rates. */
const MIN_RECORDS = 20;
/** The number of occurrences that earlier runs would have had. Chance alone leaves out 20 expected ones in e^-20. */
const MIN_EXPECTED = 20;
/** A field or kind is new if at least this many values, and this share of the records or values, have it. */
const MIN_NEW = 5;
const NEW_FIELD_SHARE = 0.05;
const NEW_KIND_SHARE = 0.01;
/** A field has vanished if at least this many newest profiles had it. */
const VANISHED_AFTER = 5;
/** Usual ranges are wider than the earlier values by at least this share. */
const MARGIN = 0.05;
/** A rate is unusual only if chance alone causes a rate as far from the earlier ones with less than this probability. */
const CHANCE = 1e-6;
/** The same for counts, in standard errors. */
const STANDARD_ERRORS = 5;

/** Kinds of drift: the `expectation` of a finding with `drift`. The first three are changes of the schema. */
type DriftKind = 'new' | 'vanished' | 'type' | 'filled' | 'records' | 'duplicates';

/**
 * Compares the profile of a run with earlier profiles of the same kind of run (`isWhole`).
 *
 * @param earlier newest first. Only the newest `COMPARED_PROFILES` are used
 * @returns changes of the schema first; nothing while there are too few earlier profiles
 */
export function judgeDrift(input: {
  mode: Mode;
  profile: Profile;
  earlier: readonly Profile[];
}): JobFinding[] {
  const { mode, profile } = input;
  const earlier = input.earlier.slice(0, COMPARED_PROFILES);
  if (earlier.length < MIN_PROFILES) return [];
  const drifts = isWhole(mode) ? recordDrift(profile, earlier) : [];
  const many = earlier.filter(({ records }) => records >= MIN_RECORDS);
  if (profile.records < MIN_RECORDS || many.length < MIN_PROFILES) return drifts;
  return [...fieldDrifts(profile, many, mode), ...drifts, ...duplicateDrift(profile, many)].sort(
    (a, b) => Number(isOfSchema(b)) - Number(isOfSchema(a)),
  );
}

/** Whether runs in this mode emit the whole data set. Other runs emit changes, and are compared only with such runs. */
export function isWhole(mode: Mode): boolean {
  return mode === 'replace';
}

/** Whether the finding is a change of the schema, which has an event. */
export function isOfSchema({ drift, expectation }: JobFinding): boolean {
  return drift && ['new', 'vanished', 'type'].includes(expectation);
}

/** The finding as a sentence without its period. */
export function driftSentence({ expectation, field, found, limit, count }: JobFinding): string {
  const there = countWords(count, 'record');
  switch (expectation as DriftKind) {
    case 'new':
      return `\`${field}\` is new: ${there} (${found} %) ${count === 1 ? 'has' : 'have'} it`;
    case 'vanished':
      return `\`${field}\` has vanished: no record has it, usually ${limit} have it`;
    case 'type':
      return `\`${field}\` has a new type: ${found} in ${there}, usually ${limit}`;
    case 'filled':
      return `\`${field}\` is filled in ${found} % of the records, usually in ${limit}`;
    case 'records':
      return `the run has ${there}, usually ${limit}`;
    case 'duplicates':
      return `${there} (${found} %) repeat an id, usually ${limit}`;
  }
}

function findingOf(
  expectation: DriftKind,
  finding: Pick<JobFinding, 'field' | 'found' | 'limit' | 'count'>,
): JobFinding {
  return { expectation, ...finding, examples: [], drift: true };
}

function recordDrift(profile: Profile, earlier: readonly Profile[]): JobFinding[] {
  const emitted = ({ records, duplicates }: Profile) => records - duplicates;
  const found = emitted(profile);
  const counts = earlier.map(emitted);
  const min = Math.min(...counts);
  const max = Math.max(...counts);
  // Counts vary by factors. Ten records more keep the factors of small data sets from being huge.
  const factor = ((max + 10) / (min + 10)) ** fewer(earlier.length);
  const low = Math.min((min + 10) / factor - 10, min - beyond(min));
  const high = Math.max((max + 10) * factor - 10, max + beyond(max));
  if (found >= low && found <= high) return [];
  return [findingOf('records', { field: null, found, limit: rangeWords(min, max), count: found })];
}

/** How far a count may be beyond the earlier ones by chance. */
function beyond(count: number): number {
  return Math.max(MARGIN * count, STANDARD_ERRORS * Math.sqrt(count));
}

function duplicateDrift(profile: Profile, earlier: readonly Profile[]): JobFinding[] {
  const range = rangeOf(earlier.map(({ duplicates, records }) => ({ part: duplicates, of: records })));
  const found = { part: profile.duplicates, of: profile.records };
  // Fewer repetitions than usual are no reason to worry.
  if (found.part / found.of <= range.max || !range.isOutside(found)) return [];
  return [
    findingOf('duplicates', {
      field: null,
      found: percent(found.part / found.of),
      limit: range.usual,
      count: found.part,
    }),
  ];
}

/** A field that the new profile or an earlier one has. `before` has one entry per earlier profile that knows it. */
interface Compared {
  path: string;
  now: ProfileField;
  before: { profile: Profile; field: ProfileField }[];
}

function fieldDrifts(profile: Profile, earlier: readonly Profile[], mode: Mode): JobFinding[] {
  const drifts: JobFinding[] = [];
  const drifted = new Set<string>();
  const unstable = unstableParents(earlier);
  for (const compared of comparedFields(profile, earlier)) {
    // What happens to an object happens to its fields.
    if (drifted.has(parentOf(compared.path))) {
      drifted.add(compared.path);
      continue;
    }
    const found = comesOrGoes(compared)
      ? unstable.has(parentOf(compared.path))
        ? undefined
        : (newDrift(profile, compared) ?? vanishedDrift(profile, compared))
      : (typeDrift(compared) ?? filledDrift(profile, compared, mode));
    if (found === undefined) continue;
    drifts.push(found);
    drifted.add(compared.path);
  }
  return drifts;
}

/** Whether only the new profile has the field, or only earlier ones. */
function comesOrGoes({ now, before }: Compared): boolean {
  return now.present === 0 || before.every(({ field }) => field.present === 0);
}

/** All fields, objects before the fields in them. A profile that omits fields does not know those that it lacks. */
function comparedFields(profile: Profile, earlier: readonly Profile[]): Compared[] {
  const all = [profile, ...earlier];
  const indexed = all.map((one) => new Map(one.fields.map((field) => [field.name, field])));
  const paths = [...new Set(all.flatMap(({ fields }) => fields.map(({ name }) => name)))].sort(
    (a, b) => levelOf(a) - levelOf(b),
  );
  return paths.flatMap((path) => {
    const [now, ...before] = all.map((one, at) => fieldIn(one, indexed[at]?.get(path), path));
    if (now === undefined) return [];
    const known = before.flatMap((field, at) =>
      field === undefined ? [] : [{ profile: earlier[at] as Profile, field }],
    );
    return known.length < MIN_PROFILES ? [] : [{ path, now, before: known }];
  });
}

function fieldIn(profile: Profile, field: ProfileField | undefined, name: string): ProfileField | undefined {
  if (field !== undefined) return field;
  return profile.omitted > 0 ? undefined : { name, present: 0, filled: 0, kinds: {} };
}

/**
 * The objects, or the record (''), whose fields keep changing: an object that maps days or ids to values has new fields
 * in every run.
 */
function unstableParents(earlier: readonly Profile[]): Set<string> {
  const seen = new Map<string, number>();
  const changes = new Map<string, number>();
  [...earlier].reverse().forEach((profile, at) => {
    const changed = new Set<string>();
    for (const { name, present } of profile.fields) {
      if (present < NEW_FIELD_SHARE * profile.records) continue;
      if (!seen.has(name)) {
        seen.set(name, at);
        // Fields of an object that is itself new do not make it unstable.
        const parent = parentOf(name);
        if (at > (seen.get(parent) ?? 0)) changed.add(parent);
      }
    }
    for (const parent of changed) changes.set(parent, (changes.get(parent) ?? 0) + 1);
  });
  return new Set([...changes].filter(([, count]) => 4 * count >= earlier.length).map(([parent]) => parent));
}

function newDrift(profile: Profile, { path, now, before }: Compared): JobFinding | undefined {
  const share = now.present / profile.records;
  if (now.present < MIN_NEW || share < NEW_FIELD_SHARE) return undefined;
  if (share * sum(before.map((one) => one.profile.records)) < MIN_EXPECTED) return undefined;
  return findingOf('new', { field: path, found: percent(share), limit: null, count: now.present });
}

function vanishedDrift(profile: Profile, { path, before }: Compared): JobFinding | undefined {
  const lacking = before.findIndex(({ field }) => field.present === 0);
  const having = lacking === -1 ? before : before.slice(0, lacking);
  if (having.length < VANISHED_AFTER) return undefined;
  const { usual, low } = rangeOf(having.map((one) => ({ part: one.field.present, of: one.profile.records })));
  const least = Math.min(...having.map((one) => one.field.present / one.profile.records));
  if (low <= 0 || least * profile.records < MIN_EXPECTED) return undefined;
  return findingOf('vanished', { field: path, found: 0, limit: usual, count: 0 });
}

function typeDrift({ path, now, before }: Compared): JobFinding | undefined {
  const filled = sum(before.map(({ field }) => field.filled));
  const known = new Set(before.flatMap(({ field }) => kindsOf(field).map(([kind]) => kind)));
  for (const [kind, count] of kindsOf(now)) {
    const share = count / now.filled;
    if (known.has(kind) || count < MIN_NEW || share < NEW_KIND_SHARE) continue;
    // Who accepts any text accepts a text of a special form, too.
    if (FORMS.has(kind) && known.has('text')) continue;
    if (share * filled < MIN_EXPECTED) continue;
    return findingOf('type', { field: path, found: kind, limit: [...known].join(' or '), count });
  }
  return undefined;
}

/** Texts of a special form. */
const FORMS: ReadonlySet<ValueKind> = new Set(['url', 'email', 'date', 'datetime', 'numeric']);

/** Numbers of values by kind. Amounts happen to be whole in one run, and are not in the next. */
function kindsOf({ kinds: { integer = 0, number = 0, ...kinds } }: ProfileField): [ValueKind, number][] {
  const others = Object.entries(kinds) as [ValueKind, number][];
  return integer + number === 0 ? others : [['number', integer + number], ...others];
}

function filledDrift(profile: Profile, { path, now, before }: Compared, mode: Mode): JobFinding | undefined {
  const range = rangeOf(before.map((one) => ({ part: one.field.filled, of: one.profile.records })));
  if (!range.isOutside({ part: now.filled, of: profile.records })) return undefined;
  // Changes often come in groups of similar records, so a rare field may be frequent in one run.
  if (!isWhole(mode) && now.filled / profile.records > range.max) return undefined;
  return findingOf('filled', {
    field: path,
    found: percent(now.filled / profile.records),
    limit: range.usual,
    count: now.filled,
  });
}

/**
 * The usual range of a share, and whether another share is outside of it. Few earlier values do not show how far values
 * vary, so the range is also wider than theirs by the distance between them.
 */
function rangeOf(earlier: readonly { part: number; of: number }[]): {
  /** In words. */
  usual: string;
  max: number;
  low: number;
  isOutside(found: { part: number; of: number }): boolean;
} {
  const shares = earlier.map(({ part, of }) => part / of);
  const min = Math.min(...shares);
  const max = Math.max(...shares);
  const margin = Math.max(MARGIN, (max - min) * fewer(earlier.length));
  // Values that were never empty so far may have been so by chance.
  const pooled = (sum(earlier.map(({ part }) => part)) + 1) / (sum(earlier.map(({ of }) => of)) + 2);
  return {
    usual: `${rangeWords(percent(min), percent(max))} %`,
    max,
    low: min - margin,
    isOutside({ part, of }) {
      const share = part / of;
      if (share >= min - margin && share <= max + margin) return false;
      const edge = share < min ? Math.min(min, pooled) : Math.max(max, pooled);
      return of * divergence(share, edge) > -Math.log(CHANCE);
    },
  };
}

/** `e^(-n * divergence)` bounds the probability that `n` records have this share or a farther one (Chernoff). */
function divergence(share: number, expected: number): number {
  const term = (a: number, b: number) => (a === 0 ? 0 : a * Math.log(a / b));
  return term(share, expected) + term(1 - share, 1 - expected);
}

/** How much farther than seen values may vary: by their distance, or by more if few have been seen. */
function fewer(profiles: number): number {
  return COMPARED_PROFILES / profiles;
}

function rangeWords(min: number, max: number): string {
  return min === max ? String(min) : `${min} to ${max}`;
}

/** Rounded to a tenth. */
function percent(share: number): number {
  return Math.round(share * 1_000) / 10;
}

function parentOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf('.')));
}

function levelOf(path: string): number {
  return path.split('.').length;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
