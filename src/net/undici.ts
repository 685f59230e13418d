/**
 * Only the parts of undici that the server uses. The whole package, with `fetch`, WebSockets and caches, costs 90 ms at
 * start and 14 MB of memory; these cost 20 ms and 1.4 MB.
 */
import { createRequire } from 'node:module';
import type * as Undici from 'undici';

const require = createRequire(import.meta.url);

export const Agent = require('undici/lib/dispatcher/agent.js') as typeof Undici.Agent;
export const buildConnector = require('undici/lib/core/connect.js') as typeof Undici.buildConnector;
