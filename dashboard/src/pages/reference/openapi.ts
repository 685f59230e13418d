/** The parts of OpenAPI 3.1 that the description of the service uses. */

export interface OpenApi {
  tags: { name: string }[];
  paths: Record<string, Record<string, OpenApiOperation>>;
  components: { schemas: Record<string, Schema> };
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
  description: string;
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
