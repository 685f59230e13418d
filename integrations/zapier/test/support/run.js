/** Runs parts of the app with the platform's own runner, without any request to Zapier. */
import zapier from 'zapier-platform-core';
import App from '../../index.js';

export const appTester = zapier.createAppTester(App);

/** Handles one event of the platform. The types do not include it, but every app is started this way. */
export const handler = /** @type {any} */ (zapier).createAppHandler(App);

/**
 * Runs a step with a callback URL or with the cursors of a drop-down, which `createAppTester` does not support.
 *
 * @param {string} method such as `creates.run_workflow.operation.perform`
 * @param {object} bundle
 * @param {{ callbackUrl?: string, cursors?: object }} [options]
 * @returns {Promise<{ results: any, status: 'SUCCESS' | 'CALLBACK' }>}
 */
export function runStep(method, bundle, { callbackUrl, cursors = {} } = {}) {
  return handler({
    command: 'execute',
    method,
    bundle,
    callback_url: callbackUrl,
    storeKey: 'test',
    cursorTestObj: cursors,
    zcacheTestObj: {},
  });
}

export { App };
