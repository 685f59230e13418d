/**
 * The first code of the executable, and of each of its threads. Makes Node import the files of the package from inside
 * the executable, as if the executable were their directory. `src/std/own-files.ts` finds other files in the same way.
 */
const { createRequire, registerHooks } = require('node:module');
const { getAsset, getAssetKeys } = require('node:sea');
const { pathToFileURL } = require('node:url');

const ROOT = `${pathToFileURL(process.execPath).href}/`;
const NAMES = new Set(getAssetKeys());

registerHooks({
  resolve(specifier, context, next) {
    const url = /^(\.\.?\/|file:)/.test(specifier)
      ? (URL.parse(specifier, context.parentURL)?.href ?? '')
      : '';
    if (nameOf(url) === undefined) return next(specifier, context);
    return { url, format: formatOf(url), shortCircuit: true };
  },
  load(url, context, next) {
    const name = nameOf(url);
    if (name === undefined) return next(url, context);
    return { format: formatOf(url), source: getAsset(name, 'utf8'), shortCircuit: true };
  },
});

/** @returns {string} the format of the file at this URL */
function formatOf(url) {
  return url.endsWith('.cjs') ? 'commonjs' : 'module';
}

/** @returns {string | undefined} the name of the file at this URL, if it is inside the executable */
function nameOf(url) {
  const name = url.startsWith(ROOT) ? url.slice(ROOT.length) : undefined;
  return NAMES.has(name) ? name : undefined;
}

// This script itself can import only modules of Node.
createRequire(ROOT)('./start.js');
