/** Runs parts of the app as Zapier does: by the platform's own runner, without any request to Zapier. */
import zapier from 'zapier-platform-core';
import App from '../../index.js';

export const appTester = zapier.createAppTester(App);

/** Runs one event as the platform sends it. The types do not know it; every app is started by it. */
export const handler = /** @type {any} */ (zapier).createAppHandler(App);

/**
 * What `createAppTester` has no way to say: the callback URL of a step, and what a drop-down remembers between pages.
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
