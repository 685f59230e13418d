/** Answers everything below `/docs/guide/`: the pages that were made of docs/, as files. */
import { join } from 'node:path';
import { Problem } from '../../model/error.ts';
import type { Call, Operation } from '../route.ts';
import { absentPage } from './absent-page.ts';
import type { BackgroundBuild } from './background-build.ts';
import { GUIDE } from './buildables.ts';
import { Built, INDEX } from './built-files.ts';
import { contentPolicy, newNonce } from './page-headers.ts';
import { acceptsHtml, sendFile } from './send-file.ts';

const ABSENT = '404.html';

export class Guide {
  readonly #built: Built;
  readonly #build: BackgroundBuild;
  readonly #builds: boolean;

  /** @param input.builds whether it is built when somebody asks for it first, and its sources are another's */
  constructor(input: { root: string; build: BackgroundBuild; builds: boolean }) {
    this.#built = new Built(join(input.root, GUIDE.folder, 'dist'));
    this.#build = input.build;
    this.#builds = input.builds;
  }

  /**
   * Sends a page or a file; to browsers, for what is none, a page that says so.
   *
   * @param path below `/docs/guide/`, as it came
   * @throws Problem `route_not_found`
   */
  async send({ request, reply }: Call, path: string): Promise<unknown> {
    if (this.#builds) void this.#build.start();
    const built = await this.#built.look();
    const isForPeople = path === '' || acceptsHtml(request.headers.accept);
    const nonce = newNonce();
    reply.header('content-security-policy', contentPolicy(nonce));
    if (built === undefined && isForPeople)
      return reply.type('text/html; charset=utf-8').send(absentPage(GUIDE, this.#build.state, nonce));
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
  group: 'Service',
  summary: 'The guide: what all of this is and how it is used',
  answer: { description: 'A page, or one of its files' },

  async handle(call) {
    const { ui } = call.services;
    const { path } = call.params;
    if (ui === undefined) throw new Problem('route_not_found');
    // Links of its pages are relative.
    if (path === undefined) return call.reply.redirect('/docs/guide/');
    return ui.guide.send(call, path);
  },
};
