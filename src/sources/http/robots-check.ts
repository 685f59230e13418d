/**
 * Checks robots.txt: before a request where the rules apply, else once the response turns out to be HTML, before it
 * is used.
 */
import type { HttpSource, Parse } from '../../model/http-source.ts';
import { createRobots, type RobotsFile } from '../../net/robots.ts';
import type { Client } from './client.ts';
import { SourceError } from './source-error.ts';

const MAX_ROBOTS_BYTES = 512 * 1024;

export interface RobotsCheck {
  /** Before a request. @throws SourceError naming the rule that forbids it */
  before(url: string): Promise<void>;
  /** After a response, whose format is known by then. @throws SourceError likewise */
  after(url: string, parse: Parse): Promise<void>;
}

/** @param options.setting null: robots.txt applies to HTML only */
export function createRobotsCheck(options: {
  setting: HttpSource['robots'];
  agent: string;
  client: Client;
  /** Called with the `Crawl-delay` of a host. */
  slowDown(host: string, delayMs: number): void;
  parse?: Parse | null;
}): RobotsCheck {
  const robots = createRobots({
    agent: options.agent.split('/')[0] as string,
    read: (url) => readRobots(options.client, url),
  });
  let respects = options.setting === 'respect' || (options.setting === null && options.parse === 'html');

  async function ask(url: string): Promise<void> {
    const verdict = await robots.verdict(url);
    if (!verdict.allowed) throw new SourceError(verdict.why);
    if (verdict.delayMs > 0) options.slowDown(new URL(url).host, verdict.delayMs);
  }

  return {
    async before(url) {
      if (respects) await ask(url);
    },
    async after(url, parse) {
      if (options.setting === 'ignore') return;
      respects ||= parse === 'html';
      // Redirects may have led to another host.
      if (respects) await ask(url);
    },
  };
}

/** RFC 9309, section 2.3.1: 4xx means no rules, 5xx forbids everything, and 500 KiB of a file are enough. */
async function readRobots(client: Client, url: string): Promise<RobotsFile> {
  try {
    const answer = await client.send(
      {
        method: 'GET',
        url,
        headers: { accept: 'text/plain, */*;q=0.5', 'accept-encoding': 'identity' },
        body: null,
      },
      { accepted: [400, 401, 403, 404, 405, 406, 410, 451] },
    );
    const chunks: Buffer[] = [];
    let bytes = 0;
    for await (const chunk of answer.body) {
      chunks.push(chunk as Buffer);
      bytes += (chunk as Buffer).length;
      if (bytes > MAX_ROBOTS_BYTES) break;
    }
    if (answer.status >= 400) return { none: true };
    return { text: Buffer.concat(chunks).toString() };
  } catch (error) {
    const { status, message } = error as SourceError;
    if (status !== undefined && status < 500 && status !== 429) return { none: true };
    return { unreachable: message };
  }
}
