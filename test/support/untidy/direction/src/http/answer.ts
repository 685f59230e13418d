/** Something of the wire. */
export const answer = 1;
