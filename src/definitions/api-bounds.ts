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

export interface Ceilings {
  timeoutMs: number;
  memoryBytes: number;
  outputBytes: number;
  records: number;
  retries: number;
}

export const NO_CEILINGS: Ceilings = {
  timeoutMs: Number.POSITIVE_INFINITY,
  memoryBytes: Number.POSITIVE_INFINITY,
  outputBytes: Number.POSITIVE_INFINITY,
  records: Number.POSITIVE_INFINITY,
  retries: Number.POSITIVE_INFINITY,
};

/** One that a definition can name: how it reads it, and what writes its value in words. */
interface Bound {
  name: string;
  setting: string;
  of(definition: Definition): number;
  words(value: number): string;
}

const BOUNDS: Readonly<Record<keyof Ceilings, Bound>> = {
  timeoutMs: {
    name: 'limits.timeout',
    setting: 'FLOWHOOK_MAX_API_TIMEOUT',
    of: ({ limits }) => limits.timeoutMs,
    words: durationWords,
  },
  memoryBytes: {
    name: 'limits.memory',
    setting: 'FLOWHOOK_MAX_API_MEMORY',
    of: ({ limits }) => limits.memoryBytes,
    words: bytesWords,
  },
  outputBytes: {
    name: 'limits.output',
    setting: 'FLOWHOOK_MAX_API_OUTPUT',
    of: ({ limits }) => limits.outputBytes,
    words: bytesWords,
  },
  records: {
    name: 'limits.records',
    setting: 'FLOWHOOK_MAX_API_RECORDS',
    of: ({ limits }) => limits.records,
    words: grouped,
  },
  retries: {
    name: 'retries.max',
    setting: 'FLOWHOOK_MAX_API_RETRIES',
    of: ({ retries }) => retries.max,
    words: grouped,
  },
};

/** A sentence for each setting of the definition that is above the operator's ceiling. */
export function aboveCeilings(definition: Definition, ceilings: Ceilings): string[] {
  return Object.entries(BOUNDS).flatMap(([field, { name, setting, of, words }]) => {
    const most = ceilings[field as keyof Ceilings];
    const asked = of(definition);
    if (asked <= most) return [];
    return [
      `\`${name}\` is ${words(asked)}, and workflows made over the API may ask for at most ${words(most)} here: ` +
        `ask for less, or have the operator raise ${setting} or define the workflow in a file`,
    ];
  });
}

/** The workflow as it runs: one made over the API before the ceilings were set, or lowered, is held to them as well. */
export function withinCeilings(workflow: Workflow, ceilings: Ceilings = NO_CEILINGS): Workflow {
  if (!isOfApi(workflow)) return workflow;
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
