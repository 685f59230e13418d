/** Previews a source without a job: the first records, how often each field is filled, and the next request. */
import { createReadStream } from 'node:fs';
import { fieldNames, type HttpSource } from '../../model/http-source.ts';
import { createHostTurns } from '../../net/host-turns.ts';
import { createRedactor } from '../secrets.ts';
import { type Client, type ClientDeps, createClient } from './client.ts';
import { countFills } from './fields.ts';
import { createOutbound, namedOrigins } from './outbound.ts';
import { outcomeOf, readSource } from './read-source.ts';
import type { HttpRequest } from './request.ts';

/** Maximum number of records in a preview with detail pages, where each record takes another request. */
const MAX_FOLLOWED = 5;
const MAX_RECORDS = 10_000;
const SHOWN = 10;

interface PreviewInput {
  source: HttpSource;
  /** A file whose content replaces the first response. If set, no requests are sent. */
  from: string | undefined;
  /** Number of pages to read for each start URL. */
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
  /** The first ten records, in the form that a job would stage. */
  records: Record<string, unknown>[];
  /** The number of records read. */
  read: number;
  /** The number of records in which each field is filled. */
  filled: Record<string, number>;
  requests: { method: string; url: string; status: number; ms: number }[];
  /** The next request that a run would send, if the preview stopped before it. Otherwise null. */
  next: { method: string; url: string } | null;
  /** Sentences about fields that were not filled in every record. */
  unfilled: string[];
  /** The message of the error that ended the preview. Null if the preview succeeded. */
  error: string | null;
}

/** Thrown to end the preview when the maximum number of requests or records is reached. */
class Enough extends Error {}

/**
 * Reads the source without publishing. An error of the source is returned in `Preview.error`.
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
      // Requests are logged at the level `debug`. They are left out here, because the preview lists them in `requests`.
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
      if (error instanceof Enough) return { unchanged: false, state: {} };
      throw error;
    } finally {
      await reading.return(undefined as never).catch(() => undefined);
      await dispatcher.destroy();
    }
  });
  signal.throwIfAborted();
  if (!outcome.ok) preview.error = outcome.error;
  preview.unfilled.push(...fills.sentences().map(redactor.mask));
  // A field that has only its default value does not count as filled. With detail pages, fields of records beyond the
  // preview may have been counted, so the counts are limited to the number of records read.
  for (const [name, count] of fills.filled()) preview.filled[name] = Math.min(count, preview.read);
  return preview;
}

function add(preview: Preview, line: string): void {
  preview.read += 1;
  const record = JSON.parse(line) as Record<string, unknown>;
  for (const name of Object.keys(record)) preview.filled[name] = (preview.filled[name] ?? 0) + 1;
  if (preview.records.length < SHOWN) preview.records.push(record);
}

/**
 * Wraps a client. It adds each request to the preview, and refuses the first request beyond the maximum number of
 * pages.
 */
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
      // In a preview with detail pages, the number of records is limited, and not the number of pages.
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
      // The command line builds the URL from the file name, whose extension helps to detect the format.
      url: URL.parse(request.url)?.href ?? request.url,
      body: createReadStream(file),
    }),
  };
}
