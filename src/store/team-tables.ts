/** Which rows go with a team, and in which order. */
import { INSPECTOR_TABLES, TABLES, type Table } from './copy/tables.ts';

/** How the slug of a team begins that has been retired: no team can be called so. */
export const RETIRED = 'deleted:';

/** Frees the slug, and is what the deletion of the team is found by if it was interrupted. */
export function retiredSlug({ id, slug }: { id: string; slug: string }): string {
  return `${RETIRED}${slug}:${id}`;
}

/** What the team was called. */
export function slugBefore(retired: string): string {
  return retired.slice(RETIRED.length, retired.lastIndexOf(':'));
}

const OF_NO_TEAM = ['instance', 'team', 'job'];

/**
 * Every table with rows of teams, also those that are added one day. Jobs go first: a run whose job is gone writes
 * nothing any more. Then what refers to others before what is referred to.
 */
export const TEAM_TABLES: readonly Table[] = [
  ...TABLES.filter(({ name }) => name === 'job'),
  ...[...INSPECTOR_TABLES].reverse(),
  ...TABLES.filter(({ name }) => !OF_NO_TEAM.includes(name)).reverse(),
];
