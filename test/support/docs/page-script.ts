/** Runs the shell blocks of a page as one script, in a directory like a fresh clone, with a real server. */
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

/** Number of pages that run concurrently. */
const CONCURRENCY = 2;
const KEY = 'key-of-the-reader-of-the-page';
/** For all commands of a page together, on a busy machine. */
const WITHIN_MS = 150_000;
/** Characters of the output in the error message. */
const MAX_OUTPUT = 6_000;
/** The ports of the service and of receivers in pages. They are replaced by free ports. */
const PORTS = /\b(8080|90\d\d)\b/g;

/** Makes a test for each selected page with commands, which runs all of its commands in order. */
export function testPages(isSelected: (page: string) => boolean): void {
  const inOrder = SNIPPETS.filter(isRun).filter(
    ({ page, language, verdict }) =>
      isSelected(page) && (language === 'sh' || (language === 'ts' && verdict !== undefined)),
  );
  describe('the commands of a page run in order', { concurrency: CONCURRENCY }, () => {
    const pages = [...Map.groupBy(inOrder, (snippet) => snippet.page)];
    // Longest first, so that the longest page does not run alone at the end.
    for (const [page, of] of pages.sort(([, one], [, other]) => other.length - one.length)) {
      test(page, () => runPage(of));
    }
  });
}

/** @throws Error with the block that failed and the output */
async function runPage(snippets: readonly Snippet[]): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-page-'));
  try {
    await makeClone(directory);
    const ports = await freePorts(snippets);
    await writeSettings(directory, snippets, ports);
    // Also for commands, which put the address of the server into links.
    const FLOWHOOK_PORT = ports.get('8080') ?? '0';
    const server = await startServerProcess(
      {
        FLOWHOOK_WORKFLOWS: 'examples/workflows',
        FLOWHOOK_BOOTSTRAP_KEY: KEY,
        HOME: directory,
        FLOWHOOK_PORT,
      },
      { directory },
    );
    try {
      const script = await scriptOf(snippets, { directory, ports, serverPid: server.process.pid ?? 0 });
      await runScript(script, { directory, environment: { BASE: server.url, KEY, FLOWHOOK_PORT } });
    } finally {
      // Stops running jobs as well, which would otherwise leave processes behind.
      await server.stop();
    }
  } finally {
    await rm(directory, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Makes a directory with the parts of a clone, after `npm ci`, that pages use. Pages write only there. */
async function makeClone(directory: string): Promise<void> {
  await cp(join(ROOT, 'examples'), join(directory, 'examples'), { recursive: true });
  await symlink(join(ROOT, 'node_modules'), join(directory, 'node_modules'));
  await writeFile(join(directory, 'package.json'), await readFile(join(ROOT, 'package.json')));
  // An error response ends the script.
  await writeFile(join(directory, '.curlrc'), 'fail-with-body\n');
  await mkdir(join(directory, '.bin'));
  const flowhook = `exec '${process.execPath}' '${join(ROOT, 'bin', 'flowhook.js')}' "$@"`;
  const programs = {
    flowhook: `#!/bin/sh\n${flowhook}\n`,
    // npm takes longer to find the command than the command takes to run.
    npx: `#!/bin/sh\n[ "$1" = flowhook ] || { echo "pages call npx for flowhook only" >&2; exit 2; }\nshift\n${flowhook}\n`,
  };
  for (const [name, text] of Object.entries(programs)) {
    await writeFile(join(directory, '.bin', name), text);
    await chmod(join(directory, '.bin', name), 0o755);
  }
}

/** A free port for the server, and for each other port in the page. */
async function freePorts(snippets: readonly Snippet[]): Promise<Map<string, string>> {
  const ports = new Map([['8080', await freePort()]]);
  for (const { text } of snippets) {
    for (const [port] of text.matchAll(PORTS)) if (!ports.has(port)) ports.set(port, await freePort());
  }
  return ports;
}

function withPorts(text: string, ports: ReadonlyMap<string, string>): string {
  return text.replaceAll(PORTS, (port) => ports.get(port) ?? port);
}

/** A page that writes `flowhook.yaml` asks its readers to restart the server. Here it starts with these settings. */
async function writeSettings(
  directory: string,
  snippets: readonly Snippet[],
  ports: ReadonlyMap<string, string>,
): Promise<void> {
  for (const { text } of snippets) {
    const [, settings] = /^cat > flowhook\.yaml <<'END'\n([\s\S]*?\n)END$/m.exec(text) ?? [];
    if (settings !== undefined) await writeFile(join(directory, 'flowhook.yaml'), withPorts(settings, ports));
  }
}

/** Chooses a port below the system's range for automatic ports, so that no other program takes it in between. */
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
    const text = withPorts(snippet.text, ports);
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
  const outputPath = join(directory, '.output');
  const output = await open(outputPath, 'a');
  // Its own process group, so that background processes of a page can be killed with it.
  const child = spawn('bash', ['-c', script], {
    cwd: directory,
    detached: true,
    stdio: ['ignore', output.fd, output.fd],
    env: {
      ...environment,
      PATH: [join(directory, '.bin'), dirname(process.execPath), process.env.PATH].join(':'),
      HOME: directory,
      ...keptCode,
    },
  });
  await output.close();
  const endGroup = () => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    } catch {
      // The group has already ended.
    }
  };
  const timer = setTimeout(endGroup, WITHIN_MS);
  const [code, signal] = (await once(child, 'exit')) as [number | null, string | null];
  clearTimeout(timer);
  endGroup();
  if (code === 0) return;
  const printed = await readFile(outputPath, 'utf8');
  throw new Error(`The page's commands ended with ${signal ?? code}:\n${printed.slice(-MAX_OUTPUT)}`);
}
