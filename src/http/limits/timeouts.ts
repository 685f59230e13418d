/** How long clients may take, and the Node settings for it. A connection that takes longer is answered and closed. */

/** In milliseconds. */
export interface Timeouts {
  /** For the headers of a request, and from opening a connection to its first request. */
  headersMs: number;
  /** For a request with its body, unless its operation `hasTime`. */
  requestMs: number;
  /** Between two requests on one connection. */
  keepAliveMs: number;
}

/** How often Node looks for requests that take too long: a slow one may last this much longer than its timeout. */
const LOOK_MS = { least: 200, most: 5_000 };

/** The options of Node's server. */
export function serverTimeouts({ headersMs, requestMs }: Timeouts) {
  const headersTimeout = Math.min(headersMs, requestMs);
  return {
    headersTimeout,
    requestTimeout: requestMs,
    connectionsCheckingInterval: Math.max(
      LOOK_MS.least,
      Math.min(LOOK_MS.most, Math.ceil(headersTimeout / 3)),
    ),
    // The TLS handshake, which can be slow as well.
    handshakeTimeout: headersTimeout,
  };
}
