/** Chooses a status by hand. */
export const answer = (reply: { code(status: number): void }) => reply.code(409);
