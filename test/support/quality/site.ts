/** The site of the ten sources: a shop's API in pages, a job board with a cursor, a web page, XML, CSV and lists. */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Row } from './population.ts';

export interface QualitySite {
  url: string;
  /** What each source lists, by its id. */
  rows: Map<string, readonly Row[]>;
  /** Makes a source accept connections but never respond, until `answer` is called. Resolves when a run asks it. */
  hang(id: string): Promise<void>;
  /** Lets the source respond again. */
  answer(id: string): void;
  close(): void;
}

const PER_PAGE = 1_000;

export async function startQualitySite(): Promise<QualitySite> {
  const rows = new Map<string, readonly Row[]>();
  const hanging = new Map<string, () => void>();
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '/', 'http://site.test');
    const id = url.pathname.slice(1);
    const found = rows.get(id);
    if (found === undefined) return response.writeHead(404).end();
    const asked = hanging.get(id);
    if (asked !== undefined) return asked();
    return send(response, id, found, url.searchParams);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    rows,
    hang: (id) => new Promise((resolve) => hanging.set(id, resolve)),
    answer: (id) => void hanging.delete(id),
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

function send(response: ServerResponse, id: string, rows: readonly Row[], query: URLSearchParams): void {
  const json = (value: unknown) =>
    response.setHeader('content-type', 'application/json').end(JSON.stringify(value));
  if (id === 'shop') {
    const from = (Number(query.get('page') ?? 1) - 1) * PER_PAGE;
    return void json({ items: rows.slice(from, from + PER_PAGE), total: rows.length });
  }
  if (id === 'job-board') {
    const from = Number(query.get('after') ?? 0);
    const next = from + PER_PAGE < rows.length ? String(from + PER_PAGE) : null;
    return void json({ data: { jobs: rows.slice(from, from + PER_PAGE), next } });
  }
  if (id === 'bargains') {
    const text = `<!doctype html><title>Bargains</title><ul>${rows.map(offer).join('')}</ul>`;
    return void response.setHeader('content-type', 'text/html; charset=utf-8').end(text);
  }
  if (id === 'vacancies') {
    const text = `<?xml version="1.0"?><vacancies>${rows.map(item).join('')}</vacancies>`;
    return void response.setHeader('content-type', 'application/xml').end(text);
  }
  if (id === 'rates') {
    const names = ['id', 'rate', 'asOf', 'volume'];
    const lines = rows.map((row) => names.map((name) => row[name] ?? '').join(','));
    return void response.setHeader('content-type', 'text/csv').end([names.join(), ...lines, ''].join('\n'));
  }
  return void json(rows);
}

function offer({ name, price, seller, ends, url }: Row): string {
  return (
    `<li class="offer"><a href="${url}">${escaped(name)}</a> <b class="price">${price ?? ''} €</b> ` +
    `${seller === undefined ? '' : `<i class="seller">${escaped(seller)}</i>`} <time datetime="${ends}">soon</time></li>`
  );
}

function item(row: Row): string {
  const parts = Object.entries(row).filter(([, value]) => value !== null);
  return `<item>${parts.map(([name, value]) => `<${name}>${escaped(value)}</${name}>`).join('')}</item>`;
}

function escaped(value: unknown): string {
  return String(value).replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}
