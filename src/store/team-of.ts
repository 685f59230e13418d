/** The team that an operation is for, so that teams can take turns. */

/** The team in the input of an operation, if there is one. */
export function teamOf(input: unknown): string | undefined {
  const { teamId, held } = (input ?? {}) as { teamId?: unknown; held?: { teamId?: unknown } };
  const team = teamId ?? held?.teamId;
  return typeof team === 'string' ? team : undefined;
}
