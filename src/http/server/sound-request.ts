/** Refuses requests that Node's parser accepts and HTTP/1.1 (RFC 9112) does not. */
import type { IncomingMessage } from 'node:http';
import { Problem } from '../../model/error.ts';

/** An address or a name with an optional port, or nothing (RFC 3986, section 3.2.2). */
const HOST = /^(?:\[[\da-f:.]+\]|[\w.~!$&'()*+,;=%-]*)(?::\d*)?$/i;

/** @throws Problem `request_malformed`, `http_version_unsupported` or `transfer_unsupported`: each closes the connection */
export function requireSound(request: IncomingMessage): void {
  const { httpVersion, httpVersionMajor, headers } = request;
  if (httpVersionMajor !== 1) throw new Problem('http_version_unsupported', CLOSE);
  const hosts = request.headersDistinct.host ?? [];
  if (hosts.length === 0 && httpVersion === '1.1') malformed('it has no host header');
  if (hosts.length > 1) malformed('it has more than one host header');
  if (hosts[0] !== undefined && !HOST.test(hosts[0])) malformed('its host header is not a host');
  const coding = headers['transfer-encoding'];
  if (coding !== undefined && coding.trim().toLowerCase() !== 'chunked') {
    throw new Problem('transfer_unsupported', CLOSE);
  }
}

const CLOSE = { headers: { connection: 'close' } };

function malformed(why: string): never {
  throw new Problem('request_malformed', {
    ...CLOSE,
    sentence: `The request is not valid HTTP: ${why}`,
  });
}
