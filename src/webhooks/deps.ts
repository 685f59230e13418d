/** The dependencies of the operations on webhooks. */
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
  /** Logs what cannot be opened. The command line has none, and reports that itself. */
  log?: Logger;
  /** How many webhooks one workflow may have: FLOWHOOK_MAX_WEBHOOKS_PER_WORKFLOW. */
  limit: number;
}
