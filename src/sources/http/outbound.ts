/**
 * The dispatcher for the requests of an `http` source. It connects only to allowed addresses, and uses a proxy if one
 * is configured.
 *
 * Private networks that `FLOWHOOK_ALLOW_NETWORKS` allows may be used only for hosts that the definition names.
 * Redirects and links may lead only to public addresses. Otherwise, any page could make Flowhook read other hosts of
 * the private network.
 */
import type { Dispatcher } from 'undici';
import type { HttpSource } from '../../model/http-source.ts';
import { type AddressPolicy, parseAllowNetworks } from '../../net/address-policy.ts';
import { BlockedAddressError, createGuardedDispatcher } from '../../net/dispatcher.ts';
import { createResolver, type Resolver } from '../../net/resolver.ts';
import { createProxyAgent, Dispatcher as UndiciDispatcher } from '../../net/undici.ts';

/**
 * Returns the origins of the start URLs and of the token endpoint. Only hosts at these origins may have addresses that
 * are not public.
 */
export function namedOrigins({ urls, auth }: Pick<HttpSource, 'urls' | 'auth'>): Set<string> {
  const named = auth?.type === 'oauth2' ? [...urls, auth.tokenUrl] : urls;
  return new Set(named.flatMap((url) => URL.parse(url)?.origin ?? []));
}

/**
 * Returns whether a URL has one of these origins. If an origin uses HTTP, the same host with HTTPS counts too. HTTP in
 * place of HTTPS does not count.
 */
export function isAtOrigin(target: URL, origins: ReadonlySet<string>): boolean {
  return (
    origins.has(target.origin) || (target.protocol === 'https:' && origins.has(`http://${target.hostname}`))
  );
}

/**
 * Creates the dispatcher. With a proxy, it checks the address of the proxy, and the address of each target as far as
 * possible: literal addresses, and all addresses to which a name resolves on this machine. The proxy resolves names
 * itself. A name that is unknown here, or that resolves to another address on the proxy, can be refused only by the
 * operator of the proxy.
 *
 * @param options.named the result of `namedOrigins`
 * @throws Error if the address of the proxy is not allowed
 */
export async function createOutbound(options: {
  allowNetworks: string;
  proxy: string | null;
  named: ReadonlySet<string>;
}): Promise<Dispatcher> {
  const policy = parseAllowNetworks(options.allowNetworks);
  const policyOf = (target: URL) => (isAtOrigin(target, options.named) ? policy : publicOnly(policy));
  const resolver = createResolver();
  if (options.proxy === null) {
    const named = createGuardedDispatcher({ policy, resolver });
    const others = createGuardedDispatcher({ policy: publicOnly(policy), resolver });
    return new Fork([named, others], (target) => (isAtOrigin(target, options.named) ? named : others));
  }
  const proxy = new URL(options.proxy);
  for (const address of await resolver.resolve(proxy.hostname)) {
    const verdict = policy.verdict(address);
    if (!verdict.allowed) throw new Error(`The proxy ${proxy.host} may not be used: ${verdict.why}`);
  }
  const agent = createProxyAgent({
    uri: proxy.origin,
    ...(proxy.username === ''
      ? {}
      : {
          token: `Basic ${Buffer.from(`${decodeURIComponent(proxy.username)}:${decodeURIComponent(proxy.password)}`).toString('base64')}`,
        }),
  });
  return agent.compose((dispatch) => (request, handler) => {
    const target = new URL(String(request.origin));
    refusalOf(target.hostname, policyOf(target), resolver).then(
      (refusal) => {
        if (refusal === undefined) dispatch(request, handler);
        else handler.onResponseError?.(null as never, refusal);
      },
      (error: Error) => handler.onResponseError?.(null as never, error),
    );
    return true;
  });
}

function publicOnly(policy: AddressPolicy): AddressPolicy {
  const strict = parseAllowNetworks('none');
  return {
    ...strict,
    verdict(address) {
      const verdict = strict.verdict(address);
      if (verdict.allowed || !policy.verdict(address).allowed) return policy.verdict(address);
      return {
        allowed: false,
        why:
          `${address} is not a public address. Redirects and links may lead only to public addresses; only ` +
          `hosts in \`source.url\` may be private`,
      };
    },
  };
}

/** Sends each request through one of several dispatchers. */
class Fork extends UndiciDispatcher {
  readonly #dispatchers: readonly Dispatcher[];
  readonly #choose: (target: URL) => Dispatcher;

  constructor(dispatchers: readonly Dispatcher[], choose: (target: URL) => Dispatcher) {
    super();
    this.#dispatchers = dispatchers;
    this.#choose = choose;
  }

  override dispatch(...[request, handler]: Parameters<Dispatcher['dispatch']>): boolean {
    return this.#choose(new URL(String(request.origin))).dispatch(request, handler);
  }

  override async close(): Promise<void> {
    await Promise.all(this.#dispatchers.map((one) => one.close()));
  }

  override async destroy(): Promise<void> {
    await Promise.all(this.#dispatchers.map((one) => one.destroy()));
  }
}

async function refusalOf(
  hostname: string,
  policy: AddressPolicy,
  resolver: Resolver,
): Promise<BlockedAddressError | undefined> {
  const addresses = await resolver.resolve(hostname).catch(() => []);
  const refused = addresses.map((address) => policy.verdict(address)).find(({ allowed }) => !allowed);
  if (refused === undefined || refused.allowed) return undefined;
  return new BlockedAddressError(`The proxy may not connect to ${hostname}: ${refused.why}`);
}
