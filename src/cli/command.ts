/** Commander's `Command` class, extended with examples for the help and with values for shell completion. */
import { Command as PlainCommand } from 'commander';

export class Command extends PlainCommand {
  declare readonly commands: readonly Command[];
  /**
   * An example omits the leading `flowhook`, unless another program comes first. `flowhook jobs --help`, like the help of
   * any noun, shows only the first example of each command.
   */
  examples: readonly string[] = [];
  /** The values that shell completion offers for each flag. */
  readonly values = new Map<string, readonly string[]>();

  override createCommand(name?: string): Command {
    return new Command(name);
  }

  /** Every command without subcommands needs at least one example. */
  withExamples(...examples: string[]): this {
    this.examples = examples;
    return this;
  }

  /**
   * Sets the values that shell completion offers for a flag. In a comma-separated list, only the first value is
   * completed.
   */
  withValues(flag: string, values: readonly string[]): this {
    this.values.set(flag, values);
    return this;
  }
}
