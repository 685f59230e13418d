/** How many events `flowhook events list` shows, wherever it reads them. */
export const DEFAULT_EVENTS = 100;
export const MAX_EVENTS = 1_000;
