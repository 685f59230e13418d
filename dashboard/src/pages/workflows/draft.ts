/** A workflow as entered in a form: its mistakes, and the definition that results. */
import type { Definition, Workflow } from 'flowhook-client';

/** As it is typed. */
export interface Draft {
  id: string;
  name: string;
  type: 'push' | 'http';
  url: string;
  /** Empty: as the answer says. */
  parse: string;
  records: string;
  /** `id = $.contact_id, name = $.title`. */
  fields: string;
  /** Names with commas between. */
  key: string;
  mode: Workflow['mode'];
  /** `15m`; empty: no schedule. */
  every: string;
}

/** Mistakes that can be found without asking the service, by the name of the input. */
export function mistakesIn(draft: Draft): { [name in keyof Draft]?: string } {
  const mistakes: { [name in keyof Draft]?: string } = {};
  const id = draft.id.trim();
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must be refused.
  if (!/^[^\u0000-\u001f\u007f/\\]{1,200}$/u.test(id) || id === '.' || id === '..') {
    mistakes.id = '1 to 200 characters, without slashes';
  }
  if (draft.type === 'push') return mistakes;
  if (!isHttpAddress(draft.url.trim())) mistakes.url = 'An address that begins with http:// or https://';
  if (fieldsOf(draft.fields) === undefined) mistakes.fields = 'Such as: id = $.contact_id, name = $.title';
  if (!/^$|^\d+(ms|s|m|h|d)$/.test(draft.every.trim())) mistakes.every = 'A duration, such as 30s, 15m or 2h';
  return mistakes;
}

/** The same as a workflow file. Only for a draft without mistakes. */
export function definitionFrom(draft: Draft): Definition {
  const key = partsOf(draft.key);
  const shared = {
    ...(draft.name.trim() === '' ? {} : { name: draft.name.trim() }),
    ...(key.length === 0 ? {} : { key }),
    mode: draft.mode,
  };
  if (draft.type === 'push') return { ...shared, source: { type: 'push' } };
  const fields = fieldsOf(draft.fields) ?? {};
  return {
    ...shared,
    source: {
      type: 'http',
      url: draft.url.trim(),
      ...(draft.parse === '' ? {} : { parse: draft.parse }),
      ...(draft.records.trim() === '' ? {} : { records: draft.records.trim() }),
    },
    ...(Object.keys(fields).length === 0 ? {} : { fields }),
    ...(draft.every.trim() === '' ? {} : { schedule: { every: draft.every.trim() } }),
  };
}

function isHttpAddress(text: string): boolean {
  return /^https?:\/\//.test(text) && URL.canParse(text);
}

/** undefined: it cannot be read. */
function fieldsOf(text: string): Record<string, string> | undefined {
  const fields: Record<string, string> = {};
  for (const part of partsOf(text)) {
    const [, name, from] = /^([^=\s]+)\s*=\s*(.+)$/.exec(part) ?? [];
    if (name === undefined || from === undefined) return undefined;
    fields[name] = from;
  }
  return fields;
}

function partsOf(text: string): string[] {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
}
