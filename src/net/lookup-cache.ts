/** A cache of name look-ups: callers that want the same name share one look-up, and the number under way is bounded. */

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
  /** Whether the last look-up failed. */
  failed: boolean;
}

const MAX_ENTRIES = 10_000;
const MAX_OUTSTANDING = 32;
/** Of these, names whose last look-up failed may take at most half, so that dead names never hold up the others. */
const MAX_DOUBTFUL = 16;
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
}): { get(name: string): Promise<T> } {
  const { find, failedFreshMs, now } = options;
  const entries = new Map<string, Entry<T>>();
  const waiting = { trusted: [] as (() => void)[], doubtful: [] as (() => void)[] };
  let outstanding = 0;
  let outstandingDoubtful = 0;

  async function look(name: string, entry: Entry<T>, doubtful: boolean): Promise<T> {
    await turn(doubtful);
    let freshMs = 0;
    try {
      const found = await find(name);
      freshMs = found.freshMs;
      entry.failed = false;
      return found.value;
    } catch (error) {
      freshMs = failedFreshMs(error);
      entry.failed = true;
      throw error;
    } finally {
      entry.until = now() + freshMs;
      outstanding -= 1;
      if (doubtful) outstandingDoubtful -= 1;
      startNext();
    }
  }

  function turn(doubtful: boolean): Promise<void> {
    return new Promise((go) => {
      waiting[doubtful ? 'doubtful' : 'trusted'].push(go);
      startNext();
    });
  }

  function startNext(): void {
    while (outstanding < MAX_OUTSTANDING) {
      const mayDoubtful = outstandingDoubtful < MAX_DOUBTFUL;
      const trusted = waiting.trusted.shift();
      const go = trusted ?? (mayDoubtful ? waiting.doubtful.shift() : undefined);
      if (go === undefined) return;
      outstanding += 1;
      if (trusted === undefined) outstandingDoubtful += 1;
      go();
    }
  }

  return {
    get(name) {
      const known = entries.get(name);
      if (known !== undefined && (known.until === undefined || now() < known.until)) return known.answer;
      // Not cached: the next call may find room.
      if (waiting.trusted.length + waiting.doubtful.length >= MAX_WAITING) {
        const sentence = `More than ${MAX_WAITING} names are waiting to be looked up`;
        return Promise.reject(new LookupsBusyError(sentence));
      }
      const entry: Entry<T> = {
        answer: Promise.resolve() as Promise<never>,
        until: undefined,
        failed: known?.failed ?? false,
      };
      entry.answer = look(name, entry, entry.failed);
      // The callers handle the rejection; the cached promise must not count as unhandled.
      entry.answer.catch(() => undefined);
      // Deleted first, so that the map stays in the order of the look-ups, oldest first.
      entries.delete(name);
      const [oldest] = entries.keys();
      if (oldest !== undefined && entries.size >= MAX_ENTRIES) entries.delete(oldest);
      entries.set(name, entry);
      return entry.answer;
    },
  };
}
