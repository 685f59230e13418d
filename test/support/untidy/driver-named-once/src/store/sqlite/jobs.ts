/** A driver's file. */
export const enqueue = 1;
