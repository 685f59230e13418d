/**
 * Limits for definitions made over the API. Definitions in files are written by the operator and have no such limits.
 *
 * A definition made over the API may send only secrets that the team's secrets file permits, and only to the hosts
 * listed in that file, because API callers who can create workflows must not learn the operator's secrets. The limits
 * of the definition must not exceed the ceilings in the service's settings.
 */
import type { HttpSource } from '../model/http-source.ts';
import { secretReferences, withoutPlaces } from '../model/secret-names.ts';
import { type Definition, isOfApi, type Source, type Workflow } from '../model/workflow.ts';
import { PLAIN_HEADERS } from '../sources/http/request.ts';
import { bytesWords, durationWords, grouped } from '../std/amounts.ts';

const MAX_MISTAKES = 100;

/** A secret that workflows made over the API may use. */
export interface ApiSecret {
  value: string;
  /** The secret may be sent only to these origins. */
  origins: ReadonlySet<string>;
}

/**
 * Only these settings may contain secrets, because they are sent only to the hosts of the definition. The other
 * settings may not: URLs appear in logs and, as links, in records; fields become records; and some headers are sent to
 * every target of a redirect or link.
 */
const PLACES =
  /^source\.(?:headers\.|body\b|form\.|auth\.(?:token|username|password|value|clientId|clientSecret)$)/;

/** @returns one sentence per mistake, which starts with the name of the setting */
export function apiMistakes(
  source: Source,
  secrets: ReadonlyMap<string, Pick<ApiSecret, 'origins'>>,
): string[] {
  if (source.type !== 'http') return [];
  const mistakes = new Set<string>();
  if (source.proxy !== null) {
    mistakes.add(
      '`source.proxy` is not allowed over the API: only workflow files of the operator may set a proxy',
    );
  }
  // Each secret is checked only once, because a source may have thousands of URLs, and may use a secret thousands of
  // times.
  const targets = targetsOf(source);
  const sent = new Set<string>();
  for (const { place, name } of usesIn(source)) {
    if (mistakes.size >= MAX_MISTAKES) break;
    const secret = secrets.get(name);
    if (!PLACES.test(place) || isPlain(place, source)) {
      mistakes.add(
        `\`${place}\` must not contain a secret. Over the API, secrets are allowed in \`body\`, \`form\`, \`auth\`, and in ` +
          '`headers` that are sent only to the hosts of the definition',
      );
    } else if (secret === undefined) {
      mistakes.add(
        `\`${place}\` uses the secret ${name}, which workflows made over the API may not use. The operator can permit it ` +
          "in the team's secrets file with `api: true` and `hosts`",
      );
    } else if (!sent.has(name)) {
      sent.add(name);
      const elsewhere = targets.filter(({ origin }) => origin === undefined || !secret.origins.has(origin));
      for (const { place: at } of elsewhere.slice(0, MAX_MISTAKES)) {
        mistakes.add(
          `\`${at}\` would receive the secret ${name}, which may be sent only to ${[...secret.origins].join(', ')}`,
        );
      }
    }
  }
  return [...mistakes];
}

function* usesIn(source: HttpSource): Generator<{ place: string; name: string }> {
  for (const { place, text } of textsOf(source)) {
    for (const [, name = ''] of text.matchAll(secretReferences())) yield { place, name };
  }
}

/** Whether this header is also sent to hosts that are not in the definition. */
function isPlain(place: string, { auth }: HttpSource): boolean {
  const header =
    place === 'source.auth.value' && auth?.type === 'header'
      ? auth.name
      : place.replace(/^source\.headers\./, '');
  return PLAIN_HEADERS.includes(header.trim().toLowerCase());
}

/** Returns the URLs that receive secrets, or a token obtained with a secret. */
function targetsOf({ urls, auth }: HttpSource): { place: string; origin: string | undefined }[] {
  const targets = [
    ...urls.map((url, position) => ({
      place: urls.length === 1 ? 'source.url' : `source.url[${position}]`,
      url,
    })),
    ...(auth?.type === 'oauth2' ? [{ place: 'source.auth.tokenUrl', url: auth.tokenUrl }] : []),
  ];
  return targets.map(({ place, url }) => ({ place, origin: originOf(url) }));
}

/** Returns the origin of a URL; undefined if placeholders or other parts of the URL could change the host. */
function originOf(url: string): string | undefined {
  const authority = /^https?:\/\/([^/?#\\]*)[/?#]/i.exec(`${url}/`)?.[1] ?? '';
  if (/[$@{}\s]/.test(authority)) return undefined;
  return URL.parse(withoutPlaces(url))?.origin;
}

/** Yields all strings of a source, each with the path of its setting in the definition file. */
function* textsOf({
  urls,
  body,
  remember,
  fields,
  ...rest
}: HttpSource): Generator<{ place: string; text: string }> {
  const sent =
    body === null
      ? {}
      : 'form' in body
        ? { form: body.form }
        : { body: 'json' in body ? body.json : body.text };
  yield* textsWithin(
    { url: urls.length === 1 ? urls[0] : urls, ...rest, state: remember, ...sent },
    'source',
  );
  yield* textsWithin(fields, 'fields');
}

function* textsWithin(value: unknown, place: string): Generator<{ place: string; text: string }> {
  if (typeof value === 'string') yield { place, text: value };
  if (typeof value !== 'object' || value === null) return;
  for (const [name, inner] of Object.entries(value)) {
    yield* textsWithin(inner, Array.isArray(value) ? `${place}[${name}]` : `${place}.${name}`);
  }
}

/** Upper limits for the settings of a definition. */
export type Ceilings = Definition['limits'] & { retries: number };

/**
 * For each ceiling: the name of the limited setting in a definition, the suffix of the service setting with the
 * ceiling, and a function that formats values.
 */
const BOUNDS: Readonly<
  Record<keyof Ceilings, [name: string, setting: string, words: (value: number) => string]>
> = {
  timeoutMs: ['limits.timeout', 'TIMEOUT', durationWords],
  memoryBytes: ['limits.memory', 'MEMORY', bytesWords],
  outputBytes: ['limits.output', 'OUTPUT', bytesWords],
  records: ['limits.records', 'RECORDS', grouped],
  retries: ['retries.max', 'RETRIES', grouped],
};

/** Returns a sentence for each setting of the definition that exceeds the operator's ceiling. */
export function aboveCeilings({ limits, retries }: Definition, ceilings: Ceilings): string[] {
  const asked: Ceilings = { ...limits, retries: retries.max };
  return (Object.keys(BOUNDS) as (keyof Ceilings)[]).flatMap((field) => {
    const [name, setting, words] = BOUNDS[field];
    if (asked[field] <= ceilings[field]) return [];
    return [
      `\`${name}\` is ${words(asked[field])}, but workflows made over the API may have at most ` +
        `${words(ceilings[field])}. Lower it, or ask the operator to raise FLOWHOOK_MAX_API_${setting} or to define ` +
        'the workflow in a file',
    ];
  });
}

/**
 * Applies the ceilings to a workflow that is about to run, because they may have been lowered since the workflow was
 * made over the API.
 */
export function withinCeilings(workflow: Workflow, ceilings: Ceilings | undefined): Workflow {
  if (ceilings === undefined || !isOfApi(workflow)) return workflow;
  const { definition } = workflow;
  const { limits, retries } = definition;
  return {
    ...workflow,
    definition: {
      ...definition,
      limits: {
        timeoutMs: Math.min(limits.timeoutMs, ceilings.timeoutMs),
        memoryBytes: Math.min(limits.memoryBytes, ceilings.memoryBytes),
        outputBytes: Math.min(limits.outputBytes, ceilings.outputBytes),
        records: Math.min(limits.records, ceilings.records),
      },
      retries: { ...retries, max: Math.min(retries.max, ceilings.retries) },
    },
  };
}
