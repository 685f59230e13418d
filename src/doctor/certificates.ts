/** Certificates: the one the service uses for TLS, and the one clients see at its public URL. */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { connect } from 'node:tls';
import { hostOf } from '../net/host.ts';
import { durationWords } from '../std/amounts.ts';
import { toIso } from '../std/clock.ts';
import { type Check, error, ofSettings, ok, type Result, skipped, type Trouble, warning } from './check.ts';

const DAY_MS = 24 * 3_600_000;
/** Automatic renewal usually happens 30 days before expiry. */
const SOON_MS = 21 * DAY_MS;
const CONNECT_MS = 10_000;

export const certificate: Check = ofSettings('network', 'certificate', async (settings, { clock }) => {
  const { tlsCert, tlsKey, publicUrl } = settings;
  if (tlsCert === undefined) return skipped('Not checked', 'The service does not terminate TLS itself');
  const why = 'Clients that verify it, as they should, cannot connect';
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
  const host = publicUrl === undefined ? undefined : hostOf(publicUrl);
  return certificateResult(found, { host, now: clock() });
});

/** @param place.host the host that it must be valid for, if known */
function certificateResult(found: X509Certificate, place: { host: string | undefined; now: number }): Result {
  const { host, now } = place;
  const names = found.subjectAltName ?? found.subject;
  if (host !== undefined && !isFor(found, host)) {
    return error({
      what: `The certificate is for ${names}, not for ${host}`,
      why: 'Clients that verify it, as they should, refuse to connect',
      fix: `Get one for ${host}`,
    });
  }
  const [from, until] = [found.validFromDate.getTime(), found.validToDate.getTime()];
  const trouble = (what: string): Trouble => ({
    what,
    why: 'Outside its validity period, clients refuse to connect',
    fix: 'Renew it, and check that its renewal (certbot, Caddy, cert-manager) works',
  });
  if (until <= now) return error(trouble(`The certificate for ${names} expired at ${toIso(until)}`));
  if (from > now) return error(trouble(`The certificate for ${names} is not valid before ${toIso(from)}`));
  const left = `The certificate for ${names} expires in ${durationWords(until - now)}`;
  return until - now < SOON_MS ? warning(trouble(left)) : ok(left);
}

function isFor(found: X509Certificate, host: string): boolean {
  return (isIP(host) === 0 ? found.checkHost(host) : found.checkIP(host)) !== undefined;
}

export const publicCertificate: Check = ofSettings(
  'network',
  'public-certificate',
  async ({ publicUrl }, { online, clock }) => {
    if (publicUrl === undefined || !publicUrl.startsWith('https:')) {
      return skipped('Not checked', 'FLOWHOOK_PUBLIC_URL is not an https:// address');
    }
    if (online === null) {
      return skipped(
        'Not checked',
        'No request leaves this machine by default',
        '`flowhook doctor --online` fetches it',
      );
    }
    const host = hostOf(publicUrl);
    const port = Number(new URL(publicUrl).port || 443);
    const socket = connect({ host, port, servername: host, rejectUnauthorized: false, timeout: CONNECT_MS });
    try {
      await once(socket, 'secureConnect', { signal: AbortSignal.timeout(CONNECT_MS) });
      const { raw } = socket.getPeerCertificate();
      const result = certificateResult(new X509Certificate(raw), { host, now: clock() });
      if (result.status !== 'ok' || socket.authorized) return result;
      return error({
        what: `The certificate of ${host}:${port} is not trusted: ${socket.authorizationError?.message ?? ''}`,
        why: 'Clients that verify it, as they should, refuse to connect',
        fix: 'Have the server send its full chain, up to a CA that clients trust',
      });
    } catch (cause) {
      return error({
        what: `TLS connection to ${host}:${port} failed: ${(cause as Error).message}`,
        why: 'Links in events and the dashboard use that address',
        fix: 'Correct FLOWHOOK_PUBLIC_URL, or check the proxy in front. Some networks do not let a machine reach its own public address',
      });
    } finally {
      socket.destroy();
    }
  },
);
