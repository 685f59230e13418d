/** Settings: whether they are valid, and whether valid ones together expose more than intended. */
import { hostOf, isLoopbackHost } from '../net/host.ts';
import { type Check, error, ofSettings, ok, type Result, warning } from './check.ts';
import type { ExaminedSettings } from './subject.ts';

export const settings: Check = {
  group: 'settings',
  name: 'settings',
  run({ settings, mistakes, doubts }) {
    if (settings === undefined) {
      return error({
        what: `These settings are wrong: ${mistakes.join('; ')}`,
        why: 'The service does not start with them',
        fix: 'Correct what is named; `flowhook config check` says when all is well',
      });
    }
    if (doubts.length > 0) {
      return warning({
        what: doubts.join(' '),
        why: 'What was meant by it does not happen, and nothing says so',
        fix: 'Rename the variable, or remove it',
      });
    }
    const given = settings.settings.filter(({ origin }) => origin !== 'default').length;
    return ok(`Given are ${given} of ${settings.settings.length} settings, the others have their defaults`);
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
      return ok(`Only programs of this machine reach it directly (${host})`);
    }
  } else if (settings.trustProxy !== false && settings.trustProxy.isEverybody) {
    return warning({
      what: `It listens on ${host} for other machines, and believes everybody who says for whom they ask`,
      why: 'Whoever can reach this port can take any address: limits for each address and the log are then worth nothing',
      fix: 'Name the proxies in FLOWHOOK_TRUST_PROXY: loopback, private, or their addresses',
    });
  } else if (publicUrl === undefined && settings.trustProxy === false && tlsCert === undefined) {
    return warning({
      what: `It listens on ${host} for other machines, without TLS, and knows no address of its own`,
      why:
        'API keys and records can be read on the way, and events name an address under which nobody may reach it ' +
        '(`dataUrl`)',
      fix:
        'Set FLOWHOOK_PUBLIC_URL to its https:// address behind a proxy, or give it a certificate of its own, or ' +
        'listen on 127.0.0.1',
    });
  }
  if (publicUrl !== undefined && !hasTls && !isLoopbackUrl(publicUrl)) {
    return warning({
      what: 'Others reach it by http://, as FLOWHOOK_PUBLIC_URL says',
      why: 'API keys and records can be read on the way',
      fix: 'Put a proxy with a certificate in front of it, and set FLOWHOOK_PUBLIC_URL to the https:// address',
    });
  }
  if (publicUrl === undefined) {
    return warning({
      what: `It listens on ${host} and does not know under which address others reach it`,
      why: 'Links in events (`dataUrl`) and of the dashboard name the address that it listens on',
      fix: 'Set FLOWHOOK_PUBLIC_URL',
    });
  }
  return ok(`Others reach it as ${new URL(publicUrl).host}, by TLS`);
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
    what: `${what}, while others reach the service`,
    why: 'Whoever may subscribe a webhook can have requests sent to programs that only this machine should reach',
    fix: 'Take `loopback` out of FLOWHOOK_ALLOW_NETWORKS, and name the networks or addresses that are meant',
  });
}

function isLoopbackUrl(url: string): boolean {
  return isLoopbackHost(hostOf(url));
}
