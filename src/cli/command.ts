/** The commands of the program: those of commander, with examples and the values of flags. */
import { Command as PlainCommand } from 'commander';

export class Command extends PlainCommand {
  declare readonly commands: readonly Command[];
  /** Calls without `flowhook` in front, unless another program comes before it. The help of a noun shows the first. */
  examples: readonly string[] = [];
  /** The values that shells complete after a flag. */
  readonly values = new Map<string, readonly string[]>();

  override createCommand(name?: string): Command {
    return new Command(name);
  }

  /** Every command without subcommands needs at least one example. */
  withExamples(...examples: string[]): this {
    this.examples = examples;
    return this;
  }

  /** In a comma-separated list, only the first value is completed. */
  withValues(flag: string, values: readonly string[]): this {
    this.values.set(flag, values);
    return this;
  }
}
