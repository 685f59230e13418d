/** Writes refused sign-ins to the audit: not all of them, for anybody may cause any number. */
import { type Author, OF_INSTANCE } from '../../model/audit.ts';
import type { Logger } from '../../observe/log.ts';
import type { Store } from '../../store/store.ts';

const WINDOW_MS = 10 * 60_000;
/** By this node in one window; of each address only the first. */
const MAX_LINES = 20;

export class RefusedSignIns {
  readonly #store: Store;
  readonly #log: Logger;
  readonly #told = new Set<string>();
  #untilMs = 0;
  /** Refusals since the last line that was written. */
  #untold = 0;

  constructor(store: Store, log: Logger) {
    this.#store = store;
    this.#log = log;
  }

  /** Notes one. Never rejects: the refusal itself must be answered in any case. */
  async note(author: Author): Promise<void> {
    const now = this.#store.now();
    if (now >= this.#untilMs) {
      this.#told.clear();
      this.#untilMs = now + WINDOW_MS;
    }
    const address = author.address ?? '';
    if (this.#told.has(address) || this.#told.size >= MAX_LINES) {
      this.#untold += 1;
      return;
    }
    this.#told.add(address);
    const before = this.#untold;
    this.#untold = 0;
    const change = {
      teamId: OF_INSTANCE,
      action: 'sessions.refused',
      target: null,
      summary: before === 0 ? '' : `and ${before} more before it`,
    };
    await this.#store.audit
      .add({ change, author })
      .catch((err) => this.#log.warn({ err }, 'audit.not_written'));
  }
}
