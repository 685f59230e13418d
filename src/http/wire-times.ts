/** How long clients may take, and what that is called in Node. A connection that is slower is answered and closed. */

/** In milliseconds. */
export interface WireTimes {
  /** For the headers of a request, and from the beginning of a connection until it is used. */
  headersMs: number;
  /** For a request with its body, unless its operation `hasTime`. */
  requestMs: number;
  /** Between two requests. */
  keepAliveMs: number;
}

/** How often Node looks for requests that take too long: in between nobody is ended, however slow. */
const LOOK_MS = { least: 200, most: 5_000 };

/** What a server is made with. */
export function timesOfServer({ headersMs, requestMs }: WireTimes) {
  const headersTimeout = Math.min(headersMs, requestMs);
  return {
    headersTimeout,
    requestTimeout: requestMs,
    connectionsCheckingInterval: Math.max(
      LOOK_MS.least,
      Math.min(LOOK_MS.most, Math.ceil(headersTimeout / 3)),
    ),
    // Of TLS, whose beginning can be slow as well.
    handshakeTimeout: headersTimeout,
  };
}
