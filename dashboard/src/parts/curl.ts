/** API requests as curl commands. */

interface CurlRequest {
  /** Default: GET. */
  method?: string;
  /** Including the query: `/v1/jobs?state=failed`. */
  path: string;
  /** Sent as JSON. */
  json?: unknown;
  /** The address of the service (default: the origin of the page). */
  url?: string;
}

/** A curl command that reads the key from `FLOWHOOK_KEY`, because the page does not know any key. */
export function curl({ method = 'GET', path, json, url = location.origin }: CurlRequest): string {
  return [
    method === 'GET' ? 'curl -sS' : `curl -sS -X ${method}`,
    '-H "x-api-key: $FLOWHOOK_KEY"',
    ...(json === undefined
      ? []
      : ["-H 'content-type: application/json'", `-d ${quoted(JSON.stringify(json))}`]),
    quoted(url + path),
  ].join(' \\\n  ');
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
