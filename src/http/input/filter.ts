/** The query parameter `filter`: an expression that selects events or changes. */
import { MAX_EXPRESSION } from '../../model/rule.ts';
import type { Parameter } from '../route.ts';
import { textParameter } from './query.ts';
import { invalid } from './values.ts';

export type FilterParameter = Parameter & { filterFrom(query: string): Promise<string | undefined> };

/** @param description what is selected */
export function filterParameter(description: string): FilterParameter {
  const { read, ...parameter } = textParameter(
    'filter',
    `${description} (Common Expression Language)`,
    MAX_EXPRESSION,
  );
  return {
    ...parameter,
    example: 'fallsBy(previous.price, record.price, "5%")',
    /** @throws Problem `field_invalid` with the sentence and the place of the first mistake */
    async filterFrom(query) {
      const filter = read(query);
      if (filter !== undefined) await refuseMistakes(filter);
      return filter;
    },
  };
}

/** Loads the libraries for expressions with the first filter. */
async function refuseMistakes(filter: string): Promise<void> {
  const { compile, ExpressionMistake } = await import('../../model/expression.ts');
  try {
    compile(filter);
  } catch (error) {
    if (!(error instanceof ExpressionMistake)) throw error;
    invalid(`The query parameter \`filter\`: ${error.message}`);
  }
}
