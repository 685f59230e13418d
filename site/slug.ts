/** The ids of headings, as GitHub makes them: links to them hold there and here. */

/** Gives each heading of one page its id, in their order: the second of a name ends in `-1`. */
export function slugger(): (heading: string) => string {
  const seen = new Map<string, number>();
  return (heading) => {
    const slug = heading
      .toLowerCase()
      .replace(/[^\p{L}\p{M}\p{N}\p{Pc}\- ]/gu, '')
      .replaceAll(' ', '-');
    const before = seen.get(slug);
    seen.set(slug, (before ?? 0) + 1);
    return before === undefined ? slug : `${slug}-${before}`;
  };
}
