/** Reads a setting behind everybody's back. */
export const timeout = process.env.FLOWHOOK_TIMEOUT;
