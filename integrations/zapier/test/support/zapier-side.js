/** A fake Zapier: hook URLs, and the requests to them in the form that Zapier passes to an app. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';

/**
 * @typedef {object} Arrived
 * @property {{ method: string, querystring: string, headers: Record<string, string>, content: string }} rawRequest
 * @property {any} cleanedRequest
 */

export async function startZapierSide() {
  /** @type {Map<string, Arrived[]>} */
  const arrived = new Map();
  /** @type {Set<string>} */
  const off = new Set();
  /** @type {Set<string>} */
  const silent = new Set();
  /** @type {Set<() => void>} */
  const waiting = new Set();
  const server = createServer((request, response) => {
    /** @type {Buffer[]} */
    const chunks = [];
    request.on('error', () => {});
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => {
      const name = (request.url ?? '').slice(1);
      const content = Buffer.concat(chunks).toString();
      const one = {
        rawRequest: { method: 'POST', querystring: '', headers: asZapierNames(request.headers), content },
        cleanedRequest: JSON.parse(content),
      };
      arrived.set(name, [...(arrived.get(name) ?? []), one]);
      if (!silent.has(name)) response.writeHead(off.has(name) ? 410 : 200).end();
      for (const check of waiting) check();
    });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(undefined)));
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  return {
    /** @param {string} name */
    url: (name) => `http://127.0.0.1:${port}/${name}`,
    /** Switches the Zap off: further requests get 410. @param {string} name */
    switchOff: (name) => off.add(name),
    /** Accepts requests without responding. @param {string} name */
    fallSilent: (name) => silent.add(name),
    /** @param {string} name */
    speak: (name) => silent.delete(name),
    /** @param {string} name */
    at: (name) => arrived.get(name) ?? [],
    /**
     * Resolves with all requests to a URL once they satisfy the condition.
     *
     * @param {string} name
     * @param {(arrived: Arrived[]) => boolean} holds
     * @returns {Promise<Arrived[]>}
     */
    until: (name, holds) =>
      new Promise((resolve, reject) => {
        const look = () => {
          const there = arrived.get(name) ?? [];
          if (!holds(there)) return;
          clearTimeout(deadline);
          waiting.delete(look);
          resolve(there);
        };
        const deadline = setTimeout(() => {
          waiting.delete(look);
          const types = (arrived.get(name) ?? []).map((one) => one.cleanedRequest.type);
          reject(new assert.AssertionError({ message: `60 s at ${name}; there is: ${types.join(', ')}` }));
        }, 60_000);
        waiting.add(look);
        look();
      }),
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve(undefined));
        server.closeAllConnections();
      }),
  };
}

/**
 * `webhook-id` becomes `Http-Webhook-Id`, `content-type` becomes `Content-Type`.
 *
 * @param {import('node:http').IncomingHttpHeaders} headers
 */
function asZapierNames(headers) {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => {
      const words = name.replaceAll(/(^|-)[a-z]/g, (letter) => letter.toUpperCase());
      return [/^content-(type|length)$/.test(name) ? words : `Http-${words}`, String(value)];
    }),
  );
}
