/** A name server on loopback (RFC 1035) with the responses of a test. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { isIPv4 } from 'node:net';

/** The addresses of a name; undefined: the name does not exist; `fails`: an error; `silent`: no response. */
export type Addresses = readonly string[] | 'fails' | 'silent' | undefined;

export interface NameServer {
  /** For `createResolver`. */
  servers: string[];
  /** The names in queries, in order. Each lookup sends one query per family. */
  asked: string[];
  stop(): Promise<void>;
}

/** @param addressesOf called for each query @param options.ttlS default: 60 */
export async function startNameServer(
  addressesOf: (name: string) => Addresses,
  options: { ttlS?: number } = {},
): Promise<NameServer> {
  const asked: string[] = [];
  const socket = createSocket('udp4');
  socket.on('message', (query, from) => {
    const { name, end } = question(query);
    asked.push(name);
    const found = addressesOf(name);
    if (found === 'silent') return;
    socket.send(responseTo({ query, end, found, ttlS: options.ttlS ?? 60 }), from.port, from.address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return {
    servers: [`127.0.0.1:${socket.address().port}`],
    asked,
    async stop() {
      socket.close();
      await once(socket, 'close');
    },
  };
}

function question(query: Buffer): { name: string; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join('.').toLowerCase(), end: at + 5 };
}

function responseTo(input: {
  query: Buffer;
  end: number;
  found: Exclude<Addresses, 'silent'>;
  ttlS: number;
}): Buffer {
  const { query, end, found, ttlS } = input;
  const type = query.readUInt16BE(end - 4);
  const known = Array.isArray(found) ? (found as readonly string[]) : [];
  const records = known
    .filter((address) => isIPv4(address) === (type === 1))
    .map((address) => record(address, ttlS));
  const head = Buffer.alloc(12);
  query.copy(head, 0, 0, 2);
  head.writeUInt16BE(0x8180 | (found === 'fails' ? 2 : found === undefined ? 3 : 0), 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(records.length, 6);
  return Buffer.concat([head, query.subarray(12, end), ...records]);
}

function record(address: string, ttlS: number): Buffer {
  const data = isIPv4(address) ? Buffer.from(address.split('.').map(Number)) : ipv6Bytes(address);
  const head = Buffer.alloc(12);
  head.writeUInt16BE(0xc00c, 0);
  head.writeUInt16BE(isIPv4(address) ? 1 : 28, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt32BE(ttlS, 6);
  head.writeUInt16BE(data.length, 10);
  return Buffer.concat([head, data]);
}

function ipv6Bytes(address: string): Buffer {
  const [head = [], tail = []] = address.split('::').map((side) => (side === '' ? [] : side.split(':')));
  const groups = [...head, ...new Array<string>(8 - head.length - tail.length).fill('0'), ...tail];
  return Buffer.from(groups.map((group) => group.padStart(4, '0')).join(''), 'hex');
}
