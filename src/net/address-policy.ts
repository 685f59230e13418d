/** Which addresses outgoing connections may go to: FLOWHOOK_ALLOW_NETWORKS, and why an address is refused. */
import { isIP } from 'node:net';
import { embeddedIpv4, type Network, type Range, rangeOf, toNetwork } from './ip-ranges.ts';

export type Verdict = { allowed: true } | { allowed: false; why: string };

export interface AddressPolicy {
  /** The setting as it was written, from which a child process builds the same policy. */
  text: string;
  /** Judges an IP address; `why` names the address, its range and the setting that would allow it. */
  verdict(address: string): Verdict;
  /** What is allowed, for the lines printed at start: `public addresses, loopback, 10.0.0.0/8`. */
  description: string;
}

const SETTING = 'FLOWHOOK_ALLOW_NETWORKS';
const MAX_ENTRIES = 1_000;

/**
 * Parses a comma-separated list of `loopback`, `private`, CIDRs and addresses, or `none`. Public addresses are
 * always allowed. Link-local and metadata addresses are allowed only by an address or a CIDR within their own
 * range: neither `private` nor a wide CIDR such as 0.0.0.0/0 allows them.
 *
 * @throws Error with a sentence that names the invalid entry
 */
export function parseAllowNetworks(text: string): AddressPolicy {
  const entries = text.split(',').map((entry) => entry.trim().toLowerCase());
  if (entries.length > MAX_ENTRIES) throw new Error(`${SETTING} must hold at most ${MAX_ENTRIES} entries`);
  if (entries.includes('none') && entries.length > 1) {
    throw new Error(`${SETTING} must be either \`none\` or a list without \`none\``);
  }
  const tiers = new Set<string>();
  const networks: Network[] = [];
  for (const entry of entries) {
    if (entry === 'none') continue;
    if (entry === 'loopback' || entry === 'private') tiers.add(entry);
    else networks.push(readNetwork(entry));
  }
  const named = [...tiers, ...networks.map((network) => network.cidr)];

  return {
    text,
    description: ['public addresses', ...named].join(', '),
    verdict(address) {
      if (isIP(address) === 0) return { allowed: false, why: `"${address}" is not an IP address` };
      const inner = embeddedIpv4(address);
      const judged = inner ?? address;
      const range = rangeOf(judged);
      if (range === undefined || tiers.has(range.kind)) return { allowed: true };
      const within = networks.filter((network) => range.kind !== 'guarded' || liesWithin(network, range));
      if (within.some((network) => network.contains(judged))) return { allowed: true };
      return { allowed: false, why: refusal({ address, inner, range }) };
    },
  };
}

function readNetwork(entry: string): Network {
  const network = toNetwork(entry);
  if (network === undefined) {
    throw new Error(
      `${SETTING} holds "${entry}". It is a comma list of \`loopback\`, \`private\`, addresses such as 10.1.2.3 ` +
        'and networks such as 10.0.0.0/8, or the one word `none`',
    );
  }
  const inner = embeddedIpv4(network.base);
  if (inner !== undefined) {
    throw new Error(
      `${SETTING} holds "${entry}", which stands for the IPv4 address ${inner}. Write the IPv4 form instead`,
    );
  }
  return network;
}

function liesWithin(network: Network, range: Range): boolean {
  const outer = toNetwork(range.cidr);
  return outer?.contains(network.base) === true && network.prefix >= outer.prefix;
}

function refusal(input: { address: string; inner: string | undefined; range: Range }): string {
  const { range } = input;
  const address = input.inner === undefined ? input.address : `${input.address} (that is ${input.inner})`;
  const remedy =
    range.kind === 'loopback' || range.kind === 'private'
      ? `add \`${range.kind}\` or the address to that setting`
      : range.kind === 'guarded'
        ? 'name exactly this address in that setting'
        : 'add the address or its network to that setting';
  return `${address} is ${range.name} (${range.cidr}), which ${SETTING} does not allow. If it is meant, ${remedy}`;
}
