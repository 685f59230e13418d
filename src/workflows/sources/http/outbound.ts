/** The way out of an `http` source: only to addresses that are allowed, by a proxy where one is named. */
import { isIP } from 'node:net';
import { type Dispatcher, ProxyAgent } from 'undici';
import { type AddressPolicy, parseAllowNetworks } from '../../../net/address-policy.ts';
import { BlockedAddressError, createGuardedDispatcher } from '../../../net/dispatcher.ts';
import { createResolver, type Resolver } from '../../../net/resolver.ts';

/**
 * With a proxy its own address is judged, and each target as far as this machine knows it: an address that is written
 * out, and all that a name resolves to here. The proxy looks names up for itself: one that is unknown here, or that
 * it resolves to something else, is for whoever runs it to refuse.
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
  const agent = new ProxyAgent({
    uri: proxy.origin,
    ...(proxy.username === ''
      ? {}
      : {
          token: `Basic ${Buffer.from(`${decodeURIComponent(proxy.username)}:${decodeURIComponent(proxy.password)}`).toString('base64')}`,
        }),
  });
  return agent.compose((dispatch) => (request, handler) => {
    refusalOf(new URL(String(request.origin)).hostname, policy, resolver).then(
      (refusal) => {
        if (refusal === undefined) dispatch(request, handler);
        else handler.onResponseError?.(null as never, refusal);
      },
      (error: Error) => handler.onResponseError?.(null as never, error),
    );
    return true;
  });
}

async function refusalOf(
  hostname: string,
  policy: AddressPolicy,
  resolver: Resolver,
): Promise<BlockedAddressError | undefined> {
  const literal = hostname.replace(/^\[|\]$/g, '');
  const addresses = isIP(literal) === 0 ? await resolver.resolve(hostname).catch(() => []) : [literal];
  const refused = addresses.map((address) => policy.verdict(address)).find(({ allowed }) => !allowed);
  if (refused === undefined || refused.allowed) return undefined;
  return new BlockedAddressError(`${hostname} may not be asked for by the proxy either: ${refused.why}`);
}
