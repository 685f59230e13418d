/** The query parameter `filter`: an expression that selects events or changes. */
import { compile, ExpressionMistake, MAX_EXPRESSION } from '../../model/expression.ts';
import { type QueryParameter, textParameter } from './query.ts';
import { invalid } from './values.ts';

/** @param description what is selected */
export function filterParameter(description: string): QueryParameter<string> {
  const parameter = textParameter('filter', `${description} (Common Expression Language)`, MAX_EXPRESSION);
  return {
    ...parameter,
    example: 'fallsBy(previous.price, record.price, "5%")',
    read(query) {
      const filter = parameter.read(query);
      if (filter !== undefined) refuseMistakes(filter);
      return filter;
    },
  };
}

/** @throws Problem `field_invalid` with the sentence and the place of the first mistake */
function refuseMistakes(filter: string): void {
  try {
    compile(filter);
  } catch (error) {
    if (!(error instanceof ExpressionMistake)) throw error;
    invalid(`The query parameter \`filter\`: ${error.message}`);
  }
}
