/** What the operations on webhooks need. */
import type { AddressPolicy } from '../net/address-policy.ts';
import type { Resolver } from '../net/resolver.ts';
import type { Logger } from '../observe/log.ts';
import type { Sealer } from '../std/seal.ts';
import type { Store } from '../store/store.ts';

export interface WebhookDeps {
  store: Store;
  sealer: Sealer;
  policy: AddressPolicy;
  resolver: Resolver;
  /** Hears of what cannot be opened; commands say it themselves. */
  log?: Logger;
  /** Webhooks that one workflow may have: FLOWHOOK_MAX_WEBHOOKS_PER_WORKFLOW. */
  limit: number;
}
