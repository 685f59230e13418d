/**
 * The parts of undici that Flowhook uses. Loading them takes 20 ms at startup and 1.4 MB of memory. The whole package,
 * with `fetch`, WebSockets and caches, takes 90 ms and 14 MB, and would add 0.6 MB to the bundle.
 */
import { createRequire } from 'node:module';
import type * as Undici from 'undici';

const require = createRequire(import.meta.url);

export const Client = require('undici/lib/dispatcher/client.js') as typeof Undici.Client;
export const Dispatcher = require('undici/lib/dispatcher/dispatcher.js') as typeof Undici.Dispatcher;
export const buildConnector = require('undici/lib/core/connect.js') as typeof Undici.buildConnector;

type Options = Omit<Undici.Dispatcher.RequestOptions, 'origin' | 'path'>;

const send = require('undici/lib/api/api-request.js') as (
  this: Undici.Dispatcher,
  options: Undici.Dispatcher.RequestOptions,
) => Promise<Undici.Dispatcher.ResponseData>;

/** Sends a request. Resolves when the headers of the response have arrived; the body is a stream. */
export function request(
  { origin, pathname, search }: URL,
  { dispatcher, ...options }: Options & { dispatcher: Undici.Dispatcher },
): Promise<Undici.Dispatcher.ResponseData> {
  return send.call(dispatcher, { ...options, origin, path: pathname + search });
}

/** Creates a dispatcher that connects through a proxy. */
export function createProxyAgent(options: Undici.ProxyAgent.Options): Undici.Dispatcher {
  // The proxy agent is loaded only here, because few sources use a proxy.
  const ProxyAgent = require('undici/lib/dispatcher/proxy-agent.js') as typeof Undici.ProxyAgent;
  return new ProxyAgent(options);
}
