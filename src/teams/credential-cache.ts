/** Caches what the database has for the hash of a credential: a key, or the secret of a session. */
import type { Store } from '../store/store.ts';

const MAX_CACHED = 1_000;

/**
 * Keeps what was found until any key or session changes, in this process or another one. Misses are not cached, so that
 * new credentials work at once.
 */
export class CredentialCache<Found> {
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
    // A key that was revoked while it was being read must not be cached as valid.
    if (found !== undefined && generation === this.#generation) {
      if (this.#found.size >= MAX_CACHED) this.#found.clear();
      this.#found.set(hash, found);
    }
    return found;
  }

  /** What was found before, if it is still kept. */
  peek(hash: string): Found | undefined {
    return this.#found.get(hash);
  }

  forget(hash: string): void {
    this.#found.delete(hash);
  }

  close(): void {
    this.#unwatch();
  }
}
