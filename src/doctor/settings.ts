/** Checks of the settings: whether they are valid, and whether they expose more than intended. */
import { hostOf, isLoopbackHost } from '../net/host.ts';
import { type Check, type ExaminedSettings, error, ofSettings, ok, type Result, warning } from './check.ts';

export const settings: Check = {
  group: 'settings',
  name: 'settings',
  run({ settings, mistakes, doubts }) {
    if (settings === undefined) {
      return error({
        what: `Invalid settings: ${mistakes.join('; ')}`,
        why: 'The service does not start with invalid settings',
        fix: 'Correct the settings, and check them with `flowhook config check`',
      });
    }
    if (doubts.length > 0) {
      return warning({
        what: doubts.join(' '),
        why: 'The service ignores the variable without a message',
        fix: 'Rename or remove the variable',
      });
    }
    const given = settings.settings.filter(({ origin }) => origin !== 'default').length;
    return ok(`${given} of ${settings.settings.length} settings are set; the others have default values`);
  },
};

export const exposure: Check = ofSettings('settings', 'exposure', exposureResult);

/** Checks who can reach the service, and whether connections are encrypted. */
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
      what: `The service listens on ${host}, and trusts the X-Forwarded-* headers of every client`,
      why: 'Anyone who can reach this port can forge a client address, and so bypass rate limits and falsify the log',
      fix: 'Set FLOWHOOK_TRUST_PROXY to the proxies: loopback, private, or their addresses',
    });
  } else if (publicUrl === undefined && settings.trustProxy === false && tlsCert === undefined) {
    return warning({
      what: `The service listens on ${host} without TLS, and FLOWHOOK_PUBLIC_URL is not set`,
      why: 'API keys and records can be read in transit, and links in events (`dataUrl`) may not work',
      fix:
        'Put a TLS proxy in front and set FLOWHOOK_PUBLIC_URL to its https:// URL, set FLOWHOOK_TLS_CERT and ' +
        'FLOWHOOK_TLS_KEY, or listen on 127.0.0.1',
    });
  }
  if (publicUrl !== undefined && !hasTls && !isLoopbackUrl(publicUrl)) {
    return warning({
      what: 'FLOWHOOK_PUBLIC_URL is http://: clients connect without TLS',
      why: 'API keys and records can be read in transit',
      fix: 'Put a TLS proxy in front, and set FLOWHOOK_PUBLIC_URL to its https:// URL',
    });
  }
  if (publicUrl === undefined) {
    return warning({
      what: `The service listens on ${host}, and FLOWHOOK_PUBLIC_URL is not set`,
      why: 'Links in events (`dataUrl`) and the dashboard contain the listen address, which clients may not reach',
      fix: 'Set FLOWHOOK_PUBLIC_URL to the URL that clients use',
    });
  }
  return ok(`Clients reach the service as ${new URL(publicUrl).host}, over TLS`);
}

export const networks: Check = ofSettings('settings', 'networks', networksResult);

/** Checks which addresses webhooks and HTTP sources may reach, given who can reach the service. */
export function networksResult({
  host,
  publicUrl,
  allowNetworks,
}: Pick<ExaminedSettings, 'host' | 'publicUrl' | 'allowNetworks'>): Result {
  const what = `Webhooks and HTTP sources may reach ${allowNetworks.description}`;
  const isOpen = !isLoopbackHost(host) || (publicUrl !== undefined && !isLoopbackUrl(publicUrl));
  if (!isOpen || !allowNetworks.verdict('127.0.0.1').allowed) return ok(what);
  return warning({
    what: `${what}, and other machines can reach the service`,
    why: 'Anyone who can subscribe a webhook can send requests to programs that listen only on this machine',
    fix: 'Remove `loopback` from FLOWHOOK_ALLOW_NETWORKS, and list only the networks or addresses that you need',
  });
}

function isLoopbackUrl(url: string): boolean {
  return isLoopbackHost(hostOf(url));
}
