/**
 * Node's names of HTTP methods and statuses. `node:http` is not imported, because importing it evaluates all of its
 * exports. One of them, `WebSocket`, loads Node's own undici, which takes 25 ms at start and 2 MB of memory.
 */
export const { METHODS, STATUS_CODES } = process.getBuiltinModule('node:http');
