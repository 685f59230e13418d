/** A hash to compare texts within a process. It is not secure, and never stored. */

/** Two hashes of 32 bits, of the whole text. @param into receives them */
export function textHash(text: string, seed: number, into: Int32Array): void {
  const { length } = text;
  let a = seed ^ length;
  let b = ~seed;
  let at = 0;
  // Two characters at a time take half as long as one.
  for (; at + 1 < length; at += 2) {
    const pair = text.charCodeAt(at) | (text.charCodeAt(at + 1) << 16);
    a = Math.imul(a ^ pair, 0x85ebca6b);
    // Without shifts, the upper bits of a pair would never reach the lower bits of the hash.
    a ^= a >>> 15;
    b = Math.imul(b ^ pair, 0xc2b2ae35);
    b ^= b >>> 13;
  }
  if (at < length) {
    a = Math.imul(a ^ text.charCodeAt(at), 0x85ebca6b);
    b = Math.imul(b ^ text.charCodeAt(at), 0xc2b2ae35);
  }
  into[0] = mixed(a);
  into[1] = mixed(b ^ 0x1b873593);
}

/** Spreads every bit over all bits (the end of MurmurHash3). */
function mixed(hash: number): number {
  let h = hash ^ (hash >>> 16);
  h = Math.imul(h, 0x85ebca6b);
  h ^= h >>> 13;
  h = Math.imul(h, 0xc2b2ae35);
  return h ^ (h >>> 16);
}
