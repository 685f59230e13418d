/** The states of a job. */
export const stateOf = () => 'queued';
