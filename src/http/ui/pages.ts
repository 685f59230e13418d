/** Serves the built pages and files of the dashboard (`/ui/`, without the API) and the guide (`/docs/guide/`). */
import { createHash } from 'node:crypto';
import { extname, join } from 'node:path';
import { promisify } from 'node:util';
import { brotliDecompress } from 'node:zlib';
import { Problem } from '../../model/error.ts';
import { compress } from '../../records/formats.ts';
import { listOwnFiles, markOfOwnFile, readOwnBytes } from '../../std/own-files.ts';
import { matchesTag } from '../caching.ts';
import { acceptedOf } from '../negotiate.ts';
import { type Call, type Operation, type Route, route } from '../route.ts';
import { contentPolicy, newNonce } from '../server/headers.ts';
import { type BackgroundBuild, type BuildState, type BuildTarget, INDEX, TEXTS } from './background-build.ts';

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

/** The location of the dashboard or the guide, and its build. */
interface Built {
  root: string;
  what: BuildTarget;
  build: BackgroundBuild;
}

/** GET /ui/…, and GET / in a browser. */
export function dashboardRoutes({ root, what, build }: Built): Route[] {
  const files = new BuiltDirectory(join(root, what.folder, 'dist'));
  return [
    route('GET', '/ui/*', null, {
      ...common,
      id: 'readPage',
      summary: 'The dashboard',

      /** A browser gets the page for every path that is not a file, because the page has its own router. */
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
 * @param builds whether the first request builds the guide if it is missing or outdated
 */
export function guideRoute({ root, what, build }: Built, builds: boolean): Route {
  const files = new BuiltDirectory(join(root, what.folder, 'dist'));
  const readGuide: Operation<Call> = {
    ...common,
    id: 'readGuide',
    summary: 'The guide',

    /** For a missing page, a browser gets a page and other clients get an error. */
    async handle({ request, reply, params: { path } }) {
      // Pages link to each other with relative paths.
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

/** Whether `Accept` lists HTML first, as browsers do when the user types an address. */
export function prefersHtml(accept: string | undefined): boolean {
  return /^\s*text\/html\s*(?:;|,|$)/i.test(accept ?? '');
}

/** Whether `Accept` lists HTML explicitly; wildcards do not count. */
function acceptsHtml(accept: string | undefined): boolean {
  return /(?:^|,)\s*text\/html\s*(?:;|,|$)/i.test(accept ?? '');
}

/**
 * Sends a built file in the best encoding, with caching headers, or responds with 304.
 *
 * @param status instead of 200, for the page about a missing page
 * @throws Problem `not_ready` while a new build replaces the directory
 */
async function sendFile(
  { request, reply }: Pick<Call, 'request' | 'reply'>,
  file: BuiltFile,
  status?: number,
): Promise<unknown> {
  const encoding = acceptedOf(request.headers['accept-encoding'], file.encodings) ?? 'identity';
  const tag = `"${file.digest.slice(0, 32)}-${encoding}"`;
  reply.headers({
    etag: tag,
    vary: 'accept-encoding',
    'cache-control': file.isHashed ? `public, max-age=${A_YEAR_S}, immutable` : 'no-cache',
  });
  if (status === undefined && matchesTag(request.headers['if-none-match'], tag)) return reply.code(304);
  if (encoding !== 'identity') reply.header('content-encoding', encoding);
  const bytes = await encodedFile(file, encoding).catch((cause) => {
    throw new Problem('not_ready', { cause });
  });
  return reply
    .code(status ?? reply.statusCode)
    .type(file.type)
    .send(bytes);
}

/** Reads a file in an encoding. Its gzip form is kept, because browsers accept Brotli only by HTTPS and from localhost. */
async function encodedFile(file: BuiltFile, encoding: FileEncoding): Promise<Uint8Array> {
  const { path, stored } = file;
  if (encoding === stored) return readOwnBytes(path);
  if (encoding === 'identity') return promisify(brotliDecompress)(await readOwnBytes(path));
  file.gzip ??= encodedFile(file, 'identity').then((bytes) => compress(bytes, 'gzip', { isKept: true }));
  file.gzip.catch(() => {
    file.gzip = undefined;
  });
  return file.gzip;
}

type FileEncoding = 'br' | 'gzip' | 'identity';

interface BuiltFile {
  /** Absolute. */
  path: string;
  /** Texts are compressed by `toolchain/compress.ts`. */
  stored: 'br' | 'identity';
  /** Those in which it is sent, best first. */
  encodings: readonly FileEncoding[];
  gzip?: Promise<Uint8Array> | undefined;
  /** The `Content-Type`. */
  type: string;
  /** SHA-256 of the stored bytes, in hex. */
  digest: string;
  /** Whether its name contains a hash of its content: such a file can be cached indefinitely. */
  isHashed: boolean;
}

interface BuiltFiles {
  /** By path below the directory, with slashes. Other files are not served. */
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
/** The directory of a build, read again when its `index.html` has changed. */
class BuiltDirectory {
  readonly #directory: string;
  #known: { mark: string; built: Promise<BuiltFiles> } | undefined;

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** The files; undefined if there is no build. */
  async look(): Promise<BuiltFiles | undefined> {
    for (let tries = 1; ; tries++) {
      try {
        return await this.#look();
      } catch (error) {
        // Another build may have replaced this one during the read.
        if (tries === MAX_TRIES) throw error;
      }
    }
  }

  async #look(): Promise<BuiltFiles | undefined> {
    const mark = await markOfOwnFile(join(this.#directory, INDEX));
    if (mark === undefined) return undefined;
    // Concurrent requests share one read.
    if (this.#known?.mark !== mark) this.#known = { mark, built: readBuilt(this.#directory) };
    const { built } = this.#known;
    built.catch(() => {
      if (this.#known?.built === built) this.#known = undefined;
    });
    return built;
  }
}

async function readBuilt(directory: string): Promise<BuiltFiles> {
  const files = new Map<string, BuiltFile>();
  for (const name of listOwnFiles(directory)) {
    const stored = name.endsWith('.br') ? 'br' : 'identity';
    const plainName = stored === 'br' ? name.slice(0, -'.br'.length) : name;
    const type = TYPES[extname(plainName)];
    if (type === undefined) continue;
    const path = join(directory, name);
    const digest = createHash('sha256')
      .update(await readOwnBytes(path))
      .digest('hex');
    const encodings: FileEncoding[] = TEXTS.test(plainName) ? ['gzip', 'identity'] : ['identity'];
    if (stored === 'br') encodings.unshift('br');
    files.set(plainName, { path, stored, encodings, type, digest, isHashed: name.startsWith('assets/') });
  }
  return { files, index: (await readOwnBytes(join(directory, INDEX))).toString() };
}

const words = ({ name, folder }: BuildTarget): Record<BuildState, { title: string; text: string }> => ({
  building: {
    title: `The ${name} is being built`,
    text: 'This takes a few seconds, once. This page reloads by itself. The API is already up.',
  },
  failed: {
    title: `The ${name} could not be built`,
    text: `The line <code>${name}.not_built</code> in the service's log says why. You can also build it with <code>npm run build</code> in the repository. The API is not affected.`,
  },
  none: {
    title: `The ${name} is not part of this installation`,
    text: `Its files are missing in <code>${folder}/dist</code>. In the repository, run <code>npm ci &amp;&amp; npm run build</code>. The API is not affected.`,
  },
});

const STYLE =
  ':root { color-scheme: light dark; font: 16px/1.6 system-ui, sans-serif } main { margin: 20vh auto; max-width: 34rem; padding: 0 1rem }';

/** The page that is served while there is no build. During a build it reloads itself, without a script. */
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
<body><main><h1>${title}</h1><p>${text}</p><p>API reference: <a href="/docs">/docs</a></p></main></body>
</html>
`;
}
