/** Runs the shell blocks of a page as one script, in a directory that looks like a fresh clone, beside a real server. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, cp, mkdir, mkdtemp, open, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, test } from 'node:test';
import { keptCode } from '../run/kept-code.ts';
import { startServerProcess } from '../server-process.ts';
import { BY_NODE, isRun, placeOf, ROOT, SERVER_STOPPED, SNIPPETS, type Snippet } from './snippets.ts';

/** At most so many pages have a server at the same time. */
const PAGES_AT_ONCE = 2;
const KEY = 'key-of-whoever-reads-the-page';
/** Of all commands of a page together, on a machine that is busy. */
const WITHIN_MS = 150_000;
/** Of what a page printed, when it fails. */
const MAX_SAID = 6_000;
/** What pages call the service and receivers of their own; each becomes a port that is free. */
const PORTS = /\b(8080|90\d\d)\b/g;

/** A test for each page that has commands: all of them, one after the other. */
export function testPages(isMeant: (page: string) => boolean): void {
  const inOrder = SNIPPETS.filter(isRun).filter(
    ({ page, language, verdict }) =>
      isMeant(page) && (language === 'sh' || (language === 'ts' && verdict !== undefined)),
  );
  describe('the commands of a page run one after the other', { concurrency: PAGES_AT_ONCE }, () => {
    const pages = [...Map.groupBy(inOrder, (snippet) => snippet.page)];
    // The longest first, so that nobody waits for it alone.
    for (const [page, of] of pages.sort(([, one], [, other]) => other.length - one.length)) {
      test(page, () => runPage(of));
    }
  });
}

/** @throws Error with the block that failed and what was printed up to there */
async function runPage(snippets: readonly Snippet[]): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-page-'));
  try {
    await makeClone(directory);
    const server = await startServerProcess(
      { FLOWHOOK_WORKFLOWS: 'examples/workflows', FLOWHOOK_BOOTSTRAP_KEY: KEY, HOME: directory },
      { directory },
    );
    try {
      const ports = await freePorts(snippets, new URL(server.url).port);
      const script = await scriptOf(snippets, { directory, ports, serverPid: server.process.pid ?? 0 });
      await runScript(script, { directory, environment: { BASE: server.url, KEY } });
    } finally {
      // A run that is under way ends with it, and leaves nothing of itself behind.
      await server.stop();
    }
  } finally {
    await rm(directory, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** What a clone has after `npm ci`, as far as pages use it; what a page writes stays here. */
async function makeClone(directory: string): Promise<void> {
  await cp(join(ROOT, 'examples'), join(directory, 'examples'), { recursive: true });
  await symlink(join(ROOT, 'node_modules'), join(directory, 'node_modules'));
  await writeFile(join(directory, 'package.json'), await readFile(join(ROOT, 'package.json')));
  // An answer that is an error ends the script, as a reader would end there.
  await writeFile(join(directory, '.curlrc'), 'fail-with-body\n');
  await mkdir(join(directory, '.bin'));
  const flowhook = `exec '${process.execPath}' '${join(ROOT, 'bin', 'flowhook.js')}' "$@"`;
  const programs = {
    flowhook: `#!/bin/sh\n${flowhook}\n`,
    // npm takes longer to find the command of the directory than the command itself takes.
    npx: `#!/bin/sh\n[ "$1" = flowhook ] || { echo "pages call npx for flowhook only" >&2; exit 2; }\nshift\n${flowhook}\n`,
  };
  for (const [name, text] of Object.entries(programs)) {
    await writeFile(join(directory, '.bin', name), text);
    await chmod(join(directory, '.bin', name), 0o755);
  }
}

async function freePorts(snippets: readonly Snippet[], serverPort: string): Promise<Map<string, string>> {
  const ports = new Map([['8080', serverPort]]);
  for (const { text } of snippets) {
    for (const [port] of text.matchAll(PORTS)) if (!ports.has(port)) ports.set(port, await freePort());
  }
  return ports;
}

/** Below those that the system gives to whoever asks for any: nobody else takes it in between. */
async function freePort(): Promise<string> {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 12_000);
    const probe = createServer().listen(port, '127.0.0.1');
    const isFree = await once(probe, 'listening').then(
      () => true,
      () => false,
    );
    if (!isFree) continue;
    probe.close();
    await once(probe, 'close');
    return String(port);
  }
}

async function scriptOf(
  snippets: readonly Snippet[],
  { directory, ports, serverPid }: { directory: string; ports: Map<string, string>; serverPid: number },
): Promise<string> {
  const parts = [
    'set -eu',
    `stop_server() { kill ${serverPid}; while kill -0 ${serverPid} 2>/dev/null; do sleep 0.05; done; }`,
    'trap \'echo "This failed: $BLOCK" >&2\' ERR',
    'set -x',
  ];
  for (const snippet of snippets) {
    parts.push(`BLOCK='${placeOf(snippet)}'`);
    const text = snippet.text.replaceAll(PORTS, (port) => ports.get(port) ?? port);
    const how = snippet.verdict !== undefined && 'run' in snippet.verdict ? snippet.verdict.run : undefined;
    if (how === BY_NODE) {
      const name = `snippet-${snippet.line}.mts`;
      await writeFile(join(directory, name), text);
      parts.push(`node ${name}`);
      continue;
    }
    if (how === SERVER_STOPPED) parts.push('stop_server');
    parts.push(text);
  }
  return parts.join('\n');
}

async function runScript(
  script: string,
  { directory, environment }: { directory: string; environment: Record<string, string> },
): Promise<void> {
  const saidPath = join(directory, '.said');
  const said = await open(saidPath, 'a');
  // A group of its own: what a page leaves in the background ends with it.
  const child = spawn('bash', ['-c', script], {
    cwd: directory,
    detached: true,
    stdio: ['ignore', said.fd, said.fd],
    env: {
      ...environment,
      PATH: [join(directory, '.bin'), dirname(process.execPath), process.env.PATH].join(':'),
      HOME: directory,
      ...keptCode,
    },
  });
  await said.close();
  const endGroup = () => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    } catch {
      // Nothing of it is left.
    }
  };
  const timer = setTimeout(endGroup, WITHIN_MS);
  const [code, signal] = (await once(child, 'exit')) as [number | null, string | null];
  clearTimeout(timer);
  endGroup();
  if (code === 0) return;
  const printed = await readFile(saidPath, 'utf8');
  throw new Error(`The page's commands ended with ${signal ?? code}:\n${printed.slice(-MAX_SAID)}`);
}
