/** One. */
export const one = 1;
