/** Renders an OpenAPI document as one HTML page, without scripts or external resources. */
import { escapedHtml } from '../../std/escaped-html.ts';

export interface ReferenceDocument {
  info: { title: string; version: string; description: string };
  paths: Record<string, Record<string, object>>;
  webhooks: object;
  components: { schemas: object; responses: object };
}

interface Shown {
  operationId: string;
  tags: string[];
  summary: string;
  description?: string;
  security: object[];
  parameters?: { name: string; in: string; required?: boolean; description: string; schema: object }[];
  requestBody?: object;
  responses: Record<string, Response | { $ref: string }>;
}

interface Response {
  description: string;
  headers?: Record<string, object>;
  content?: object;
}

const STYLE = `
:root { color-scheme: light dark; font: 15px/1.55 system-ui, sans-serif; }
body { margin: 0 auto; max-width: 62rem; padding: 1rem 1.25rem 4rem; }
h2 { border-bottom: 1px solid #8886; margin-top: 2.5rem; padding-bottom: .25rem; }
details { border: 1px solid #8884; border-radius: 6px; margin: .5rem 0; padding: .4rem .8rem; }
summary { cursor: pointer; overflow-wrap: anywhere; }
code, pre { font: 13px/1.5 ui-monospace, monospace; }
pre { background: #8881; border-radius: 6px; overflow: auto; padding: .6rem; }
table { border-collapse: collapse; width: 100%; }
td, th { border-bottom: 1px solid #8884; padding: .25rem .5rem .25rem 0; text-align: left; vertical-align: top; }
b.method { display: inline-block; min-width: 4.5rem; }
`;

/**
 * The whole page.
 *
 * @param options.guide the URL of the guide, if there is one
 */
export function referencePage(
  document: ReferenceDocument,
  options: { guide?: string | undefined } = {},
): string {
  const { title, version, description } = document.info;
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, shown: operation as Shown })),
  );
  const groups = Map.groupBy(operations, ({ shown }) => shown.tags[0] ?? '');
  const events = Object.entries(document.webhooks as Record<string, { post: Shown }>);
  const shared = document.components.responses as Record<string, Response>;
  const resolve = (one: Response | { $ref: string }): Response | undefined =>
    '$ref' in one ? shared[one.$ref.slice(one.$ref.lastIndexOf('/') + 1)] : one;
  const sections = [...groups].map(
    ([name, of]) =>
      `<h2 id="${escapedHtml(name)}">${escapedHtml(name)}</h2>${of.map((one) => operationHtml(one, resolve)).join('')}`,
  );
  const links = [...groups.keys(), 'Events', 'Shapes'].map(
    (name) => `<a href="#${escapedHtml(name)}">${escapedHtml(name)}</a>`,
  );
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapedHtml(title)}</title>
<style>${STYLE}</style>
</head>
<body>
<h1>${escapedHtml(title)} ${escapedHtml(version)}</h1>
<p>${words(description)}</p>
<p>For programs: <a href="/openapi.json">openapi.json</a>, <a href="/openapi.yaml">openapi.yaml</a>.${options.guide === undefined ? '' : ` How to use it: <a href="${options.guide}">the guide</a>.`}</p>
<nav>${links.join(' · ')}</nav>
${sections.join('\n')}
<h2 id="Events">Events</h2>
${events.map(([type, { post }]) => folded(`<code>${escapedHtml(type)}</code> ${words(post.description ?? post.summary)}`, json(post.requestBody))).join('')}
<h2 id="Shapes">Shapes</h2>
${Object.entries(document.components.schemas)
  .map(([name, schema]) => folded(`<code>${escapedHtml(name)}</code>`, json(schema), name))
  .join('')}
</body>
</html>
`;
}

function operationHtml(
  { path, method, shown }: { path: string; method: string; shown: Shown },
  resolve: (one: Response | { $ref: string }) => Response | undefined,
): string {
  const head = `<b class="method">${method.toUpperCase()}</b> <code>${escapedHtml(path)}</code> ${words(shown.summary)}`;
  const parameters = (shown.parameters ?? []).map(
    ({ name, in: place, required, description, schema }) =>
      `<tr><td><code>${escapedHtml(name)}</code>${required ? ' (required)' : ''}</td><td>${escapedHtml(place)}</td>` +
      `<td>${words(description)} <code>${escapedHtml(JSON.stringify(schema))}</code></td></tr>`,
  );
  const responses = Object.entries(shown.responses).map(([status, one]) => {
    const { description = '', headers = {}, content } = resolve(one) ?? {};
    // Headers of every response are not repeated.
    const own = Object.entries(headers).filter(([, header]) => !('$ref' in header));
    return (
      `<tr><td>${escapedHtml(status)}</td><td>${words(description)}` +
      `${own.length === 0 ? '' : json(Object.fromEntries(own))}` +
      `${content === undefined || !status.startsWith('2') ? '' : json(content)}</td></tr>`
    );
  });
  return folded(
    head,
    [
      shown.description === undefined ? '' : `<p>${words(shown.description)}</p>`,
      `<p>${shown.security.length === 0 ? 'No key is needed.' : 'Needs the header <code>x-api-key</code>.'}</p>`,
      parameters.length === 0 ? '' : `<h4>Parameters</h4><table>${parameters.join('')}</table>`,
      shown.requestBody === undefined ? '' : `<h4>Body</h4>${json(shown.requestBody)}`,
      `<h4>Responses</h4><table>${responses.join('')}</table>`,
    ].join(''),
    shown.operationId,
  );
}

function folded(head: string, body: string, id?: string): string {
  return `<details${id === undefined ? '' : ` id="${escapedHtml(id)}"`}><summary>${head}</summary>${body}</details>\n`;
}

function json(value: unknown): string {
  return `<pre>${escapedHtml(JSON.stringify(value, null, 2))}</pre>`;
}

/** Escapes a text, with backticks as code. */
function words(text: string): string {
  return escapedHtml(text).replace(/`([^`]+)`/g, '<code>$1</code>');
}
