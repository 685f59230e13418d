/**
 * A cache of name look-ups: callers that want the same name share one look-up, and the number under way is bounded.
 *
 * Teams take turns. Names that resolved the last time have places of their own, so that they never wait for names that
 * nobody answers.
 */
import { FairPlaces, NoPlaceError } from '../std/fair-places.ts';

export interface Found<T> {
  value: T;
  /** How long it may be reused; 0: only by those who are already waiting for it. */
  freshMs: number;
}

interface Entry<T> {
  /** The result, or the look-up under way. */
  answer: Promise<T>;
  /** When the result expires; undefined while the look-up is under way. */
  until: number | undefined;
  /** How the last look-up ended; undefined before the first. */
  last: 'found' | 'failed' | undefined;
  /** Also waits for a place in the line of this team, until the look-up has begun. */
  join(team: string): void;
}

const MAX_ENTRIES = 10_000;
/** Look-ups under way of names that resolved the last time, and of all others. */
const PROVEN_PLACES = 16;
const OTHER_PLACES = 32;
const MAX_WAITING = 10_000;

/** Too many look-ups are waiting; this one was not started. */
export class LookupsBusyError extends Error {
  override readonly name = 'LookupsBusyError';
}

/**
 * @param options.find looks a name up; what it throws is cached for `failedFreshMs(error)`
 * @param options.now milliseconds of any monotonic clock
 */
export function createLookupCache<T>(options: {
  find(name: string): Promise<Found<T>>;
  failedFreshMs(error: unknown): number;
  now(): number;
}): {
  /** @param team on whose behalf; calls without one share a line */
  get(name: string, team?: string): Promise<T>;
} {
  const { find, failedFreshMs, now } = options;
  const entries = new Map<string, Entry<T>>();
  const proven = new FairPlaces({ places: PROVEN_PLACES, mostWaiting: MAX_WAITING });
  const others = new FairPlaces({ places: OTHER_PLACES, mostWaiting: MAX_WAITING });

  async function look(name: string, entry: Entry<T>): Promise<T> {
    let freshMs = 0;
    try {
      const found = await find(name);
      freshMs = found.freshMs;
      entry.last = 'found';
      return found.value;
    } catch (error) {
      freshMs = failedFreshMs(error);
      entry.last = 'failed';
      throw error;
    } finally {
      entry.until = now() + freshMs;
    }
  }

  function begin(name: string, last: Entry<T>['last']): Entry<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const places = last === 'found' ? proven : others;
    const teams = new Set<string>();
    let hasBegun = false;
    const entry: Entry<T> = {
      answer: promise,
      until: undefined,
      last,
      join(team) {
        if (hasBegun || teams.has(team)) return;
        teams.add(team);
        places.take(team, { ahead: last === undefined }).then(
          (leave) => {
            if (hasBegun) return leave();
            hasBegun = true;
            look(name, entry).then(resolve, reject).finally(leave);
          },
          (error: unknown) => {
            teams.delete(team);
            // It still waits in the line of another team.
            if (hasBegun || teams.size > 0) return;
            hasBegun = true;
            // Not cached: the next call may find room.
            if (entries.get(name) === entry) entries.delete(name);
            reject(
              error instanceof NoPlaceError
                ? new LookupsBusyError('Too many names are waiting to be looked up')
                : error,
            );
          },
        );
      },
    };
    // The callers handle the rejection; the cached promise must not count as unhandled.
    promise.catch(() => undefined);
    return entry;
  }

  return {
    get(name, team = '') {
      const known = entries.get(name);
      if (known !== undefined && (known.until === undefined || now() < known.until)) {
        if (known.until === undefined) known.join(team);
        return known.answer;
      }
      const entry = begin(name, known?.last);
      // Deleted first, so that the map stays in the order of the look-ups, oldest first.
      entries.delete(name);
      const [oldest] = entries.keys();
      if (oldest !== undefined && entries.size >= MAX_ENTRIES) entries.delete(oldest);
      entries.set(name, entry);
      entry.join(team);
      return entry.answer;
    },
  };
}
