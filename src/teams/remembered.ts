/** What was found in the database under the hash of something that is shown with every request. */
import type { Store } from '../store/store.ts';

/** What is remembered costs no database read; this bounds how many are. */
const MAX_REMEMBERED = 1_000;

/**
 * Remembers what was found until any key changes, here or elsewhere. What was not found is looked for every time, so
 * that what is made works at once.
 */
export class Remembered<Found> {
  readonly #found = new Map<string, Found>();
  readonly #unwatch: () => void;
  #generation = 0;

  constructor(store: Store) {
    this.#unwatch = store.watch((touched) => {
      if (!touched.keys) return;
      this.#generation += 1;
      this.#found.clear();
    });
  }

  async find(hash: string, look: () => Promise<Found | undefined>): Promise<Found | undefined> {
    const known = this.#found.get(hash);
    if (known !== undefined) return known;
    const generation = this.#generation;
    const found = await look();
    // A key that was revoked while it was being read must not be remembered as good.
    if (found !== undefined && generation === this.#generation) {
      if (this.#found.size >= MAX_REMEMBERED) this.#found.clear();
      this.#found.set(hash, found);
    }
    return found;
  }

  forget(hash: string): void {
    this.#found.delete(hash);
  }

  close(): void {
    this.#unwatch();
  }
}
