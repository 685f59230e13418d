/** Settings: whether they are valid, and whether valid ones together expose more than intended. */
import { hostOf, isLoopbackHost } from '../net/host.ts';
import { type Check, type ExaminedSettings, error, ofSettings, ok, type Result, warning } from './check.ts';

export const settings: Check = {
  group: 'settings',
  name: 'settings',
  run({ settings, mistakes, doubts }) {
    if (settings === undefined) {
      return error({
        what: `Invalid settings: ${mistakes.join('; ')}`,
        why: 'The service does not start with them',
        fix: 'Correct them, and check with `flowhook config check`',
      });
    }
    if (doubts.length > 0) {
      return warning({
        what: doubts.join(' '),
        why: 'The intended setting silently has no effect',
        fix: 'Rename the variable, or remove it',
      });
    }
    const given = settings.settings.filter(({ origin }) => origin !== 'default').length;
    return ok(`Settings given: ${given} of ${settings.settings.length}; the others have their defaults`);
  },
};

export const exposure: Check = ofSettings('settings', 'exposure', exposureResult);

/** Who can reach the service, and whether the connection is protected. */
export function exposureResult(
  settings: Pick<ExaminedSettings, 'host' | 'publicUrl' | 'trustProxy' | 'tlsCert'>,
): Result {
  const { host, publicUrl, tlsCert } = settings;
  const hasTls = tlsCert !== undefined || publicUrl?.startsWith('https:') === true;
  if (isLoopbackHost(host)) {
    if (publicUrl === undefined || hasTls || isLoopbackUrl(publicUrl)) {
      return ok(`Directly reachable only from this machine (${host})`);
    }
  } else if (settings.trustProxy !== false && settings.trustProxy.isEverybody) {
    return warning({
      what: `It listens on ${host}, and trusts the X-Forwarded-* headers of every client`,
      why: 'Anyone who reaches this port can forge their address, which defeats per-address limits and the log',
      fix: 'Name the proxies in FLOWHOOK_TRUST_PROXY: loopback, private, or their addresses',
    });
  } else if (publicUrl === undefined && settings.trustProxy === false && tlsCert === undefined) {
    return warning({
      what: `It listens on ${host} without TLS, and FLOWHOOK_PUBLIC_URL is not set`,
      why: 'API keys and records can be read in transit, and links in events (`dataUrl`) may be unreachable',
      fix:
        'Set FLOWHOOK_PUBLIC_URL to its https:// address behind a proxy, give it its own certificate, or listen on ' +
        '127.0.0.1',
    });
  }
  if (publicUrl !== undefined && !hasTls && !isLoopbackUrl(publicUrl)) {
    return warning({
      what: 'FLOWHOOK_PUBLIC_URL is http://: clients connect without TLS',
      why: 'API keys and records can be read in transit',
      fix: 'Put a TLS proxy in front of it, and set FLOWHOOK_PUBLIC_URL to its https:// address',
    });
  }
  if (publicUrl === undefined) {
    return warning({
      what: `It listens on ${host}, and FLOWHOOK_PUBLIC_URL is not set`,
      why: 'Links in events (`dataUrl`) and the dashboard use the address it listens on',
      fix: 'Set FLOWHOOK_PUBLIC_URL',
    });
  }
  return ok(`Clients reach it as ${new URL(publicUrl).host}, over TLS`);
}

export const networks: Check = ofSettings('settings', 'networks', networksResult);

/** Which addresses webhooks and HTTP sources may reach, given who can reach the service. */
export function networksResult({
  host,
  publicUrl,
  allowNetworks,
}: Pick<ExaminedSettings, 'host' | 'publicUrl' | 'allowNetworks'>): Result {
  const what = `Webhooks and HTTP sources may reach ${allowNetworks.description}`;
  const isOpen = !isLoopbackHost(host) || (publicUrl !== undefined && !isLoopbackUrl(publicUrl));
  if (!isOpen || !allowNetworks.verdict('127.0.0.1').allowed) return ok(what);
  return warning({
    what: `${what}, while other machines reach the service`,
    why: 'Anyone who can subscribe a webhook can send requests to services meant only for this machine',
    fix: 'Remove `loopback` from FLOWHOOK_ALLOW_NETWORKS, and name the networks or addresses you need',
  });
}

function isLoopbackUrl(url: string): boolean {
  return isLoopbackHost(hostOf(url));
}
