/** The way out of an `http` source: only to addresses that are allowed, by a proxy where one is named. */
import { type Dispatcher, ProxyAgent } from 'undici';
import { parseAllowNetworks } from '../../../net/address-policy.ts';
import { createGuardedDispatcher } from '../../../net/dispatcher.ts';
import { createResolver } from '../../../net/resolver.ts';

/**
 * With a proxy it is the proxy's address that is judged: the names of hosts are looked up there, and what it may
 * reach is for whoever runs it to say.
 */
export async function createOutbound(options: {
  allowNetworks: string;
  proxy: string | null;
}): Promise<Dispatcher> {
  const policy = parseAllowNetworks(options.allowNetworks);
  const resolver = createResolver();
  const guarded = createGuardedDispatcher({ policy, resolver });
  if (options.proxy === null) return guarded;
  const proxy = new URL(options.proxy);
  for (const address of await resolver.resolve(proxy.hostname)) {
    const verdict = policy.verdict(address);
    if (!verdict.allowed) throw new Error(`The proxy ${proxy.host} may not be used: ${verdict.why}`);
  }
  return new ProxyAgent({
    uri: proxy.origin,
    ...(proxy.username === ''
      ? {}
      : {
          token: `Basic ${Buffer.from(`${decodeURIComponent(proxy.username)}:${decodeURIComponent(proxy.password)}`).toString('base64')}`,
        }),
  });
}
