/** Answers everything below `/ui/` that is not the API: the page, its files, and what stands in for them. */
import { Problem } from '../../model/error.ts';
import type { Call, Operation } from '../route.ts';
import { absentPage, type BuildState } from './absent-page.ts';
import { DASHBOARD } from './buildables.ts';
import { Built, INDEX } from './built-files.ts';
import { contentPolicy, newNonce } from './page-headers.ts';
import { acceptsHtml, sendFile } from './send-file.ts';

const NONCE_PLACE = '__CSP_NONCE__';
const HTML = 'text/html; charset=utf-8';

export class Pages {
  readonly #built: Built;
  readonly #state: () => BuildState;

  /** @param input.state how the building stands, where something builds */
  constructor(input: { directory: string; state: () => BuildState }) {
    this.#built = new Built(input.directory);
    this.#state = input.state;
  }

  /**
   * Sends a file, or the page for whatever a browser asks for that is none: its own router knows what is meant.
   *
   * @param path below `/ui/`, as it came
   * @throws Problem `route_not_found`
   */
  async send({ request, reply }: Call, path: string): Promise<unknown> {
    const built = await this.#built.look();
    const file = path === INDEX ? undefined : built?.files.get(path);
    if (file !== undefined) return sendFile(request, reply, file);
    const isPage =
      path === '' || path === INDEX || (acceptsHtml(request.headers.accept) && !path.startsWith('assets/'));
    if (!isPage) throw new Problem('route_not_found');
    const nonce = newNonce();
    reply.type(HTML).header('content-security-policy', contentPolicy(nonce));
    if (built === undefined) {
      return reply.header('cache-control', 'no-store').send(absentPage(DASHBOARD, this.#state(), nonce));
    }
    return reply.header('cache-control', 'no-cache').send(built.index.replaceAll(NONCE_PLACE, nonce));
  }
}

/** GET /ui/… */
export const readPage: Operation<Call> = {
  id: 'readPage',
  group: 'Service',
  summary: 'The dashboard',
  answer: { description: 'The page, or one of its files' },

  async handle(call) {
    const { ui } = call.services;
    if (ui === undefined) throw new Problem('route_not_found');
    return ui.pages.send(call, call.params.path ?? '');
  },
};

/** GET / for people. */
export const toDashboard: Operation<Call> = {
  id: 'toDashboard',
  group: 'Service',
  summary: 'Where the dashboard is',
  answer: { description: 'Moved' },

  async handle({ reply }) {
    return reply.headers({ vary: 'accept', 'cache-control': 'no-store' }).redirect('/ui/');
  },
};

/** Whether a page is what is wanted most, as by somebody who typed the address into a browser. */
export function prefersHtml(accept: string | undefined): boolean {
  return /^\s*text\/html\s*(?:;|,|$)/i.test(accept ?? '');
}
