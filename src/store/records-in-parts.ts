/** Staging and removing records in as many transactions as they take: each touches some 1 MiB of them at most. */
import type { RecordOperations } from './record-operations.ts';

type Parts = {
  stage(input: Parameters<RecordOperations['stage']>[0]): Promise<{ seqs: number[] }>;
  remove(input: Parameters<RecordOperations['remove']>[0]): Promise<{ dealtWith: number }>;
};

/** @param parts deal with the first records of a batch, one at least */
export function inTransactions(parts: Parts): Pick<RecordOperations, 'stage' | 'remove'> {
  return {
    async stage({ held, writes }) {
      const seqs: number[] = [];
      do {
        const part = await parts.stage({ held, writes: writes.slice(seqs.length) });
        seqs.push(...part.seqs);
      } while (seqs.length < writes.length);
      return { seqs };
    },
    async remove({ held, seqs }) {
      let left = seqs;
      do {
        const { dealtWith } = await parts.remove({ held, seqs: left });
        left = left.slice(dealtWith);
      } while (left.length > 0);
    },
  };
}
