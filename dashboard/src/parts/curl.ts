/** The same request at a shell. */
import { serviceUrl } from '../client.ts';

export interface CurlRequest {
  /** GET unless told. */
  method?: string;
  /** With its query: `/v1/jobs?state=failed`. */
  path: string;
  /** Beside the key. */
  headers?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  json?: unknown;
  /** Anybody may make the call. */
  withoutKey?: boolean;
}

/** A curl command that works once `FLOWHOOK_KEY` holds a key: the page knows none. */
export function curl({ method = 'GET', path, headers = {}, json, withoutKey = false }: CurlRequest): string {
  return [
    'curl -sS',
    method === 'GET' ? '' : `-X ${method}`,
    withoutKey ? '' : `-H "x-api-key: $FLOWHOOK_KEY"`,
    ...Object.entries(headers).map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`),
    json === undefined ? '' : `-H 'content-type: application/json' -d ${quoted(JSON.stringify(json))}`,
    quoted(serviceUrl + path),
  ]
    .filter((part) => part !== '')
    .join(' ');
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
