/** Lets the loader guess. */
import { one } from './one';

export const submit = one;
