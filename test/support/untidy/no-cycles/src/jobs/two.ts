/** Needs one. */
import type { one } from './one.ts';

export const two = (give: typeof one) => give;
