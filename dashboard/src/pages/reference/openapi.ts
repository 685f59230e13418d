/** The parts of OpenAPI 3.1 that the description of the service uses. */

export interface OpenApi {
  tags: { name: string }[];
  paths: Record<string, Record<string, OpenApiOperation>>;
  components: { schemas: Record<string, Schema>; responses: Record<string, OpenApiAnswer> };
}

/** The document with the answers that operations share in the place where each names them. */
export function withSharedAnswers(document: OpenApi): OpenApi {
  const shared = Object.entries(document.components.responses);
  const answer = (one: OpenApiAnswer) =>
    shared.find(([name]) => one.$ref === `#/components/responses/${name}`)?.[1] ?? one;
  const map = <From, To>(of: Record<string, From>, by: (one: From) => To) =>
    Object.fromEntries(Object.entries(of).map(([name, one]) => [name, by(one)]));
  const paths = map(document.paths, (methods) =>
    map(methods, (operation) => ({ ...operation, responses: map(operation.responses, answer) })),
  );
  return { ...document, paths };
}

export interface OpenApiOperation {
  operationId: string;
  tags: string[];
  summary: string;
  description?: string;
  /** Empty: anybody may call it. */
  security: object[];
  parameters?: OpenApiParameter[];
  requestBody?: { required?: boolean; content: Record<string, OpenApiContent> };
  responses: Record<string, OpenApiAnswer>;
}

export interface OpenApiParameter {
  name: string;
  in: 'path' | 'query' | 'header';
  required?: boolean;
  description?: string;
  schema: Schema;
  example?: unknown;
}

export interface OpenApiContent {
  schema?: Schema;
  example?: unknown;
}

export interface OpenApiAnswer {
  $ref?: string;
  description: string;
  /** One without a description belongs to every answer. */
  headers?: Record<string, { description?: string }>;
  content?: Record<string, OpenApiContent>;
}

export interface Schema {
  $ref?: string;
  type?: string | string[];
  description?: string;
  enum?: unknown[];
  const?: unknown;
  oneOf?: Schema[];
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
}
