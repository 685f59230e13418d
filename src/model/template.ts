/** Templates: JSON whose strings may hold `${…}` expressions. */
import {
  compilePart,
  EvaluationMistake,
  type Expression,
  ExpressionMistake,
  type Names,
} from './expression.ts';
import { Steps } from './expressions/steps.ts';
import { countWriting, textOf } from './expressions/values.ts';

/** Maximum size of a template, and of what it makes, in bytes of JSON. */
const MAX_TEMPLATE_BYTES = 16_384;
const MAX_RESULT_BYTES = 262_144;
/** Maximum number of expressions in one template. */
const MAX_EXPRESSIONS = 200;
/** Maximum depth of lists and objects in a template. */
const MAX_LEVELS = 20;

/** What a template reads: the names of filters for the first difference, and all differences. */
export interface TemplateNames extends Names {
  differences: unknown;
}

export interface Template {
  /** @returns JSON text. @throws EvaluationMistake, after a few milliseconds at most */
  body(names: TemplateNames): string;
}

type Part = (names: TemplateNames, steps: Steps) => unknown;

/** @throws ExpressionMistake with a sentence that names the place in the template */
export function compileTemplate(template: unknown): Template {
  if (Buffer.byteLength(JSON.stringify(template) ?? '') > MAX_TEMPLATE_BYTES) {
    throw mistake(`A template has at most ${MAX_TEMPLATE_BYTES / 1_024} KiB of JSON`);
  }
  const part = new TemplateCompiler().part(template, '', 1);
  return {
    body(names) {
      const body = JSON.stringify(part(names, new Steps()));
      if (Buffer.byteLength(body) <= MAX_RESULT_BYTES) return body;
      throw new EvaluationMistake(`The template makes a body of more than ${MAX_RESULT_BYTES / 1_024} KiB`);
    },
  };
}

class TemplateCompiler {
  #expressions = 0;

  part(value: unknown, path: string, level: number): Part {
    if (level > MAX_LEVELS) throw mistake(`A template has at most ${MAX_LEVELS} levels`);
    if (typeof value === 'string') return this.#text(value, path);
    if (Array.isArray(value)) {
      const items = value.map((item, at) => this.part(item, `${path}[${at}]`, level + 1));
      return (names, steps) => items.map((item) => item(names, steps));
    }
    if (typeof value !== 'object' || value === null || JSON.isRawJSON(value)) return () => value;
    const fields = Object.entries(value).map(
      ([key, item]) => [key, this.part(item, path === '' ? key : `${path}.${key}`, level + 1)] as const,
    );
    return (names, steps) => Object.fromEntries(fields.map(([key, item]) => [key, item(names, steps)]));
  }

  /** A string that is only `${…}` becomes the value; other strings stay text. */
  #text(text: string, path: string): Part {
    const pieces = piecesOf(text, path).map((piece) =>
      typeof piece === 'string' ? piece : this.#expression(piece.source, path),
    );
    const [only] = pieces;
    if (pieces.length === 1 && typeof only === 'object') {
      return (names, steps) => {
        const value = only.evaluate(names, steps) ?? null;
        countWriting(value, steps);
        return value;
      };
    }
    return (names, steps) =>
      pieces
        .map((piece) => (typeof piece === 'string' ? piece : textOf(piece.evaluate(names, steps), steps)))
        .join('');
  }

  #expression(source: string, path: string): Expression {
    this.#expressions += 1;
    if (this.#expressions > MAX_EXPRESSIONS)
      throw mistake(`A template has at most ${MAX_EXPRESSIONS} expressions`);
    try {
      return compilePart(source);
    } catch (error) {
      if (error instanceof ExpressionMistake) throw mistake(`${error.message}, in \${${source}}${at(path)}`);
      throw error;
    }
  }
}

/** Splits a string into texts and expressions. `$${` is a literal `${`. */
function piecesOf(text: string, path: string): (string | { source: string })[] {
  const pieces: (string | { source: string })[] = [];
  let plain = '';
  for (let index = 0; index < text.length; ) {
    if (text.startsWith('$${', index)) {
      plain += '${';
      index += 3;
    } else if (text.startsWith('${', index)) {
      const end = endOfExpression(text, index + 2);
      if (end === undefined) throw mistake(`A \${ has no closing }${at(path)}`);
      if (plain !== '') pieces.push(plain);
      plain = '';
      pieces.push({ source: text.slice(index + 2, end) });
      index = end + 1;
    } else {
      plain += text[index];
      index += 1;
    }
  }
  if (plain !== '' || pieces.length === 0) pieces.push(plain);
  return pieces;
}

/** Position of the `}` that closes an expression; braces in strings and objects do not. */
function endOfExpression(text: string, from: number): number | undefined {
  let depth = 0;
  let quote = '';
  for (let index = from; index < text.length; index += 1) {
    const character = text[index] as string;
    if (quote !== '') {
      if (character === '\\') index += 1;
      else if (character === quote) quote = '';
    } else if (character === '"' || character === "'") quote = character;
    else if (character === '{') depth += 1;
    else if (character === '}') {
      if (depth === 0) return index;
      depth -= 1;
    }
  }
  return undefined;
}

function at(path: string): string {
  return path === '' ? '' : ` of ${path}`;
}

function mistake(message: string): ExpressionMistake {
  return new ExpressionMistake(message, { from: 0, to: 0 });
}
