/** What the system's own files say about names: the hosts file, and the search list of resolv.conf. */
import { isIP } from 'node:net';

/** Addresses by lower-case name, in the order of the file. */
export function parseHosts(text: string): Map<string, string[]> {
  const hosts = new Map<string, string[]>();
  for (const line of text.split('\n')) {
    const [address = '', ...names] = withoutComment(line).split(/\s+/);
    if (isIP(address) === 0) continue;
    for (const name of names) {
      const key = name.toLowerCase().replace(/\.$/, '');
      hosts.set(key, [...(hosts.get(key) ?? []), address]);
    }
  }
  return hosts;
}

export interface SearchList {
  domains: string[];
  /** A name with at least this many dots is first asked for as it stands. */
  ndots: number;
}

const MAX_DOMAINS = 6;

/** Reads `search`, `domain` (the last of them counts) and `options ndots:n`, as resolv.conf(5) describes them. */
export function parseResolvConf(text: string): SearchList {
  const list: SearchList = { domains: [], ndots: 1 };
  for (const line of text.split('\n')) {
    const [keyword, ...values] = withoutComment(line).split(/\s+/);
    if (keyword === 'search' || keyword === 'domain') {
      list.domains = values.map((domain) => domain.replace(/\.$/, '')).filter((domain) => domain !== '');
    }
    const ndots = keyword === 'options' && /(?:^| )ndots:(\d+)/.exec(values.join(' '))?.[1];
    if (ndots) list.ndots = Math.min(15, Number(ndots));
  }
  list.domains = list.domains.slice(0, MAX_DOMAINS);
  return list;
}

/** The full names to ask for, in order. A name that ends with a dot is asked for only as it stands. */
export function candidates(name: string, search: SearchList): string[] {
  if (name.endsWith('.')) return [name.slice(0, -1)];
  const searched = search.domains.map((domain) => `${name}.${domain}`);
  const dots = name.split('.').length - 1;
  return dots >= search.ndots ? [name, ...searched] : [...searched, name];
}

function withoutComment(line: string): string {
  return line.replace(/[#;].*/, '').trim();
}
