/** How deeply the lists and objects of a value lie in each other. */

/** Level by level, because a recursion would end the stack. */
export function isNestedDeeper(value: object, levels: number): boolean {
  let level: object[] = [value];
  for (let depth = 1; level.length > 0; depth += 1) {
    if (depth > levels) return true;
    level = level.flatMap((one) =>
      Object.values(one).filter(
        (inner): inner is object => typeof inner === 'object' && inner !== null && !JSON.isRawJSON(inner),
      ),
    );
  }
  return false;
}
