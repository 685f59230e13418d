/** Answers everything below `/docs/guide/`: the files that `site/` builds from `docs/`. */
import { join } from 'node:path';
import { Problem } from '../../model/error.ts';
import type { Call, Operation } from '../route.ts';
import { contentPolicy, newNonce } from '../server/headers.ts';
import type { BackgroundBuild } from './background-build.ts';
import { GUIDE } from './build-targets.ts';
import { BuiltDirectory, INDEX } from './built-files.ts';
import { placeholderPage } from './placeholder-page.ts';
import { acceptsHtml, sendFile } from './send-file.ts';
import { uiOf } from './services.ts';

const ABSENT = '404.html';

export class Guide {
  readonly #built: BuiltDirectory;
  readonly #build: BackgroundBuild;
  readonly #builds: boolean;

  /** @param input.builds whether the first request builds it, where it is missing or its sources have changed */
  constructor(input: { root: string; build: BackgroundBuild; builds: boolean }) {
    this.#built = new BuiltDirectory(join(input.root, GUIDE.folder, 'dist'));
    this.#build = input.build;
    this.#builds = input.builds;
  }

  /**
   * Sends a page or a file. What does not exist is answered with a page in a browser, and with an error elsewhere.
   *
   * @param path below `/docs/guide/`, not decoded
   * @throws Problem `route_not_found`
   */
  async send({ request, reply }: Call, path: string): Promise<unknown> {
    if (this.#builds) void this.#build.start();
    const built = await this.#built.look();
    const isForPeople = path === '' || acceptsHtml(request.headers.accept);
    const nonce = newNonce();
    reply.header('content-security-policy', contentPolicy(nonce));
    if (built === undefined && isForPeople)
      return reply.type('text/html; charset=utf-8').send(placeholderPage(GUIDE, this.#build.state, nonce));
    const file = built?.files.get(path === '' ? INDEX : path);
    if (file !== undefined) return sendFile(request, reply, file);
    const absent = isForPeople ? built?.files.get(ABSENT) : undefined;
    const problem = new Problem('route_not_found');
    if (absent === undefined) throw problem;
    return sendFile(request, reply, absent, problem.status);
  }
}

/** GET /docs/guide/… */
export const readGuide: Operation<Call> = {
  id: 'readGuide',
  open: true,
  group: 'Service',
  summary: 'The guide: what all of this is and how it is used',
  answer: { description: 'A page, or one of its files' },

  async handle(call) {
    const { guide } = uiOf(call);
    const { path } = call.params;
    // Its pages link to each other by relative paths.
    if (path === undefined) return call.reply.redirect('/docs/guide/');
    return guide.send(call, path);
  },
};
