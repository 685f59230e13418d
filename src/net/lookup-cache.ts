/** Remembers look-ups for a while, asks once for all who want the same, and bounds how many are under way. */

export interface Found<T> {
  value: T;
  /** For how long it may be used; 0 for this once. */
  freshMs: number;
}

interface Entry<T> {
  /** What is known, or being found out. */
  answer: Promise<T>;
  /** Until when; nothing while it is being found out. */
  until: number | undefined;
  /** The last look-up failed. */
  failed: boolean;
}

const MAX_ENTRIES = 10_000;
const MAX_OUTSTANDING = 32;
/** Names that failed the last time together hold at most half, so that the others always find room. */
const MAX_DOUBTFUL = 16;
const MAX_WAITING = 10_000;

/** There are too many look-ups; nobody was asked. */
export class LookupsBusyError extends Error {
  override readonly name = 'LookupsBusyError';
}

/**
 * @param options.find looks a name up; what it throws is remembered for `failedFreshMs(error)`
 * @param options.now milliseconds of any steady clock
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
      letGo();
    }
  }

  function turn(doubtful: boolean): Promise<void> {
    if (waiting.trusted.length + waiting.doubtful.length >= MAX_WAITING) {
      throw new LookupsBusyError(`More than ${MAX_WAITING} names are waiting to be looked up`);
    }
    return new Promise((go) => {
      waiting[doubtful ? 'doubtful' : 'trusted'].push(go);
      letGo();
    });
  }

  function letGo(): void {
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
      const entry: Entry<T> = {
        answer: Promise.resolve() as Promise<never>,
        until: undefined,
        failed: known?.failed ?? false,
      };
      entry.answer = look(name, entry, entry.failed);
      // Whoever asked hears of it; the one that is remembered must not count as unheard.
      entry.answer.catch(() => undefined);
      // Deleted first, so that the one looked up longest ago stands first.
      entries.delete(name);
      const [oldest] = entries.keys();
      if (oldest !== undefined && entries.size >= MAX_ENTRIES) entries.delete(oldest);
      entries.set(name, entry);
      return entry.answer;
    },
  };
}
