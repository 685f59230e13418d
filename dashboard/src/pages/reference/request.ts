/** A call of an operation: its parameters filled in. */
import type { OpenApiParameter } from './openapi.ts';
import type { Operation } from './operations.ts';

/** The values of the input fields, by parameter name. */
export type Filled = Readonly<Record<string, string>>;

export interface OperationRequest {
  /** With its query. */
  path: string;
  headers: Record<string, string>;
  /** The names of required parameters that are empty; their braces stand in the path. */
  missing: string[];
}

export function requestOf(
  { path, parameters = [] }: Pick<Operation, 'path' | 'parameters'>,
  filled: Filled,
): OperationRequest {
  const query = new URLSearchParams();
  const headers: Record<string, string> = {};
  let place = path;
  for (const { name, in: where } of parameters) {
    const value = filled[name]?.trim() ?? '';
    if (value === '') continue;
    if (where === 'query') query.append(name, value);
    else if (where === 'header') headers[name] = value;
    else place = place.replace(`{${name}}`, encodeURIComponent(value));
  }
  const search = query.toString();
  return {
    path: search === '' ? place : `${place}?${search}`,
    headers,
    missing: parameters
      .filter(({ name, required }) => required === true && (filled[name]?.trim() ?? '') === '')
      .map(({ name }) => name),
  };
}

/** What a field shows while it is empty. */
export function exampleOf({ example, schema }: OpenApiParameter): string {
  const value = example ?? schema.enum?.[0] ?? '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}
