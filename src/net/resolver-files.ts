/** Parses /etc/hosts and /etc/resolv.conf, and expands a name by the search list. */
import { isIP } from 'node:net';

/** The addresses of each lower-case name, in the order of the file. */
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
  /** A name with at least this many dots is tried as it stands before the search domains. */
  ndots: number;
}

const MAX_DOMAINS = 6;

/** Reads `search`, `domain` (the last one counts) and `options ndots:n`, as described in resolv.conf(5). */
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

/** The full names to query, in order. A name that ends with a dot is absolute: only that one is queried. */
export function candidates(name: string, search: SearchList): string[] {
  if (name.endsWith('.')) return [name.slice(0, -1)];
  const searched = search.domains.map((domain) => `${name}.${domain}`);
  const dots = name.split('.').length - 1;
  return dots >= search.ndots ? [name, ...searched] : [...searched, name];
}

function withoutComment(line: string): string {
  return line.replace(/[#;].*/, '').trim();
}
