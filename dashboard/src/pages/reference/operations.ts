/** The operations of the API, grouped and ordered for reading. */
import type { OpenApi, OpenApiOperation } from './openapi.ts';

export interface Operation extends OpenApiOperation {
  method: string;
  /** With its parameters in braces. */
  path: string;
}

export interface OperationGroup {
  name: string;
  operations: Operation[];
}

/** By their first tag, in the order of the tags. @param search words that all must be in an operation's texts */
export function groupsOf({ tags, paths }: OpenApi, search = ''): OperationGroup[] {
  const words = search.toLowerCase().split(/\s+/);
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      ...operation,
      method: method.toUpperCase(),
      path,
    })),
  );
  const found = operations.filter(({ operationId, method, path, summary, description = '' }) => {
    const text = `${operationId} ${method} ${path} ${summary} ${description}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
  return tags
    .map(({ name }) => ({ name, operations: found.filter((operation) => operation.tags[0] === name) }))
    .filter((group) => group.operations.length > 0);
}

/** The content type of its successful answer; null: no body. */
function contentTypeOf({ responses }: OpenApiOperation): string | null {
  const [, answer] = Object.entries(responses).find(([status]) => status.startsWith('2')) ?? [];
  return Object.keys(answer?.content ?? {})[0] ?? null;
}

/** Whether it can be tried from the page: it changes nothing, and its answer is no endless stream. */
export function canBeTried(operation: Operation): boolean {
  return operation.method === 'GET' && contentTypeOf(operation) !== 'text/event-stream';
}
