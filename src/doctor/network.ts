/** DNS and outgoing requests, tried in the same way as deliveries and HTTP sources do it. */
import { getServers } from 'node:dns';
import { hostname } from 'node:os';
import { request } from 'undici';
import { createGuardedDispatcher } from '../net/dispatcher.ts';
import { maskedUrl } from '../std/masked-url.ts';
import { type Check, error, ofSettings, ok, skipped, warning } from './check.ts';
import { listed } from './listed.ts';

const ANSWER_MS = 8_000;
/** The URLs tried when none are given. */
export const EXAMPLES = ['https://example.com/', 'https://www.iana.org/'];

export const names: Check = ofSettings(
  'network',
  'name-resolution',
  async (_settings, { resolver, online }) => {
    try {
      await resolver.resolve('localhost');
      if (online === null) {
        const servers = getServers();
        if (servers.length > 0) return ok(`Names are asked of ${listed(servers)}`);
        return warning({
          what: 'No name server is set up on this machine',
          why: 'Webhooks and sources whose address is a name cannot be reached',
          fix: 'Name one in /etc/resolv.conf',
        });
      }
      const asked = online.map((url) => new URL(url).hostname);
      for (const name of asked) await resolver.resolve(name);
      return ok(`${listed(asked)} have addresses`);
    } catch (cause) {
      return error({
        what: (cause as Error).message,
        why: `Webhooks and sources whose address is a name cannot be reached from ${hostname()}`,
        fix: 'Look at /etc/resolv.conf, and whether its name servers can be reached (in containers: the network they are in)',
      });
    }
  },
);

export const outbound: Check = ofSettings(
  'network',
  'outbound',
  async ({ allowNetworks: policy }, { resolver, online }) => {
    if (online === null) {
      return skipped(
        'Not tried',
        'No request leaves this machine by itself',
        `\`flowhook doctor --online\` asks ${EXAMPLES.map((url) => new URL(url).host).join(' and ')}, \`--online URL\` another one`,
      );
    }
    const dispatcher = createGuardedDispatcher({ policy, resolver });
    const failures: string[] = [];
    try {
      for (const url of online) {
        try {
          const answer = await request(url, {
            method: 'HEAD',
            dispatcher,
            signal: AbortSignal.timeout(ANSWER_MS),
          });
          await answer.body.dump();
        } catch (cause) {
          failures.push(`${maskedUrl(url)}: ${(cause as Error).message}`);
        }
      }
    } finally {
      await dispatcher.destroy();
    }
    if (failures.length === 0) return ok(`${listed(online.map(maskedUrl))} can be reached`);
    return error({
      what: `Not reached: ${failures.join('; ')}`,
      why: 'Deliveries and HTTP sources go the same way',
      fix: 'Look at the firewall and the routes of this machine; where FLOWHOOK_ALLOW_NETWORKS refuses, it says so',
    });
  },
  30_000,
);
