/** No queue: only the route. It remembers the first names, so that it can refuse them. */
const taken = new Set();
/** More names than warm-up calls, because a connection that is accepted late sends its first name late. */
const MOST_TAKEN = 40_000;

export async function open() {
  let accepted = 0;
  return {
    async queue(workflowId) {
      if (taken.has(workflowId)) return undefined;
      if (taken.size < MOST_TAKEN) taken.add(workflowId);
      accepted += 1;
      return 'job_01kadz8v3s7v0s8e1c3q5m2n4p';
    },
    stored: async () => accepted,
    async close() {},
  };
}
