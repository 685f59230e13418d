/** `sslmode` in the URL has the same meaning as for psql. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { TLSSocket } from 'node:tls';
import { type Certificate, certificateAuthority } from '../../../test/support/net/certificates.ts';
import { makeDatabase } from '../../../test/support/postgres.ts';
import { silentLogger } from '../../observe/log.ts';
import { openStore } from '../open.ts';

const authority = certificateAuthority();
const skip = authority === undefined && 'openssl is not installed';
const directory = mkdtempSync(join(tmpdir(), 'flowhook-tls-'));
const database = await makeDatabase();
after(async () => {
  rmSync(directory, { recursive: true, force: true });
  await database.drop();
});

/** A proxy in front of the test server, which accepts TLS if it has a certificate. */
async function front(certificate: Certificate | undefined) {
  let encrypted = 0;
  const open = new Set<Socket>();
  const server = createServer((socket) => {
    open.add(socket);
    socket.on('error', () => undefined).once('close', () => open.delete(socket));
    socket.once('data', (first: Buffer) => {
      // https://www.postgresql.org/docs/18/protocol-message-formats.html: SSLRequest
      const asksForTls = first.length === 8 && first.readUInt32BE(4) === 80_877_103;
      if (!asksForTls) return passOn(socket, first);
      if (certificate === undefined) return socket.write('N');
      socket.write('S');
      const secure = new TLSSocket(socket, { isServer: true, ...certificate });
      secure
        .on('error', () => undefined)
        .once('secure', () => {
          encrypted += 1;
          passOn(secure);
        });
    });
  });
  function passOn(socket: Socket, first?: Buffer): void {
    const { host, port } = addressOf(database.url);
    const behind = host.startsWith('/') ? connect(`${host}/.s.PGSQL.${port}`) : connect(port, host);
    behind.on('error', () => socket.destroy());
    if (first !== undefined) behind.write(first);
    socket.pipe(behind).pipe(socket);
  }
  await once(server.listen(0), 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    encrypted: () => encrypted,
    url(host: string, parameters: Record<string, string>) {
      const url = new URL(database.url);
      Object.assign(url, { host: `${host}:${port}`, search: new URLSearchParams(parameters).toString() });
      return url.href;
    },
    close: async () => {
      server.close();
      for (const socket of open) socket.destroy();
      await once(server, 'close');
    },
  };
}

function addressOf(url: string): { host: string; port: number } {
  const { hostname, port, searchParams } = new URL(url);
  return { host: searchParams.get('host') ?? hostname, port: Number(port || 5432) };
}

async function tryTo(url: string): Promise<void> {
  await (await openStore(url, { publicUrl: () => '', log: silentLogger, own: true })).close();
}

test('sslmode decides about encryption and about verification of the server', {
  skip,
}, async (t) => {
  const ours = authority as NonNullable<typeof authority>;
  const file = (name: string, text: string) => {
    writeFileSync(join(directory, name), text);
    return join(directory, name);
  };
  const trusted = file('ca.pem', ours.cert);
  const other = file('other.pem', certificateAuthority()?.cert ?? '');
  const server = await front(ours.issue({ host: 'localhost', days: 1 }));
  t.after(server.close);
  await tryTo(server.url('localhost', { sslmode: 'disable' }));
  assert.equal(server.encrypted(), 0);
  await tryTo(server.url('localhost', { sslmode: 'require' }));
  assert.ok(server.encrypted() > 1, 'the listening connection is encrypted too');
  await tryTo(server.url('localhost', { sslmode: 'verify-full', sslrootcert: trusted }));
  await tryTo(server.url('127.0.0.1', { sslmode: 'verify-ca', sslrootcert: trusted }));
  for (const [host, parameters] of [
    ['127.0.0.1', { sslmode: 'verify-full', sslrootcert: trusted }],
    ['localhost', { sslmode: 'verify-full' }],
    ['localhost', { sslmode: 'verify-full', sslrootcert: other }],
    ['localhost', { sslmode: 'verify-ca', sslrootcert: other }],
  ] as const) {
    await assert.rejects(tryTo(server.url(host, parameters)), /cannot be used.*FLOWHOOK_DATABASE/);
  }
});

test('nothing is sent unencrypted when sslmode requires encryption', async (t) => {
  const server = await front(undefined);
  t.after(server.close);
  await assert.rejects(tryTo(server.url('localhost', { sslmode: 'require' })), /cannot be used.*SSL/);
});
