/** Answers everything below `/ui/` but the API, and below `/docs/guide/`: pages and files that were built. */
import { createHash } from 'node:crypto';
import { readdir, readFile, stat } from 'node:fs/promises';
import { extname, join, relative, sep } from 'node:path';
import { Problem } from '../../model/error.ts';
import { matchesTag } from '../caching.ts';
import { acceptedOf } from '../negotiate.ts';
import { type Call, type Operation, type Route, route } from '../route.ts';
import { contentPolicy, newNonce } from '../server/headers.ts';
import type { BackgroundBuild, BuildState, BuildTarget } from './background-build.ts';

const INDEX = 'index.html';
const ABSENT = '404.html';
const NONCE_PLACE = '__CSP_NONCE__';
const HTML = 'text/html; charset=utf-8';
const A_YEAR_S = 365 * 24 * 3_600;
const MAX_TRIES = 3;

const common = {
  open: true,
  group: 'Service',
  answer: { description: 'A page, or one of its files' },
} as const;

/** Where one kind of pages is, and the build that makes them. */
interface Built {
  root: string;
  what: BuildTarget;
  build: BackgroundBuild;
}

/** GET /ui/…, and / in a browser. */
export function dashboardRoutes({ root, what, build }: Built): Route[] {
  const files = new BuiltDirectory(join(root, what.folder, 'dist'));
  return [
    route('GET', '/ui/*', null, {
      ...common,
      id: 'readPage',
      summary: 'The dashboard',

      /** Any path that is no file and that a browser asks for gets the page, whose own router knows what it means. */
      async handle({ request, reply, params: { path = '' } }) {
        const built = await files.look();
        const file = path === INDEX ? undefined : built?.files.get(path);
        if (file !== undefined) return sendFile({ request, reply }, file);
        const isForPeople = acceptsHtml(request.headers.accept) && !path.startsWith('assets/');
        if (path !== '' && path !== INDEX && !isForPeople) throw new Problem('route_not_found');
        const nonce = newNonce();
        reply.type(HTML).header('content-security-policy', contentPolicy(nonce));
        if (built === undefined) return reply.send(placeholderPage(what, build.state, nonce));
        return reply.header('cache-control', 'no-cache').send(built.index.replaceAll(NONCE_PLACE, nonce));
      },
    }),
    route('GET', '/', null, {
      ...common,
      id: 'toDashboard',
      summary: 'Where the dashboard is',

      async handle({ reply }) {
        return reply.headers({ vary: 'accept', 'cache-control': 'no-store' }).redirect('/ui/');
      },
    }),
  ];
}

/**
 * GET /docs/guide/…
 *
 * @param builds whether the first request builds it, where it is missing or its sources have changed
 */
export function guideRoute({ root, what, build }: Built, builds: boolean): Route {
  const files = new BuiltDirectory(join(root, what.folder, 'dist'));
  const readGuide: Operation<Call> = {
    ...common,
    id: 'readGuide',
    summary: 'The guide: what all of this is and how it is used',

    /** What does not exist is answered with a page in a browser, and with an error elsewhere. */
    async handle({ request, reply, params: { path } }) {
      // Its pages link to each other by relative paths.
      if (path === undefined) return reply.redirect('/docs/guide/');
      if (builds) void build.start();
      const built = await files.look();
      const isForPeople = path === '' || acceptsHtml(request.headers.accept);
      const nonce = newNonce();
      reply.header('content-security-policy', contentPolicy(nonce));
      if (built === undefined && isForPeople)
        return reply.type(HTML).send(placeholderPage(what, build.state, nonce));
      const file = built?.files.get(path === '' ? INDEX : path);
      if (file !== undefined) return sendFile({ request, reply }, file);
      const absent = isForPeople ? built?.files.get(ABSENT) : undefined;
      const problem = new Problem('route_not_found');
      if (absent === undefined) throw problem;
      return sendFile({ request, reply }, absent, problem.status);
    },
  };
  return route('GET', '/docs/guide/*', null, readGuide);
}

/** Whether HTML is named first, as by a browser whose user typed the address. */
export function prefersHtml(accept: string | undefined): boolean {
  return /^\s*text\/html\s*(?:;|,|$)/i.test(accept ?? '');
}

/** Whether HTML is named, not merely accepted by a wildcard. */
function acceptsHtml(accept: string | undefined): boolean {
  return /(?:^|,)\s*text\/html\s*(?:;|,|$)/i.test(accept ?? '');
}

/**
 * Sends a built file, in the best encoding, with caching headers; 304 to clients that have it.
 *
 * @param status instead of 200, for a file that stands in for a missing one
 * @throws Problem `not_ready` while another build takes its place
 */
async function sendFile(
  { request, reply }: Pick<Call, 'request' | 'reply'>,
  { type, digest, isHashed, paths }: BuiltFile,
  status?: number,
): Promise<unknown> {
  const encoding = acceptedOf(request.headers['accept-encoding'], [...paths.keys()]) ?? 'identity';
  const tag = `"${digest.slice(0, 32)}-${encoding}"`;
  reply.headers({
    etag: tag,
    vary: 'accept-encoding',
    'cache-control': isHashed ? `public, max-age=${A_YEAR_S}, immutable` : 'no-cache',
  });
  if (status === undefined && matchesTag(request.headers['if-none-match'], tag)) return reply.code(304);
  if (encoding !== 'identity') reply.header('content-encoding', encoding);
  const bytes = await readFile(paths.get(encoding) ?? '').catch((cause) => {
    // A new build is replacing the directory at this moment.
    throw new Problem('not_ready', { cause });
  });
  return reply
    .code(status ?? reply.statusCode)
    .type(type)
    .send(bytes);
}

type FileEncoding = 'br' | 'gzip' | 'identity';

interface BuiltFile {
  /** The `Content-Type`. */
  type: string;
  /** SHA-256 of the uncompressed bytes, in hex. */
  digest: string;
  /** Whether its name changes with its content: then it may be cached for ever. */
  isHashed: boolean;
  /** Paths on disk by encoding, the best first. */
  paths: ReadonlyMap<FileEncoding, string>;
}

interface BuiltFiles {
  /** By path below the directory, with slashes. Nothing else is sent. */
  files: ReadonlyMap<string, BuiltFile>;
  /** `index.html` as text. */
  index: string;
}

const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': HTML,
  '.ico': 'image/x-icon',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.map': 'application/json; charset=utf-8',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
  '.webmanifest': 'application/manifest+json',
  '.woff2': 'font/woff2',
  '.yaml': 'application/yaml; charset=utf-8',
};
/** The best first. */
const ENDINGS: readonly [ending: string, encoding: FileEncoding][] = [
  ['.br', 'br'],
  ['.gz', 'gzip'],
  ['', 'identity'],
];

/** The directory of a build, read again whenever its `index.html` has changed. */
class BuiltDirectory {
  readonly #directory: string;
  #known: { mark: string; built: Promise<BuiltFiles> } | undefined;

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** Its files; undefined when there is no build. */
  async look(): Promise<BuiltFiles | undefined> {
    for (let tries = 1; ; tries++) {
      try {
        return await this.#look();
      } catch (error) {
        // Another build replaced this one while it was read.
        if (tries === MAX_TRIES) throw error;
      }
    }
  }

  async #look(): Promise<BuiltFiles | undefined> {
    const found = await stat(join(this.#directory, INDEX)).catch(() => undefined);
    if (found === undefined) return undefined;
    const mark = `${found.ino} ${found.mtimeMs} ${found.size}`;
    // Requests that come while it is read share one read.
    if (this.#known?.mark !== mark) this.#known = { mark, built: readBuilt(this.#directory) };
    const { built } = this.#known;
    built.catch(() => {
      if (this.#known?.built === built) this.#known = undefined;
    });
    return built;
  }
}

async function readBuilt(directory: string): Promise<BuiltFiles> {
  // Only plain files: no symbolic links.
  const found = (await readdir(directory, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map((entry) => relative(directory, join(entry.parentPath, entry.name)).split(sep).join('/'));
  const names = new Set(found);
  const files = new Map<string, BuiltFile>();
  for (const name of found) {
    const type = TYPES[extname(name)];
    if (type === undefined) continue;
    const path = join(directory, name);
    const paths = new Map<FileEncoding, string>();
    for (const [ending, encoding] of ENDINGS)
      if (names.has(name + ending)) paths.set(encoding, path + ending);
    const digest = createHash('sha256')
      .update(await readFile(path))
      .digest('hex');
    files.set(name, { type, digest, isHashed: name.startsWith('assets/'), paths });
  }
  return { files, index: await readFile(join(directory, INDEX), 'utf8') };
}

const words = ({ name, folder }: BuildTarget): Record<BuildState, { title: string; text: string }> => ({
  building: {
    title: `The ${name} is being built`,
    text: 'This takes some seconds, once. The page comes by itself; the API is up already.',
  },
  failed: {
    title: `The ${name} could not be built`,
    text: `The log of the service says why, in its line <code>${name}.not_built</code>. In the repository, <code>npm run build</code> builds it as well. The API is not affected.`,
  },
  none: {
    title: `The ${name} is not part of this installation`,
    text: `Its files are missing in <code>${folder}/dist</code>. In the repository, <code>npm ci &amp;&amp; npm run build</code> makes them. The API is not affected.`,
  },
});

const STYLE =
  ':root { color-scheme: light dark; font: 16px/1.6 system-ui, sans-serif } main { margin: 20vh auto; max-width: 34rem; padding: 0 1rem }';

/** The page in place of others while they are missing. While a build is running it reloads itself, without a script. */
function placeholderPage(what: BuildTarget, state: BuildState, nonce: string): string {
  const { title, text } = words(what)[state];
  const reload = state === 'building' ? '\n<meta http-equiv="refresh" content="2">' : '';
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">${reload}
<link rel="icon" href="data:,">
<title>${title}</title>
<style nonce="${nonce}">${STYLE}</style>
</head>
<body><main><h1>${title}</h1><p>${text}</p><p>What the API offers: <a href="/docs">/docs</a></p></main></body>
</html>
`;
}
