/** Compares the requests that the app has sent in this process with `openapi.json`. */
import diagnostics from 'node:diagnostics_channel';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** @type {Set<string>} */
const asked = new Set();
// The platform uses `node:http`. The tests themselves use `fetch`, which is not recorded here.
diagnostics.subscribe('http.client.request.start', (message) => {
  const { request } = /** @type {{ request: import('node:http').ClientRequest }} */ (message);
  asked.add(`${request.method} ${request.path}`);
});

/** The requests of the app that are not documented operations, or that have undocumented query parameters. */
export function undocumented() {
  const { paths } = JSON.parse(readFileSync(join(import.meta.dirname, '../../../../openapi.json'), 'utf8'));
  const templates = Object.keys(paths).toSorted((a, b) => countHoles(a) - countHoles(b));
  return [...asked].filter((one) => {
    const [method = '', target = ''] = one.split(' ', 2);
    const url = new URL(target, 'http://service.invalid');
    const template = templates.find((path) =>
      new RegExp(`^${path.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(url.pathname),
    );
    const operation = template === undefined ? undefined : paths[template][method.toLowerCase()];
    if (operation === undefined) return true;
    const known = (operation.parameters ?? []).filter((each) => each.in === 'query').map((each) => each.name);
    return [...url.searchParams.keys()].some((name) => !known.includes(name));
  });
}

/** The number of recorded requests: without any, the comparison would prove nothing. */
export function countAsked() {
  return asked.size;
}

/** @param {string} path */
function countHoles(path) {
  return path.split('{').length;
}
