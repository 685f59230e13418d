/** Two texts line by line: what is gone, what is new, what stayed. */

export interface DiffLine {
  kind: 'same' | 'added' | 'removed';
  text: string;
}

/** The table below has the product of both line counts as its size. */
const MAX_LINES = 2_000;

/** Removed lines come before those that replaced them. Of very long texts the whole middle counts as changed. */
export function lineDiff(before: string, after: string): DiffLine[] {
  const [old, now] = [linesOf(before), linesOf(after)];
  let start = 0;
  while (start < old.length && start < now.length && old[start] === now[start]) start += 1;
  let end = 0;
  while (
    end < old.length - start &&
    end < now.length - start &&
    old[old.length - 1 - end] === now[now.length - 1 - end]
  ) {
    end += 1;
  }
  return [
    ...same(old.slice(0, start)),
    ...between(old.slice(start, old.length - end), now.slice(start, now.length - end)),
    ...same(old.slice(old.length - end)),
  ];
}

/** By the longest lines in common. */
function between(old: readonly string[], now: readonly string[]): DiffLine[] {
  const removed = (text: string): DiffLine => ({ kind: 'removed', text });
  const added = (text: string): DiffLine => ({ kind: 'added', text });
  if (old.length > MAX_LINES || now.length > MAX_LINES) return [...old.map(removed), ...now.map(added)];
  // common[a][b]: how many lines the rests of both have in common.
  const common = Array.from({ length: old.length + 1 }, () => new Uint16Array(now.length + 1));
  const at = (a: number, b: number): number => common[a]?.[b] ?? 0;
  for (let a = old.length - 1; a >= 0; a -= 1) {
    for (let b = now.length - 1; b >= 0; b -= 1) {
      const row = common[a] as Uint16Array;
      row[b] = old[a] === now[b] ? at(a + 1, b + 1) + 1 : Math.max(at(a + 1, b), at(a, b + 1));
    }
  }
  const lines: DiffLine[] = [];
  let [a, b] = [0, 0];
  while (a < old.length && b < now.length) {
    if (old[a] === now[b]) {
      lines.push({ kind: 'same', text: old[a] as string });
      a += 1;
      b += 1;
    } else if (at(a + 1, b) >= at(a, b + 1)) lines.push(removed(old[a++] as string));
    else lines.push(added(now[b++] as string));
  }
  return [...lines, ...old.slice(a).map(removed), ...now.slice(b).map(added)];
}

function same(lines: readonly string[]): DiffLine[] {
  return lines.map((text) => ({ kind: 'same', text }));
}

function linesOf(text: string): string[] {
  return text === '' ? [] : text.replace(/\n$/, '').split('\n');
}
