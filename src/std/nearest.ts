/** Finds the name that a misspelled name was probably meant to be. */

/**
 * The nearest name by edit distance, if at most a third of its letters differ; otherwise undefined. Of equally near names
 * it is the one that begins with the letters written: the end of a name is forgotten more often than a letter mistaken.
 */
export function nearest(written: string, names: readonly string[]): string | undefined {
  const plain = plainly(written);
  let best: string | undefined;
  let bestDistance = Math.max(1, Math.floor(plain.length / 3)) + 0.5;
  for (const name of names) {
    const known = plainly(name);
    const distance = editDistance(plain, known) - (known.startsWith(plain) ? 0.5 : 0);
    if (distance < bestDistance) {
      best = name;
      bestDistance = distance;
    }
  }
  return best;
}

/** Ignores case, hyphens and underscores. */
function plainly(name: string): string {
  return name.toLowerCase().replace(/[-_ ]/g, '').slice(0, 40);
}

/** Number of letters that must be added, deleted, changed or swapped with the next letter. */
function editDistance(a: string, b: string): number {
  const rows: number[][] = [Array.from({ length: b.length + 1 }, (_, j) => j)];
  const at = (i: number, j: number): number => rows[i]?.[j] ?? 0;
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    rows.push(row);
    for (let j = 1; j <= b.length; j++) {
      const change = at(i - 1, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1);
      let least = Math.min(change, at(i - 1, j) + 1, at(i, j - 1) + 1);
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (swapped) least = Math.min(least, at(i - 2, j - 2) + 1);
      row.push(least);
    }
  }
  return at(a.length, b.length);
}
