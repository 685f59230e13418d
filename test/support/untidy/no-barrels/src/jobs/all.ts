/** Hides where things are. */
export { one } from './one.ts';
