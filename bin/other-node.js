// Runs this program with the Node that npm has installed as an optional package, because the Node that started it is too
// old. Plain JavaScript for Node 20.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const FORWARDED = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'];

/** @returns {boolean} whether there is such a Node */
export function runWithOtherNode() {
  const node = installedNode();
  if (node === undefined) return false;
  // The path of the program stays as it was called, because `init` prints how to call it.
  const args = process.argv.slice(1);
  // Node 22.15 and later can replace the process, except on Windows.
  if (process.execve !== undefined && process.platform !== 'win32') {
    try {
      process.execve(node, [node, ...args], process.env);
    } catch (error) {
      fail(node, error);
      return true;
    }
  }
  const child = spawn(node, args, { stdio: 'inherit' });
  // Ctrl-C in a terminal reaches both processes, so the service receives SIGINT twice. It ignores the second one.
  const forwards = new Map(FORWARDED.map((signal) => [signal, () => child.kill(signal)]));
  for (const [signal, forward] of forwards) process.on(signal, forward);
  child.once('error', (error) => fail(node, error));
  child.once('exit', (code, signal) => {
    for (const [name, forward] of forwards) process.off(name, forward);
    if (signal === null) process.exitCode = code;
    else process.kill(process.pid, signal);
  });
  return true;
}

function fail(node, error) {
  process.stderr.write(`flowhook cannot run ${node}: ${error.message}\n`);
  process.exitCode = 1;
}

/** @returns {string | undefined} the path of the Node for this platform */
function installedNode() {
  const manifest = fileURLToPath(new URL('../package.json', import.meta.url));
  const { optionalDependencies } = JSON.parse(readFileSync(manifest, 'utf8'));
  const { resolve } = createRequire(manifest);
  for (const name of Object.keys(optionalDependencies)) {
    try {
      const found = resolve(`${name}/package.json`);
      return join(dirname(found), JSON.parse(readFileSync(found, 'utf8')).bin.node);
    } catch {
      // npm has not installed the package, because it is for another platform.
    }
  }
  return undefined;
}
