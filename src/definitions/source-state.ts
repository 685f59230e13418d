/** The state that a source keeps from run to run: which states a person may set. */
import { isNestedDeeper, MAX_LEVELS } from '../model/record.ts';
import { type Definition, MAX_STATE_BYTES } from '../model/workflow.ts';
import { nearest } from '../std/nearest.ts';

/**
 * Returns why a state cannot be set for this definition, as a sentence; undefined if it can. Null means no state.
 * A number may be `JSON.rawJSON`.
 * A module and a tap get a JSON object, and a command any JSON value. An `http` source gets `{ values, answers }`, as
 * it stores them itself; without `answers`, its next requests are unconditional.
 */
export function stateMistake({ source }: Pick<Definition, 'source'>, state: unknown): string | undefined {
  if (state === null) return undefined;
  if (source.type === 'push') return 'This workflow receives its records by push, so its source has no state';
  if (typeof state === 'object' && isNestedDeeper(state, MAX_LEVELS)) {
    return `The lists and objects of the state are nested too deeply; at most ${MAX_LEVELS} levels are allowed`;
  }
  if (Buffer.byteLength(JSON.stringify(state)) > MAX_STATE_BYTES) return 'The state is larger than 1 MiB';
  if (source.type === 'command' && source.protocol === 'ndjson') return undefined;
  if (!isObject(state)) {
    return source.type === 'module'
      ? 'The state of a module must be a JSON object: the keys and values of `ctx.state`'
      : `The state of ${source.type === 'http' ? 'an http source' : 'a Singer tap'} must be a JSON object`;
  }
  return source.type === 'http' ? httpMistake(state, Object.keys(source.remember)) : undefined;
}

/** @param names the names in `source.state` of the definition */
function httpMistake(state: Record<string, unknown>, names: readonly string[]): string | undefined {
  const { values = {}, answers = {}, ...others } = state;
  const [other] = Object.keys(others);
  if (other !== undefined) {
    const advice = names.includes(other)
      ? `Write {"values": {${JSON.stringify(other)}: …}}`
      : 'It has only `values`';
    return `The state of an http source has no \`${other}\`. ${advice}`;
  }
  if (!isObject(values) || !isObject(answers)) {
    return 'In the state of an http source, `values` and `answers` must be JSON objects';
  }
  for (const [name, value] of Object.entries(values)) {
    if (!names.includes(name)) {
      const meant = nearest(name, names);
      const advice =
        meant === undefined ? `It has ${names.join(', ') || 'no values'}` : `Did you mean \`${meant}\`?`;
      return `\`source.state\` of the definition has no \`${name}\`. ${advice}`;
    }
    if (typeof value !== 'string')
      return `\`values.${name}\` must be text, such as ${JSON.stringify(JSON.stringify(value))}`;
  }
  return undefined;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !JSON.isRawJSON(value);
}
