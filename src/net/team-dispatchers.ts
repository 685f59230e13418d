/** A guarded dispatcher for each team: its connections are its own, and so are its turns at looking names up. */
import type { Dispatcher } from 'undici';
import type { AddressPolicy } from './address-policy.ts';
import { createGuardedDispatcher } from './dispatcher.ts';
import type { Resolver } from './resolver.ts';

/** Beyond this many, the one used longest ago is closed once its requests have ended. */
const MAX_DISPATCHERS = 1_000;

export interface TeamDispatchers {
  of(teamId: string): Dispatcher;
  /** Ends all connections. */
  destroy(): Promise<void>;
}

export function createTeamDispatchers({
  policy,
  resolver,
}: {
  policy: AddressPolicy;
  resolver: Resolver;
}): TeamDispatchers {
  /** The one used longest ago first. */
  const dispatchers = new Map<string, Dispatcher>();
  const closing = new Set<Dispatcher>();

  function closeOldest(): void {
    const [oldest] = dispatchers;
    if (oldest === undefined) return;
    const [teamId, dispatcher] = oldest;
    dispatchers.delete(teamId);
    closing.add(dispatcher);
    const closed = () => void closing.delete(dispatcher);
    dispatcher.close().then(closed, closed);
  }

  return {
    of(teamId) {
      const known = dispatchers.get(teamId);
      const dispatcher =
        known ??
        createGuardedDispatcher({
          policy,
          resolver: { resolve: (hostname) => resolver.resolve(hostname, teamId) },
        });
      dispatchers.delete(teamId);
      dispatchers.set(teamId, dispatcher);
      if (dispatchers.size > MAX_DISPATCHERS) closeOldest();
      return dispatcher;
    },
    async destroy() {
      const all = [...dispatchers.values(), ...closing];
      dispatchers.clear();
      await Promise.all(all.map((dispatcher) => dispatcher.destroy()));
    },
  };
}
