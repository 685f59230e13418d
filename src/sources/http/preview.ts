/** Previews a source without a job: the first records, how often each field is filled, and the next request. */
import { createReadStream } from 'node:fs';
import type { HttpSource } from '../../model/http-source.ts';
import { createHostTurns } from '../../net/host-turns.ts';
import { createRedactor } from '../secrets.ts';
import { type Client, type ClientDeps, createClient } from './client.ts';
import { countFills } from './fields.ts';
import { createOutbound, namedOrigins } from './outbound.ts';
import { fieldNames } from './page.ts';
import { outcomeOf, readSource } from './read-source.ts';
import type { HttpRequest } from './request.ts';

/** The limit with detail pages, where each record takes a request. */
const MAX_FOLLOWED = 5;
const MAX_RECORDS = 10_000;
const SHOWN = 10;

interface PreviewInput {
  source: HttpSource;
  /** A file to use as the first response, instead of sending requests. */
  from: string | undefined;
  /** Number of pages to read of each start URL. */
  pages: number;
  allowNetworks: string;
  agent: string;
  /** Texts to mask, except in records. */
  secrets: readonly string[];
  signal: AbortSignal;
  /** Called with log lines, for example when a host asks to wait. */
  onLog(text: string): void;
}

export interface Preview {
  /** The first ten records, as a job would get them. */
  records: Record<string, unknown>[];
  /** The number of records read. */
  read: number;
  /** For each field, the number of records in which it is filled. */
  filled: Record<string, number>;
  requests: { method: string; url: string; status: number; ms: number }[];
  /** The next request that a run would send. */
  next: { method: string; url: string } | null;
  /** Sentences about fields that were not always filled. */
  unfilled: string[];
  /** Why it failed; null if it did not. */
  error: string | null;
}

/** Thrown to end the preview, instead of sending one more request or yielding one more record. */
class Enough extends Error {}

/**
 * Reads the source without publishing. Errors of the source are in `Preview.error`.
 *
 * @throws the signal's reason
 */
export async function previewSource(input: PreviewInput): Promise<Preview> {
  const { source, from, signal } = input;
  const preview: Preview = {
    records: [],
    read: 0,
    filled: {},
    requests: [],
    next: null,
    unfilled: [],
    error: null,
  };
  const redactor = createRedactor(input.secrets);
  const fills = countFills(fieldNames(source));
  const dispatcher = await createOutbound({
    allowNetworks: input.allowNetworks,
    proxy: source.proxy,
    named: namedOrigins(source),
  });
  const reading = readSource(
    {
      source: from === undefined ? source : { ...source, robots: 'ignore' },
      state: null,
      definitionHash: '',
      redactor,
    },
    {
      dispatcher,
      turns: createHostTurns().of('preview', { bindsOthers: true }),
      agent: input.agent,
      signal,
      // Requests are logged as `debug`. They are part of the result.
      log: (level, text) => {
        if (level !== 'debug') input.onLog(text);
      },
      onPage() {},
      fills,
      connect: (deps) =>
        limited(from === undefined ? createClient(deps) : fromFile(from), input, preview, deps),
    },
  );
  const outcome = await outcomeOf(async () => {
    try {
      for (;;) {
        const next = await reading.next();
        if (next.done === true) return next.value;
        for (const line of next.value) add(preview, line);
        const most = source.follow === null ? MAX_RECORDS : MAX_FOLLOWED;
        if (preview.read >= most) throw new Enough();
      }
    } catch (error) {
      if (error instanceof Enough)
        return { unchanged: false, state: {}, guard: fills.mistake(source.filled) };
      throw error;
    } finally {
      await reading.return(undefined as never).catch(() => undefined);
      await dispatcher.destroy();
    }
  });
  signal.throwIfAborted();
  if (!outcome.ok) preview.error = outcome.error;
  preview.unfilled.push(...fills.sentences().map(redactor.mask));
  // Default values do not count as filled. With detail pages, records beyond the preview may have been counted.
  for (const [name, count] of fills.filled()) preview.filled[name] = Math.min(count, preview.read);
  return preview;
}

function add(preview: Preview, line: string): void {
  preview.read += 1;
  const record = JSON.parse(line) as Record<string, unknown>;
  for (const name of Object.keys(record)) preview.filled[name] = (preview.filled[name] ?? 0) + 1;
  if (preview.records.length < SHOWN) preview.records.push(record);
}

/** Adds each request to the preview, and refuses the first one beyond it. */
function limited(
  client: Client,
  input: PreviewInput,
  preview: Preview,
  { now, redactor }: ClientDeps,
): Client {
  const { source, pages } = input;
  let left = input.from === undefined ? pages * source.urls.length : 1;
  const isPage = (request: HttpRequest) => new URL(request.url).pathname !== '/robots.txt';
  return {
    async send(request, options) {
      // With detail pages, the number of records is limited instead of the number of pages.
      if (isPage(request) && (source.follow === null || input.from !== undefined)) {
        left -= 1;
        if (left < 0) {
          preview.next ??= { method: request.method, url: redactor.mask(request.url) };
          throw new Enough();
        }
      }
      const startedAt = now();
      const response = await client.send(request, options);
      preview.requests.push({
        method: request.method,
        url: redactor.mask(request.url),
        status: response.status,
        ms: now() - startedAt,
      });
      return response;
    },
  };
}

function fromFile(file: string): Client {
  return {
    send: async (request) => ({
      status: 200,
      headers: {},
      // The command line makes the URL from the file name, which helps to detect the format.
      url: URL.parse(request.url)?.href ?? request.url,
      body: createReadStream(file),
    }),
  };
}
