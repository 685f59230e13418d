/**
 * A small site for HTTP sources: a list in HTML with detail pages, an API with cursors, a CSV and an NDJSON file.
 *
 *     node_modules/.bin/node examples/site/site.mts        # http://127.0.0.1:9100/
 *
 * The workflows in examples/workflows/default/site-*.yaml read it. While it runs, a POST changes or adds a person:
 *
 *     curl -X POST 'http://127.0.0.1:9100/people/katherine?mail=katherine@example.org'
 */
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';

const PEOPLE = [
  {
    id: 'ada',
    name: 'Ada Lovelace',
    born: '10.12.1815',
    mail: 'ada@example.org',
    field: 'Analytical engine',
  },
  { id: 'grace', name: 'Grace Hopper', born: '09.12.1906', mail: 'grace@example.org', field: 'Compilers' },
  { id: 'emmy', name: 'Emmy Noether', born: '23.03.1882', mail: 'emmy@example.org', field: 'Algebra' },
  { id: 'katherine', name: 'Katherine Johnson', born: '26.08.1918', mail: '', field: 'Orbits' },
  { id: 'hedy', name: 'Hedy Lamarr', born: '09.11.1914', mail: 'hedy@example.org', field: 'Radio' },
];
const PER_PAGE = 2;

/** Changes the person at a path to the values of the query, or adds a person, until the site is stopped. */
function change({ pathname, searchParams }: URL): string | undefined {
  const id = /^\/people\/([a-z]+)$/.exec(pathname)?.[1];
  if (id === undefined) return undefined;
  let person = PEOPLE.find((one) => one.id === id);
  if (person === undefined) {
    person = { id, name: id, born: '01.01.1900', mail: '', field: '' };
    PEOPLE.push(person);
  }
  for (const field of ['name', 'born', 'mail', 'field'] as const) {
    person[field] = searchParams.get(field) ?? person[field];
  }
  return JSON.stringify(person);
}

/** The response for a path; undefined for an unknown one. */
function answer(url: URL): [type: string, body: string] | undefined {
  const page = Number(url.searchParams.get('page') ?? 1);
  const from = (page - 1) * PER_PAGE;
  const some = PEOPLE.slice(from, from + PER_PAGE);
  const more = from + PER_PAGE < PEOPLE.length;
  if (url.pathname === '/people') {
    const rows = some.map(
      ({ id, name, mail }) =>
        `<tr class="person"><td><a class="profile" href="/people/${id}">${name}</a></td>` +
        `<td>${mail === '' ? '' : `<a href="mailto:${mail}">Write</a>`}</td></tr>`,
    );
    const next = more ? `<a class="next" href="?page=${page + 1}">Next</a>` : '';
    return [
      'text/html; charset=utf-8',
      `<!doctype html><title>People</title><table>${rows.join('')}</table>${next}`,
    ];
  }
  const person = PEOPLE.find(({ id }) => url.pathname === `/people/${id}`);
  if (person !== undefined) {
    const { name, born, field } = person;
    return [
      'text/html; charset=utf-8',
      `<!doctype html><h1>${name}</h1><p>Born <time>${born}</time></p><p class="field">${field}</p>`,
    ];
  }
  if (url.pathname === '/api/contacts') {
    const start = Number(url.searchParams.get('cursor') ?? 0);
    const items = PEOPLE.slice(start, start + PER_PAGE).map(({ id, name, mail }) => {
      const [first, last] = name.split(' ');
      return { contact_id: id, first, last, email: mail === '' ? null : mail };
    });
    const next = start + PER_PAGE < PEOPLE.length ? String(start + PER_PAGE) : null;
    return ['application/json', JSON.stringify({ data: { items }, meta: { next } })];
  }
  if (url.pathname === '/people.csv') {
    return [
      'text/csv',
      ['Key;Name;Born', ...PEOPLE.map(({ id, name, born }) => `${id};"${name}";${born}`)].join('\r\n'),
    ];
  }
  if (url.pathname === '/people.ndjson') {
    return ['application/x-ndjson', PEOPLE.map((one) => `${JSON.stringify(one)}\n`).join('')];
  }
  if (url.pathname === '/robots.txt') return ['text/plain', 'User-agent: *\nAllow: /\n'];
  return undefined;
}

const port = Number(process.argv[2] ?? 9100);
const server = createServer((request, response) => {
  const url = new URL(request.url ?? '/', 'http://localhost');
  if (request.method === 'POST') {
    const changed = change(url);
    return response
      .writeHead(changed === undefined ? 404 : 200)
      .end(`${changed ?? 'There is nobody here'}\n`);
  }
  const found = answer(url);
  if (found === undefined) return response.writeHead(404).end('There is nothing here\n');
  const [type, body] = found;
  const etag = `"${createHash('sha256').update(body).digest('base64')}"`;
  response.setHeader('content-type', type).setHeader('etag', etag);
  if (request.headers['if-none-match'] === etag) return response.writeHead(304).end();
  response.end(body);
});
server.listen(port, '127.0.0.1', () => {
  const address = server.address();
  if (typeof address === 'object') console.log(`http://127.0.0.1:${address?.port}/people`);
});
