/** A site on loopback with the responses of a test, and reading it as a source in this process. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import { stringify } from 'yaml';
import { parseYamlDefinition } from '../../../src/definitions/definition.ts';
import type { HttpSource } from '../../../src/model/http-source.ts';
import type { Definition } from '../../../src/model/workflow.ts';
import { createHostTurns, type HostTurns } from '../../../src/net/host-turns.ts';
import { createOutbound, namedOrigins } from '../../../src/sources/http/outbound.ts';
import { readSource, type SourceDeps, type SourceEnd } from '../../../src/sources/http/read-source.ts';

export interface Site {
  /** Without a trailing slash. */
  url: string;
  /** `GET /path?query` of each request, in order. */
  asked: string[];
  requests: IncomingMessage[];
}

type Page = string | Buffer | object | ((request: IncomingMessage, response: ServerResponse) => void);

/**
 * @param pages by path, or by path and query. A text is sent as HTML, an object as JSON. A function responds itself.
 *   Other paths return 404
 */
export async function site(t: TestContext, pages: Record<string, Page> | RequestListener): Promise<Site> {
  const asked: string[] = [];
  const requests: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    const url = request.url ?? '';
    asked.push(`${request.method} ${url}`);
    requests.push(request);
    if (typeof pages === 'function') return pages(request, response);
    const page = pages[url] ?? pages[url.split('?', 1)[0] as string];
    if (typeof page === 'function') return page(request, response);
    if (page === undefined) return response.writeHead(404).end('Nothing here');
    const isText = typeof page === 'string' || Buffer.isBuffer(page);
    response.setHeader('content-type', isText ? 'text/html; charset=utf-8' : 'application/json');
    response.end(isText ? page : JSON.stringify(page));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked, requests };
}

/** Parses a definition. @throws Error with its mistakes */
export function definitionOf(settings: object): Definition {
  const parsed = parseYamlDefinition(stringify(settings), { file: 'acme/one.yaml' });
  if ('definition' in parsed) return parsed.definition;
  throw new Error(parsed.mistakes.map(({ message }) => message).join('\n'));
}

export interface Taken {
  // biome-ignore lint/suspicious/noExplicitAny: tests know the fields of their records.
  records: any[];
  end: SourceEnd;
  /** Log lines above the level `debug`, such as `warn …`. */
  said: string[];
  waits: number[];
}

/**
 * Reads a source to its end in this process, without waiting between attempts.
 *
 * @param input.named additional origins that may have loopback addresses
 */
export async function take(
  settings: { source: object; fields?: object; mode?: string },
  input: {
    state?: unknown;
    turns?: HostTurns;
    deps?: Partial<SourceDeps>;
    definitionHash?: string;
    named?: string[];
  } = {},
): Promise<Taken> {
  const definition = definitionOf({ ...settings, source: { type: 'http', ...settings.source } });
  const source = definition.source as HttpSource;
  const said: string[] = [];
  const waits: number[] = [];
  const dispatcher = await createOutbound({
    allowNetworks: 'loopback',
    proxy: source.proxy,
    named: namedOrigins(source).union(new Set(input.named)),
  });
  const records: unknown[] = [];
  try {
    const reading = readSource(
      { source, state: input.state ?? null, definitionHash: input.definitionHash ?? 'one' },
      {
        dispatcher,
        turns: input.turns ?? createHostTurns().of('trial', { bindsOthers: true }),
        agent: 'flowhook/0.0.0',
        signal: new AbortController().signal,
        log: (level, text) => {
          if (level !== 'debug') said.push(`${level} ${text}`);
        },
        onPage() {},
        random: () => 0.5,
        async wait(ms) {
          waits.push(ms);
        },
        ...input.deps,
      },
    );
    for (;;) {
      const next = await reading.next();
      if (next.done === true) return { records, end: next.value, said, waits };
      for (const line of next.value) records.push(JSON.parse(line));
    }
  } finally {
    await dispatcher.destroy();
  }
}
