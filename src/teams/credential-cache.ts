/** Caches what the database has for the hash of a credential: a key, or the secret of a session. */
import type { Store } from '../store/store.ts';

const MAX_CACHED = 1_000;
/** Beyond this many credentials, the teams of those looked up longest ago are forgotten: some 2 MB. */
const MAX_TEAMS = 10_000;

/**
 * Keeps what was found until any key or session changes, in this process or another one. Misses are not cached, so that
 * new credentials work at once.
 */
export class CredentialCache<Found> {
  readonly #found = new Map<string, Found>();
  /** The teams of credentials that were valid when they were looked up last; a change of others keeps them. */
  readonly #teams = new Map<string, string>();
  readonly #teamIdOf: (found: Found) => string;
  readonly #unwatch: () => void;
  #generation = 0;

  constructor(store: Store, teamIdOf: (found: Found) => string) {
    this.#teamIdOf = teamIdOf;
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
    this.#noteTeam(hash, found);
    // A key that was revoked while it was being read must not be cached as valid.
    if (found !== undefined && generation === this.#generation) {
      if (this.#found.size >= MAX_CACHED) this.#found.clear();
      this.#found.set(hash, found);
    }
    return found;
  }

  /** The team of a credential that was used before; says nothing of whether it is valid now. */
  teamOf(hash: string): string | undefined {
    return this.#teams.get(hash);
  }

  /** For a credential that turned out to be invalid: whoever sends it no longer counts as its team. */
  disown(hash: string): void {
    this.#teams.delete(hash);
  }

  forget(hash: string): void {
    this.#found.delete(hash);
  }

  close(): void {
    this.#unwatch();
  }

  #noteTeam(hash: string, found: Found | undefined): void {
    this.#teams.delete(hash);
    if (found === undefined) return;
    const [oldest] = this.#teams.keys();
    if (oldest !== undefined && this.#teams.size >= MAX_TEAMS) this.#teams.delete(oldest);
    this.#teams.set(hash, this.#teamIdOf(found));
  }
}
