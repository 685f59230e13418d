/** DNS and outgoing requests, tried in the same way as by deliveries and HTTP sources. */
import { getServers } from 'node:dns';
import { hostname } from 'node:os';
import { request } from 'undici';
import { createGuardedDispatcher } from '../net/dispatcher.ts';
import { maskedUrl } from '../std/printable.ts';
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
        if (servers.length > 0) return ok(`Name servers: ${listed(servers)}`);
        return warning({
          what: 'This machine has no name server',
          why: 'Webhooks and sources with a host name cannot be reached',
          fix: 'Add one to /etc/resolv.conf',
        });
      }
      const asked = online.map((url) => new URL(url).hostname);
      for (const name of asked) await resolver.resolve(name);
      return ok(`Resolved: ${listed(asked)}`);
    } catch (cause) {
      return error({
        what: (cause as Error).message,
        why: `Webhooks and sources with a host name cannot be reached from ${hostname()}`,
        fix: 'Check /etc/resolv.conf, and that its name servers are reachable (in containers: from their network)',
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
        'No request leaves this machine by default',
        `\`flowhook doctor --online\` tries ${EXAMPLES.map((url) => new URL(url).host).join(' and ')}, \`--online URL\` another URL`,
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
    if (failures.length === 0) return ok(`Reached: ${listed(online.map(maskedUrl))}`);
    return error({
      what: `Not reached: ${failures.join('; ')}`,
      why: 'Deliveries and HTTP sources take the same route',
      fix: 'Check the firewall and routes of this machine, or FLOWHOOK_ALLOW_NETWORKS if the message names it',
    });
  },
  30_000,
);
