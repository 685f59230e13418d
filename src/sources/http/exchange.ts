/** One request and its response: checked against robots.txt, authorized, and decoded. */
import type { HttpSource, Parse } from '../../model/http-source.ts';
import type { Authorization } from './authorization.ts';
import { type Body, openBody } from './body.ts';
import type { Answer, Client } from './client.ts';
import type { HttpRequest } from './request.ts';
import type { RobotsCheck } from './robots-check.ts';
import { SourceError } from './source-error.ts';

/** Bounds the renewals of a token for one request, for a server that takes its time to refuse every token. */
const MAX_TRIES = 5;

export interface Exchange {
  /** @throws SourceError */
  ask(request: HttpRequest, accepted: readonly number[]): Promise<Answer>;
  /** @throws UnreadableError; SourceError when robots.txt turns out to forbid it */
  open(answer: Answer, parse: Parse | null): Promise<Body>;
}

export function createExchange(input: {
  source: HttpSource;
  client: Client;
  auth: Authorization;
  robots: RobotsCheck;
  warn(text: string): void;
}): Exchange {
  const { source, client, auth, robots } = input;
  let warned = false;
  return {
    async ask(request, accepted) {
      await robots.before(request.url);
      for (let tries = 1; ; tries++) {
        const signed = await auth.sign(request);
        try {
          return await client.send(signed, { accepted });
        } catch (error) {
          const isRefused = error instanceof SourceError && error.status === 401;
          if (!isRefused || tries === MAX_TRIES || !auth.refused(signed)) throw error;
        }
      }
    },
    async open(answer, parse) {
      const body = await openBody(answer.body, {
        parse,
        charset: source.charset,
        contentType: answer.headers['content-type'] ?? '',
        contentEncoding: answer.headers['content-encoding'] ?? '',
        url: answer.url,
      });
      if (body.warning !== undefined && !warned) input.warn(body.warning);
      warned ||= body.warning !== undefined;
      await robots.after(answer.url, body.parse);
      return body;
    },
  };
}
