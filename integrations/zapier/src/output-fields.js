/** Derives labels and types of fields from a sample. */

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/;
/** @type {Record<string, string>} */
const IN_CAPITALS = { id: 'ID', url: 'URL' };

/**
 * @param {Record<string, any>} sample
 * @param {string} [prefix] of the keys; nested keys are joined with two underscores
 * @returns {{ key: string, label: string, type?: 'string' | 'integer' | 'boolean' | 'datetime' }[]}
 */
export function outputFields(sample, prefix = '') {
  return Object.entries(sample).flatMap(([name, value]) => {
    const key = prefix + name;
    if (Array.isArray(value)) {
      return typeof value[0] === 'object'
        ? outputFields(value[0], `${key}[]`)
        : [{ key, label: inWords(key) }];
    }
    if (typeof value === 'object' && value !== null) return outputFields(value, `${key}__`);
    return [{ key, label: inWords(key), type: typeOf(value) }];
  });
}

/** @param {unknown} value */
function typeOf(value) {
  if (typeof value === 'boolean') return 'boolean';
  if (typeof value === 'number') return 'integer';
  return typeof value === 'string' && TIME.test(value) ? 'datetime' : 'string';
}

/** `data__records__total` is "Data Records Total", `jobId` "Job ID". @param {string} key */
function inWords(key) {
  return key
    .replaceAll(/([a-z])([A-Z])/g, '$1 $2')
    .split(/__|\[\]| /)
    .filter((word) => word !== '')
    .map((word) => IN_CAPITALS[word.toLowerCase()] ?? word.charAt(0).toUpperCase() + word.slice(1))
    .join(' ');
}
