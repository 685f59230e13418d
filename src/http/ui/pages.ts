/**
 * Answers everything below `/ui/` but the API: the dashboard's page and files, or a placeholder while they are missing.
 */
import { Problem } from '../../model/error.ts';
import type { Call, Operation } from '../route.ts';
import { contentPolicy, newNonce } from '../server/headers.ts';
import { DASHBOARD } from './build-targets.ts';
import { BuiltDirectory, INDEX } from './built-files.ts';
import { type BuildState, placeholderPage } from './placeholder-page.ts';
import { acceptsHtml, sendFile } from './send-file.ts';
import { uiOf } from './services.ts';

const NONCE_PLACE = '__CSP_NONCE__';
const HTML = 'text/html; charset=utf-8';

export class Pages {
  readonly #built: BuiltDirectory;
  readonly #state: () => BuildState;

  /** @param input.state of the build that makes the files */
  constructor(input: { directory: string; state: () => BuildState }) {
    this.#built = new BuiltDirectory(input.directory);
    this.#state = input.state;
  }

  /**
   * Sends a file. Any other path that a browser asks for gets the page, whose own router knows what it means.
   *
   * @param path below `/ui/`, not decoded
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
      return reply.header('cache-control', 'no-store').send(placeholderPage(DASHBOARD, this.#state(), nonce));
    }
    return reply.header('cache-control', 'no-cache').send(built.index.replaceAll(NONCE_PLACE, nonce));
  }
}

/** GET /ui/… */
export const readPage: Operation<Call> = {
  id: 'readPage',
  open: true,
  group: 'Service',
  summary: 'The dashboard',
  answer: { description: 'The page, or one of its files' },

  async handle(call) {
    return uiOf(call).pages.send(call, call.params.path ?? '');
  },
};

/** GET /, in a browser. */
export const toDashboard: Operation<Call> = {
  id: 'toDashboard',
  open: true,
  group: 'Service',
  summary: 'Where the dashboard is',
  answer: { description: 'Moved' },

  async handle({ reply }) {
    return reply.headers({ vary: 'accept', 'cache-control': 'no-store' }).redirect('/ui/');
  },
};

/** Whether HTML is named first, as by a browser whose user typed the address. */
export function prefersHtml(accept: string | undefined): boolean {
  return /^\s*text\/html\s*(?:;|,|$)/i.test(accept ?? '');
}
