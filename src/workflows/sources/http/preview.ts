/** Looks at the first records of a source without a job: what its paths find, and which pages it would go on to. */
import { createReadStream } from 'node:fs';
import type { HttpSource } from '../../../model/http-source.ts';
import { createHostTurns } from '../../../net/host-turns.ts';
import { type Client, type ClientDeps, createClient } from './client.ts';
import { countFills } from './fill-count.ts';
import { createHidden } from './hidden.ts';
import { namedOrigins } from './origins.ts';
import { createOutbound } from './outbound.ts';
import { outcomeOf } from './outcome.ts';
import { readSource, type SourceEnd } from './read-source.ts';
import { fieldNames } from './record-maker.ts';
import type { HttpRequest } from './request.ts';

/** With detail pages each record is a request. */
const MAX_FOLLOWED = 5;
const MAX_RECORDS = 10_000;
const SHOWN = 10;

export interface PreviewInput {
  source: HttpSource;
  /** A file that is taken for the first answer; nothing is sent then. */
  from: string | undefined;
  /** Pages that are read of each start URL. */
  pages: number;
  allowNetworks: string;
  agent: string;
  /** What must not be shown, but in records. */
  secrets: readonly string[];
  signal: AbortSignal;
  /** Told at once what is worth a word, such as that a host wants to be waited for. */
  onLog(text: string): void;
}

export interface Preview {
  /** The first, as they would be handed to the job. */
  records: Record<string, unknown>[];
  /** How many were read. */
  read: number;
  /** How many of those have each field. */
  filled: Record<string, number>;
  requests: { method: string; url: string; status: number; ms: number }[];
  /** What would be asked for next. */
  next: { method: string; url: string } | null;
  /** About fields that were not always filled. */
  unfilled: string[];
  /** Why it went no further, if something is wrong. */
  error: string | null;
}

/** Raised instead of the request that would lead beyond what is looked at. */
class Enough extends Error {}

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
  const hidden = createHidden(input.secrets);
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
      hidden,
    },
    {
      dispatcher,
      turns: createHostTurns(),
      agent: input.agent,
      signal,
      // Requests are told with the rest.
      log: (level, text) => {
        if (level !== 'debug') input.onLog(text);
      },
      onPage() {},
      fills,
      connect: (deps) => watched(from === undefined ? createClient(deps) : saved(from), input, preview, deps),
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
        return { unchanged: false, state: {}, guard: fills.mistake(source.filled) } as SourceEnd;
      throw error;
    } finally {
      await reading.return(undefined as never).catch(() => undefined);
      await dispatcher.destroy();
    }
  });
  signal.throwIfAborted();
  if (!outcome.ok) preview.error = outcome.error;
  preview.unfilled.push(...fills.sentences().map(hidden.mask));
  // What a default stands in is not filled; with detail pages, some are counted that were not looked at.
  for (const [name, count] of fills.filled()) preview.filled[name] = Math.min(count, preview.read);
  return preview;
}

function add(preview: Preview, line: string): void {
  preview.read += 1;
  const record = JSON.parse(line) as Record<string, unknown>;
  for (const name of Object.keys(record)) preview.filled[name] = (preview.filled[name] ?? 0) + 1;
  if (preview.records.length < SHOWN) preview.records.push(record);
}

/** Notes each request, and refuses the one that is too many. */
function watched(client: Client, input: PreviewInput, preview: Preview, { now, hidden }: ClientDeps): Client {
  const { source, pages } = input;
  let left = input.from === undefined ? pages * source.urls.length : 1;
  const isPage = (request: HttpRequest) => new URL(request.url).pathname !== '/robots.txt';
  return {
    async send(request, options) {
      // Detail pages end with the records that are looked at.
      if (isPage(request) && (source.follow === null || input.from !== undefined)) {
        left -= 1;
        if (left < 0) {
          preview.next ??= { method: request.method, url: hidden.mask(request.url) };
          throw new Enough();
        }
      }
      const startedAt = now();
      const answer = await client.send(request, options);
      preview.requests.push({
        method: request.method,
        url: hidden.mask(request.url),
        status: answer.status,
        ms: now() - startedAt,
      });
      return answer;
    },
  };
}

function saved(file: string): Client {
  return {
    send: async (request) => ({
      status: 200,
      headers: {},
      // Its name tells its kind as well as that of the address does.
      url: URL.parse(request.url)?.href ?? request.url,
      body: createReadStream(file),
    }),
  };
}
