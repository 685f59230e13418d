/** Checks of the network: outgoing requests (sent like deliveries), the certificate and the port. */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer, isIP } from 'node:net';
import { createGuardedDispatcher } from '../net/dispatcher.ts';
import { hostOf, serviceUrl } from '../net/host.ts';
import { createResolver } from '../net/resolver.ts';
import { Client, request } from '../net/undici.ts';
import { durationWords, listed } from '../std/amounts.ts';
import { toIso } from '../std/clock.ts';
import { maskedUrl } from '../std/printable.ts';
import {
  type Check,
  type ExaminedSettings,
  error,
  ofSettings,
  ok,
  type Result,
  skipped,
  type Trouble,
  warning,
} from './check.ts';

const REQUEST_MS = 8_000;
/** The URLs for `--online` without URLs. */
export const EXAMPLES = ['https://example.com/', 'https://www.iana.org/'];

export const outbound: Check = {
  ...ofSettings('network', 'outbound', async ({ allowNetworks: policy }, { online }) => {
    if (online === null) {
      return skipped(
        'Not tried',
        'By default doctor sends no requests',
        `\`flowhook doctor --online\` requests ${EXAMPLES.map((url) => new URL(url).host).join(' and ')}, and \`--online URL\` another URL`,
      );
    }
    const dispatcher = createGuardedDispatcher({ policy, resolver: createResolver() });
    const failures: string[] = [];
    try {
      for (const url of online) {
        try {
          const response = await request(new URL(url), {
            method: 'HEAD',
            dispatcher,
            signal: AbortSignal.timeout(REQUEST_MS),
          });
          await response.body.dump();
        } catch (cause) {
          failures.push(`${maskedUrl(url)}: ${(cause as Error).message}`);
        }
      }
    } finally {
      await dispatcher.destroy();
    }
    if (failures.length === 0) return ok(`Reached: ${listed(online.map(maskedUrl))}`);
    return error({
      what: `Not reached: ${failures.join('; ')}`,
      why: 'Deliveries and HTTP sources send their requests in the same way',
      fix: 'Check DNS, the firewall and the routes of this machine, or FLOWHOOK_ALLOW_NETWORKS if the message names it',
    });
  }),
  limitMs: 30_000,
};

const DAY_MS = 24 * 3_600_000;
/**
 * A certificate is reported when it expires within this time. Automatic renewal usually happens 30 days before expiry.
 */
const SOON_MS = 21 * DAY_MS;

export const certificate: Check = ofSettings('network', 'certificate', async (settings, { clock }) => {
  const { tlsCert, tlsKey, publicUrl } = settings;
  if (tlsCert === undefined) return skipped('Not checked', 'The service has no certificate of its own');
  const why = 'Clients cannot connect over HTTPS';
  const fix = 'Correct FLOWHOOK_TLS_CERT and FLOWHOOK_TLS_KEY, which name PEM files';
  let found: X509Certificate;
  try {
    found = new X509Certificate(await readFile(tlsCert));
    const key = tlsKey === undefined ? undefined : createPrivateKey(await readFile(tlsKey));
    if (key !== undefined && !found.checkPrivateKey(key)) {
      return error({ what: `The key ${tlsKey} does not match the certificate ${tlsCert}`, why, fix });
    }
  } catch (cause) {
    return error({ what: `The certificate cannot be used: ${(cause as Error).message}`, why, fix });
  }
  return certificateResult(found, publicUrl && hostOf(publicUrl), clock());
});

/** @param host the host for which the certificate must be valid; undefined if unknown */
function certificateResult(found: X509Certificate, host: string | undefined, now: number): Result {
  const names = found.subjectAltName ?? found.subject;
  if (host !== undefined && !isFor(found, host)) {
    return error({
      what: `The certificate is for ${names}, not for ${host}`,
      why: 'Clients that verify the certificate refuse to connect',
      fix: `Get a certificate for ${host}, or correct FLOWHOOK_PUBLIC_URL`,
    });
  }
  const [from, until] = [found.validFromDate.getTime(), found.validToDate.getTime()];
  const trouble = (what: string): Trouble => ({
    what,
    why: 'Clients refuse to connect before and after the validity period of a certificate',
    fix: 'Renew the certificate, and check that automatic renewal (certbot, Caddy, cert-manager) works',
  });
  if (until <= now) return error(trouble(`The certificate for ${names} expired at ${toIso(until)}`));
  if (from > now) return error(trouble(`The certificate for ${names} is not valid before ${toIso(from)}`));
  const left = `The certificate for ${names} expires in ${durationWords(until - now)}`;
  return until - now < SOON_MS ? warning(trouble(left)) : ok(left);
}

function isFor(found: X509Certificate, host: string): boolean {
  return (isIP(host) === 0 ? found.checkHost(host) : found.checkIP(host)) !== undefined;
}

const READY_MS = 5_000;

export const port: Check = ofSettings('network', 'port', async (settings, { node, isServed }) => {
  const { host, port: number } = settings;
  if (node !== undefined) return ok(`This node listens on ${host}, port ${node.port}`);
  if (number === 0) return ok('The service picks any free port (FLOWHOOK_PORT=0)');
  const place = `Port ${number} on ${host}`;
  const failed = await tryToListen(host, number);
  if (failed === undefined) {
    if (isServed !== true) return ok(`${place} is free`);
    return warning({
      what: `${place} is free, but a server is using the data directory`,
      why: 'The server listens on another address, is starting or stopping, or hangs',
      fix: 'Run doctor with the settings of the server. If the server hangs, restart it',
    });
  }
  if (failed === 'EADDRINUSE') return takenBy(settings, place, isServed);
  return error({
    what: `${place} cannot be used: ${failed}`,
    why: 'The service does not start',
    fix:
      failed === 'EACCES'
        ? 'Set FLOWHOOK_PORT to 1024 or above, or let the service use low ports (AmbientCapabilities=CAP_NET_BIND_SERVICE)'
        : 'Set FLOWHOOK_HOST to an address of this machine',
  });
});

/** Tries to listen on the port. Returns the code of the error; undefined when listening works. */
async function tryToListen(host: string, number: number): Promise<string | undefined> {
  const server = createServer();
  try {
    server.listen({ host, port: number, exclusive: true });
    await once(server, 'listening');
    return undefined;
  } catch (cause) {
    return (cause as NodeJS.ErrnoException).code ?? (cause as Error).message;
  } finally {
    server.close();
  }
}

async function takenBy(settings: ExaminedSettings, place: string, isServed: boolean | null): Promise<Result> {
  const ready = await askReady(settings);
  if (typeof ready !== 'object') {
    return takenResult({ place, isServed: isServed === true, isSilent: ready === 'silent' });
  }
  if (ready.status === 200) return ok(`${place}: a flowhook server is listening and ready`);
  return error({
    what: `${place}: a flowhook server is listening, but not ready (${ready.status}): ${ready.says}`,
    why: 'The server rejects requests with 503',
    fix: 'Wait if the server is starting or stopping. Otherwise see its log and the database findings',
  });
}

/**
 * Returns the result for a port that is used by a program that does not identify itself as a Flowhook server.
 *
 * @param found.isServed whether a server is using the data directory
 * @param found.isSilent whether the program accepted the request but did not respond
 */
export function takenResult(found: { place: string; isServed: boolean; isSilent: boolean }): Result {
  const { place, isServed, isSilent } = found;
  if (isServed && isSilent) {
    return error({
      what: `${place}: a program is listening, but did not respond within ${READY_MS / 1_000} s`,
      why: 'The program is probably the server that uses the data directory, and it hangs, is suspended or is overloaded',
      fix: 'Check the log of the server and the load of this machine. If the server still does not respond, kill and restart it: no acknowledged data is lost',
    });
  }
  return error({
    what: `${place} is in use by another program`,
    why: isServed
      ? 'Clients of this port reach another program: the server that uses the data directory listens on another address'
      : 'The service does not start',
    fix: 'Stop that program (`ss -ltnp` shows its name), or set FLOWHOOK_PORT to another port',
  });
}

/**
 * Returns the response of a Flowhook server to `/readyz`; `silent` if there was no response in time; undefined for any
 * other program.
 */
async function askReady(
  settings: ExaminedSettings,
): Promise<{ status: number; says: string } | 'silent' | undefined> {
  const { host, port: number, tlsCert } = settings;
  const anyHost: Record<string, string> = { '0.0.0.0': '127.0.0.1', '::': '::1' };
  const url = serviceUrl({ host: anyHost[host] ?? host, port: number, isSecure: tlsCert !== undefined });
  const signal = AbortSignal.timeout(READY_MS);
  // Another check examines the certificate.
  const dispatcher = new Client(url, { connect: { rejectUnauthorized: false } });
  try {
    const { statusCode, headers, body } = await request(new URL(`${url}/readyz`), {
      method: 'GET',
      signal,
      dispatcher,
    });
    const says = (await body.json()) as { error?: unknown };
    // Every response of Flowhook has a request id, and every error response has an error code.
    const isOurs = headers['x-request-id'] !== undefined && (statusCode === 200 || 'x-error-code' in headers);
    return isOurs ? { status: statusCode, says: String(says.error ?? headers['x-error-code']) } : undefined;
  } catch {
    return signal.aborted ? 'silent' : undefined;
  } finally {
    await dispatcher.destroy();
  }
}
