/** A reporter for `node --test`: the files in which something failed, a line each, for whoever runs them once more. */
import { relative } from 'node:path';

interface TestEvent {
  type: string;
  /** `entryFile` is the file that was run, where `file` may be one that makes cases for several. */
  data: { file?: string; entryFile?: string };
}

export default async function* failedFiles(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const told = new Set<string>();
  for await (const { type, data } of events) {
    const file = data.entryFile ?? data.file;
    if (type !== 'test:fail' || file === undefined || told.has(file)) continue;
    told.add(file);
    yield `${relative(process.cwd(), file)}\n`;
  }
}
