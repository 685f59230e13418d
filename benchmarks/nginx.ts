/** Starts nginx on a free loopback port to serve the files of a directory: two workers, sendfile, no logs. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';

/** Returns undefined if there is no nginx on the PATH. */
export async function startNginx(
  directory: string,
): Promise<{ url: string; stop(): Promise<void> } | undefined> {
  const port = await freePort();
  const own = join(directory, 'nginx');
  await mkdir(own);
  const config = join(own, 'nginx.conf');
  await writeFile(
    config,
    `${process.getuid?.() === 0 ? 'user root;\n' : ''}daemon off;
worker_processes 2;
pid ${own}/pid;
error_log ${own}/error.log;
events {}
http {
  access_log off;
  sendfile on;
  tcp_nopush on;
  keepalive_requests 1000000000;
  default_type application/json;
${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((kind) => `  ${kind}_temp_path ${own}/${kind};`).join('\n')}
  server {
    listen 127.0.0.1:${port};
    root ${directory};
  }
}
`,
  );
  // Debian installs it in a directory that is only on root's path. As root, its workers would change to a user without access.
  const env = { PATH: `${process.env.PATH}:/usr/sbin` };
  const nginx = spawn('nginx', ['-c', config, '-e', join(own, 'error.log')], { env, stdio: 'ignore' });
  const exited = new Promise<void>((resolve) => {
    nginx.once('exit', () => resolve());
    nginx.once('error', () => resolve());
  });
  const url = `http://127.0.0.1:${port}`;
  while (nginx.exitCode === null && nginx.pid !== undefined) {
    const isUp = await fetch(url).then(
      () => true,
      () => false,
    );
    if (!isUp) continue;
    return {
      url,
      async stop() {
        nginx.kill();
        await exited;
      },
    };
  }
  return undefined;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}
