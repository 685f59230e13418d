/** Certificates: the one that the service uses for TLS, and the one that others see at its public URL. */
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
  if (tlsCert === undefined) return skipped('Not checked', 'The service does not speak TLS itself');
  const why = 'Callers that look at it, as they should, cannot speak to the service';
  const fix = 'Correct FLOWHOOK_TLS_CERT and FLOWHOOK_TLS_KEY, which name files in PEM form';
  let found: X509Certificate;
  try {
    found = new X509Certificate(await readFile(tlsCert));
    const key = tlsKey === undefined ? undefined : createPrivateKey(await readFile(tlsKey));
    if (key !== undefined && !found.checkPrivateKey(key)) {
      return error({ what: `The key ${tlsKey} is not that of the certificate ${tlsCert}`, why, fix });
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
      what: `The certificate is for ${names}, and not for ${host}`,
      why: 'Callers that look at it, as they should, refuse to speak to the service',
      fix: `Have one made for ${host}`,
    });
  }
  const [from, until] = [found.validFromDate.getTime(), found.validToDate.getTime()];
  const trouble = (what: string): Trouble => ({
    what,
    why: 'When it is over, callers refuse to speak to the service',
    fix: 'Renew it, and see that whatever renews it (certbot, Caddy, cert-manager) runs',
  });
  if (until <= now) return error(trouble(`The certificate for ${names} ended at ${toIso(until)}`));
  if (from > now) return error(trouble(`The certificate for ${names} holds only from ${toIso(from)} on`));
  const left = `The certificate for ${names} holds for another ${durationWords(until - now)}`;
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
      return skipped('Not checked', 'No https:// address is set as FLOWHOOK_PUBLIC_URL');
    }
    if (online === null) {
      return skipped(
        'Not checked',
        'No request leaves this machine by itself',
        '`flowhook doctor --online` asks for it',
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
        what: `The certificate under ${host}:${port} is not trusted: ${socket.authorizationError?.message ?? ''}`,
        why: 'Callers that look at it, as they should, refuse to speak to the service',
        fix: 'Have the server send its whole chain, up to an authority that callers know',
      });
    } catch (cause) {
      return error({
        what: `${host}:${port} does not answer by TLS: ${(cause as Error).message}`,
        why: 'Others are told that address, in links of events and of the dashboard',
        fix: 'Correct FLOWHOOK_PUBLIC_URL, or look at the proxy in front. Some networks do not let a machine reach its own outer address',
      });
    } finally {
      socket.destroy();
    }
  },
);
