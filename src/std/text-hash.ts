/** A hash to compare texts within a process. It is not secure, and never stored. */

/** Two hashes of 32 bits, of the whole text. @param into receives them */
export function wholeHash(text: string, seed: number, into: Uint32Array): void {
  let a = 0x811c9dc5 ^ seed;
  let b = 0x1b873593 ^ seed;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    a = Math.imul(a ^ code, 0x85ebca6b);
    b = Math.imul(b ^ code, 0xc2b2ae35);
    // Without rotation, the upper bits of one character would never reach the lower bits of the hash.
    b = (b << 13) | (b >>> 19);
  }
  into[0] = mixed(a ^ (b >>> 15));
  into[1] = mixed(b ^ Math.imul(a, 0x9e3779b1));
}

/** Spreads every bit over all bits. */
function mixed(hash: number): number {
  let h = hash ^ (hash >>> 16);
  h = Math.imul(h, 0x85ebca6b);
  h ^= h >>> 13;
  h = Math.imul(h, 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}
