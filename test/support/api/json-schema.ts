/** Checks values against JSON Schema 2020-12, the dialect of OpenAPI 3.1. */
import { Ajv2020 } from 'ajv/dist/2020.js';

/**
 * Returns a function that checks a value against a schema. It returns the error, or undefined if the value is valid.
 *
 * @param document an OpenAPI document, for references such as `#/components/schemas/Job`
 */
export function createSchemaCheck(document?: object): (schema: object, value: unknown) => string | undefined {
  // OpenAPI adds keywords, and formats are only annotations.
  const ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: false });
  if (document !== undefined) ajv.addSchema(document, 'openapi');
  const compiled = new Map<object, ReturnType<Ajv2020['compile']>>();
  return (schema, value) => {
    const validate = compiled.get(schema) ?? ajv.compile(document === undefined ? schema : rebased(schema));
    compiled.set(schema, validate);
    return validate(value) ? undefined : ajv.errorsText(validate.errors);
  };
}

function rebased(schema: object): object {
  return JSON.parse(JSON.stringify(schema).replaceAll('"$ref":"#/', '"$ref":"openapi#/'));
}
