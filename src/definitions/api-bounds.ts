/**
 * Bounds of definitions made over the API; those in files are the operator's own, and are not bound.
 *
 * They may only send secrets that the team's file permits, and only to the hosts that it names: API callers who can make
 * workflows must not learn the operator's secrets. And they may ask for no more than the ceilings of the settings.
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
  /** Where it may be sent. */
  origins: ReadonlySet<string>;
}

/**
 * The settings that may hold secrets: they are sent only to the hosts of the definition. URLs appear in logs and, as
 * links, in records; fields become records; and some headers are sent wherever a redirect or a link leads.
 */
const PLACES =
  /^source\.(?:headers\.|body\b|form\.|auth\.(?:token|username|password|value|clientId|clientSecret)$)/;

/** @returns sentences that begin with the setting */
export function apiMistakes(
  source: Source,
  secrets: ReadonlyMap<string, Pick<ApiSecret, 'origins'>>,
): string[] {
  if (source.type !== 'http') return [];
  const mistakes = new Set<string>();
  if (source.proxy !== null) {
    mistakes.add(
      '`source.proxy` has no place here: proxies are for workflows from the files of the operator',
    );
  }
  // Each once: a source may have thousands of URLs, and refer to a secret thousands of times.
  const targets = targetsOf(source);
  const sent = new Set<string>();
  for (const { place, name } of usesIn(source)) {
    if (mistakes.size >= MAX_MISTAKES) break;
    const secret = secrets.get(name);
    if (!PLACES.test(place) || isPlain(place, source)) {
      mistakes.add(
        `\`${place}\` must hold no secret: over the API one may stand in \`headers\` that belong to one host alone, in \`body\`, \`form\` and \`auth\``,
      );
    } else if (secret === undefined) {
      mistakes.add(
        `\`${place}\` uses the secret ${name}, which workflows made over the API may not use: the operator must set it ` +
          "in the team's secrets file with `api: true` and `hosts`",
      );
    } else if (!sent.has(name)) {
      sent.add(name);
      const elsewhere = targets.filter(({ origin }) => origin === undefined || !secret.origins.has(origin));
      for (const { place: at } of elsewhere.slice(0, MAX_MISTAKES)) {
        mistakes.add(
          `\`${at}\` would be sent the secret ${name}, which may be sent to ${[...secret.origins].join(', ')} only`,
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

/** Whether it is a header that is sent to hosts that the definition does not name. */
function isPlain(place: string, { auth }: HttpSource): boolean {
  const header =
    place === 'source.auth.value' && auth?.type === 'header'
      ? auth.name
      : place.replace(/^source\.headers\./, '');
  return PLAIN_HEADERS.includes(header.trim().toLowerCase());
}

/** The URLs that are sent secrets, or a token that was obtained with one and is worth as much. */
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

/** Undefined when placeholders or other parts of the URL could change the host. */
function originOf(url: string): string | undefined {
  const authority = /^https?:\/\/([^/?#\\]*)[/?#]/i.exec(`${url}/`)?.[1] ?? '';
  if (/[$@{}\s]/.test(authority)) return undefined;
  return URL.parse(withoutPlaces(url))?.origin;
}

/** All texts of a source with their settings, as the definition file names them. */
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

/** The most that a definition may ask for. */
export type Ceilings = Definition['limits'] & { retries: number };

/** What each is called in a definition and as a setting, and how it is told in words. */
const BOUNDS: Readonly<
  Record<keyof Ceilings, [name: string, setting: string, words: (value: number) => string]>
> = {
  timeoutMs: ['limits.timeout', 'TIMEOUT', durationWords],
  memoryBytes: ['limits.memory', 'MEMORY', bytesWords],
  outputBytes: ['limits.output', 'OUTPUT', bytesWords],
  records: ['limits.records', 'RECORDS', grouped],
  retries: ['retries.max', 'RETRIES', grouped],
};

/** A sentence for each setting of the definition that is above the operator's ceiling. */
export function aboveCeilings({ limits, retries }: Definition, ceilings: Ceilings): string[] {
  const asked: Ceilings = { ...limits, retries: retries.max };
  return (Object.keys(BOUNDS) as (keyof Ceilings)[]).flatMap((field) => {
    const [name, setting, words] = BOUNDS[field];
    if (asked[field] <= ceilings[field]) return [];
    return [
      `\`${name}\` is ${words(asked[field])}, and workflows made over the API may ask for at most ` +
        `${words(ceilings[field])} here: ask for less, or have the operator raise FLOWHOOK_MAX_API_${setting} or ` +
        'define the workflow in a file',
    ];
  });
}

/** The workflow as it runs: one made over the API before the ceilings were set, or lowered, is held to them as well. */
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
