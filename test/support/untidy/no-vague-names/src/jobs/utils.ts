/** A bit of everything. */
export const one = 1;
