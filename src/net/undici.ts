/**
 * The parts of undici that the server uses: all of it, with a `fetch`, web sockets and caches of its own, is 90 ms of a
 * start and 14 MB, these are 20 and 1.4.
 */
import { createRequire } from 'node:module';
import type * as Undici from 'undici';

const require = createRequire(import.meta.url);

export const Agent = require('undici/lib/dispatcher/agent.js') as typeof Undici.Agent;
export const buildConnector = require('undici/lib/core/connect.js') as typeof Undici.buildConnector;
