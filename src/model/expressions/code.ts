/**
 * Turns a parsed expression into functions that evaluate it. The library parses expressions and checks their types;
 * it is not used for evaluation, because there a missing field, a null or a whole number beside a fraction is an error.
 */
import { nearest } from '../../std/nearest.ts';
import { type ExpressionFunction, FUNCTIONS, MACROS, METHODS } from './functions.ts';
import { EvaluationMistake, type ExpressionMistake, mistakeAt, StepsMistake } from './mistakes.ts';
import type { Steps } from './steps.ts';
import {
  type Arithmetic,
  areEqual,
  calculated,
  described,
  fieldOf,
  isObject,
  itemOf,
  numberOf,
  orderOf,
  shortened,
} from './values.ts';

/** A node of the library's syntax tree. */
export interface Node {
  op: string;
  args: unknown;
  start: number;
  end: number;
}

/** What an evaluation reads. */
export interface Context {
  names: Readonly<Record<string, unknown>>;
  /** Values of the names that macros define. */
  locals: unknown[];
  steps: Steps;
}

export type Code = (context: Context) => unknown;

/** Compiles one expression, and collects the names that it reads. */
export class Compiler {
  readonly #source: string;
  readonly #names: readonly string[];
  readonly #locals: string[] = [];
  /** Number of parts that were compiled. */
  #parts = 0;
  /** Names that the expression reads. */
  readonly read = new Set<string>();

  constructor(source: string, names: readonly string[]) {
    this.#source = source;
    this.#names = names;
  }

  /** @throws ExpressionMistake for unknown names and functions */
  code(node: Node): Code {
    this.#parts += 1;
    switch (node.op) {
      case 'value':
        return this.#value(node);
      case 'id':
        return this.#name(node);
      case '.': {
        const [of, key] = node.args as [Node, string];
        const code = this.code(of);
        return (context) => fieldOf(code(context), key);
      }
      case '[]': {
        const [of, key] = this.#pair(node);
        return (context) => itemOf(of(context), key(context));
      }
      case 'call':
        return this.#call(node);
      case 'rcall':
        return this.#method(node);
      case 'list': {
        const items = (node.args as Node[]).map((item) => this.code(item));
        return (context) => items.map((item) => item(context));
      }
      case 'map':
        return this.#map(node);
      case '?:':
        return this.#choice(node);
      case '!_': {
        const condition = this.#condition(node.args as Node);
        return (context) => !condition(context);
      }
      case '-_': {
        const code = this.code(node.args as Node);
        return this.#placed(node, (context) => calculated(0, '-', code(context), context.steps));
      }
      case '&&':
      case '||':
        return this.#logical(node);
      default:
        return this.#operator(node);
    }
  }

  #value(node: Node): Code {
    const { args: value } = node;
    if (typeof value === 'bigint') {
      const number = Number(value);
      return () => number;
    }
    if (typeof value === 'object' && value !== null) {
      throw this.#mistake(
        node,
        `${this.#quoted(node)} is not supported: write "text" or a number without a letter`,
      );
    }
    return () => value;
  }

  #name(node: Node): Code {
    const name = node.args as string;
    const slot = this.#locals.lastIndexOf(name);
    if (slot >= 0) return (context) => context.locals[slot];
    if (!this.#names.includes(name)) {
      const known = [...this.#names, ...this.#locals];
      const isFunction = Object.hasOwn(FUNCTIONS, name) || Object.hasOwn(METHODS, name);
      const advice = isFunction
        ? `; it is a function: ${formOf(name)}`
        : this.#advice(
            name,
            known,
            `the names are ${known.join(', ')}, and fields are read as record.${name}`,
          );
      throw this.#mistake(node, `The name ${this.#quoted(node)} is unknown${advice}`);
    }
    this.read.add(name);
    return (context) => context.names[name] ?? null;
  }

  #call(node: Node): Code {
    const [name, args] = node.args as [string, Node[]];
    const called = Object.hasOwn(FUNCTIONS, name) ? FUNCTIONS[name] : undefined;
    if (called === undefined) throw this.#unknownFunction(node, name);
    this.#checkCount(node, name, called, args.length);
    if (name === 'has') return this.#has(args[0] as Node);
    return this.#run(node, called, args);
  }

  #method(node: Node): Code {
    const [name, receiver, args] = node.args as [string, Node, Node[]];
    const macro = Object.hasOwn(MACROS, name) ? MACROS[name] : undefined;
    const called = Object.hasOwn(METHODS, name) ? METHODS[name] : undefined;
    const found = macro ?? called;
    if (found === undefined) throw this.#unknownFunction(node, name);
    this.#checkCount(node, name, found, args.length);
    if (macro !== undefined) return this.#macro(node, name, receiver, args);
    return this.#run(node, called as ExpressionFunction, [receiver, ...args]);
  }

  #run(node: Node, called: ExpressionFunction, args: readonly Node[]): Code {
    const codes = args.map((arg) => this.code(arg));
    try {
      called.check?.(args.map(literalOf));
    } catch (error) {
      if (error instanceof EvaluationMistake) throw this.#mistake(node, error.message);
      throw error;
    }
    const { ofNull = null } = called;
    return this.#placed(node, (context) => {
      const values: unknown[] = [];
      for (const code of codes) {
        const value = code(context);
        if (value === null) return ofNull;
        context.steps.read(value);
        values.push(value);
      }
      return called.run(values, context.steps);
    });
  }

  #checkCount(
    node: Node,
    name: string,
    called: Pick<ExpressionFunction, 'form' | 'takes'>,
    count: number,
  ): void {
    const [least, most] = called.takes;
    if (count >= least && count <= most) return;
    throw this.#mistake(node, `${name} is called with ${count} arguments, but is written ${called.form}`);
  }

  #unknownFunction(node: Node, name: string): ExpressionMistake {
    const form =
      Object.hasOwn(FUNCTIONS, name) || Object.hasOwn(METHODS, name) || Object.hasOwn(MACROS, name);
    if (form) return this.#mistake(node, `The function ${name} is written ${formOf(name)}`);
    const known = [...Object.keys(FUNCTIONS), ...Object.keys(METHODS), ...Object.keys(MACROS)];
    return this.#mistake(node, `The function "${name}" is unknown${this.#advice(name, known, '')}`);
  }

  #advice(name: string, known: readonly string[], otherwise: string): string {
    const meant = nearest(name, known);
    if (meant !== undefined) return `; did you mean "${meant}"?`;
    return otherwise === '' ? '' : `; ${otherwise}`;
  }

  /** `has(record.a.b)` is true if `record.a` has a field `b`. */
  #has(node: Node): Code {
    if (node.op !== '.') throw this.#mistake(node, `has() takes a field, such as has(record.price)`);
    const [of, key] = node.args as [Node, string];
    const code = this.code(of);
    return (context) => {
      const value = code(context);
      return isObject(value) && Object.hasOwn(value, key);
    };
  }

  #map(node: Node): Code {
    const entries = (node.args as [Node, Node][]).map(([key, value]) => {
      if (typeof literalOf(key) !== 'string')
        throw this.#mistake(key, 'The keys of an object are texts in quotes');
      return [literalOf(key) as string, this.code(value)] as const;
    });
    return (context) => Object.fromEntries(entries.map(([key, value]) => [key, value(context)]));
  }

  #choice(node: Node): Code {
    const [test, first, second] = node.args as [Node, Node, Node];
    const condition = this.#condition(test);
    const yes = this.code(first);
    const no = this.code(second);
    return (context) => (condition(context) ? yes(context) : no(context));
  }

  /** A value that must be true or false. Null counts as false. */
  #condition(node: Node): (context: Context) => boolean {
    const code = this.code(node);
    const quote = this.#quoted(node);
    return (context) => {
      const value = code(context);
      if (typeof value === 'boolean') return value;
      if (value === null) return false;
      throw new EvaluationMistake(`Expects true or false, not ${described(value)}, from ${quote}`);
    };
  }

  /** As the language prescribes, a mistake on one side does not matter if the other side decides. */
  #logical(node: Node): Code {
    const [left, right] = node.args as [Node, Node];
    const one = this.#condition(left);
    const other = this.#condition(right);
    const decides = node.op === '||';
    return (context) => {
      try {
        if (one(context) === decides) return decides;
      } catch (error) {
        if (!canBeIgnored(error) || other(context) !== decides) throw error;
        return decides;
      }
      return other(context);
    };
  }

  #operator(node: Node): Code {
    const [one, other] = this.#pair(node);
    switch (node.op) {
      case '==':
        return (context) => areEqual(one(context), other(context), context.steps);
      case '!=':
        return (context) => !areEqual(one(context), other(context), context.steps);
      case 'in':
        return this.#placed(node, (context) => isIn(one(context), other(context), context.steps));
      case '<':
        return this.#placed(node, (context) => orderOf(one(context), other(context), context.steps) < 0);
      case '<=':
        return this.#placed(node, (context) => orderOf(one(context), other(context), context.steps) <= 0);
      case '>':
        return this.#placed(node, (context) => orderOf(one(context), other(context), context.steps) > 0);
      case '>=':
        return this.#placed(node, (context) => orderOf(one(context), other(context), context.steps) >= 0);
      case '+':
      case '-':
      case '*':
      case '/':
      case '%': {
        const operator: Arithmetic = node.op;
        return this.#placed(node, (context) =>
          calculated(one(context), operator, other(context), context.steps),
        );
      }
      default:
        throw this.#mistake(node, `${this.#quoted(node)} is not supported`);
    }
  }

  #macro(node: Node, name: string, receiver: Node, args: readonly Node[]): Code {
    const list = this.code(receiver);
    const before = this.#parts;
    const [variable] = args as [Node];
    if (variable.op !== 'id') throw this.#mistake(variable, `${name} is written ${formOf(name)}`);
    const slot = this.#locals.push(variable.args as string) - 1;
    const last = args.at(-1) as Node;
    const condition = name === 'map' && args.length === 2 ? undefined : this.#condition(args[1] as Node);
    const value = name === 'map' ? this.code(last) : (context: Context) => context.locals[slot];
    // The slot is not reused: a longer list of names would otherwise hide an earlier value.
    this.#locals[slot] = '';
    const parts = this.#parts - before + 1;
    const test = (item: unknown, context: Context): boolean => {
      context.steps.take(parts);
      context.locals[slot] = item ?? null;
      return condition === undefined || condition(context);
    };
    return this.#placed(node, (context) => {
      const found = list(context);
      if (found === null) return null;
      const items = Array.isArray(found) ? found : isObject(found) ? Object.keys(found) : undefined;
      if (items === undefined) throw new EvaluationMistake(`Expects a list, not ${described(found)}`);
      switch (name) {
        case 'exists':
          return isAny(items, (item) => test(item, context), context.steps);
        case 'all':
          return !isAny(items, (item) => !test(item, context), context.steps);
        case 'exists_one': {
          let count = 0;
          for (const item of items) if (test(item, context)) count += 1;
          return count === 1;
        }
        default: {
          const result: unknown[] = [];
          for (const item of items) if (test(item, context)) result.push(value(context));
          return result;
        }
      }
    });
  }

  #pair(node: Node): [Code, Code] {
    const [one, other] = node.args as [Node, Node];
    return [this.code(one), this.code(other)];
  }

  /** Adds the part of the expression to a mistake. */
  #placed(node: Node, code: Code): Code {
    const quote = this.#quoted(node);
    return (context) => {
      try {
        return code(context);
      } catch (error) {
        if (!(error instanceof EvaluationMistake) || error.isPlaced) throw error;
        error.message += `, in ${quote}`;
        error.isPlaced = true;
        throw error;
      }
    };
  }

  #quoted(node: Node): string {
    return `\`${shortened(this.#source.slice(node.start, node.end))}\``;
  }

  #mistake(node: Node, message: string): ExpressionMistake {
    return mistakeAt(this.#source, message, node);
  }
}

/** JavaScript collects the stack of every error. */
const STEPS_OF_MISTAKE = 50;

/** Whether an item is true of the test. As the language prescribes, a mistake does not matter if another item decides. */
function isAny(items: readonly unknown[], test: (item: unknown) => boolean, steps: Steps): boolean {
  let mistake: unknown;
  for (const item of items) {
    try {
      if (test(item)) return true;
    } catch (error) {
      if (!canBeIgnored(error)) throw error;
      steps.take(STEPS_OF_MISTAKE);
      mistake ??= error;
    }
  }
  if (mistake !== undefined) throw mistake;
  return false;
}

function canBeIgnored(error: unknown): boolean {
  return error instanceof EvaluationMistake && !(error instanceof StepsMistake);
}

function isIn(value: unknown, container: unknown, steps: Steps): boolean {
  if (container === null) return false;
  if (Array.isArray(container)) {
    for (const item of container) {
      steps.take(1);
      if (areEqual(value, item ?? null, steps)) return true;
    }
    return false;
  }
  if (isObject(container)) return typeof value === 'string' && Object.hasOwn(container, value);
  throw new EvaluationMistake(`Expects a list, not ${described(container)}; texts have contains()`);
}

/** The value of a literal, also of a negative number; undefined for any other part. */
function literalOf(node: Node): unknown {
  if (node.op === '-_') {
    const number = literalOf(node.args as Node);
    return typeof number === 'number' ? -number : undefined;
  }
  if (node.op !== 'value') return undefined;
  return typeof node.args === 'bigint' ? Number(node.args) : (numberOf(node.args) ?? node.args ?? undefined);
}

/** How a function is written, for errors. */
export function formOf(name: string): string | undefined {
  const table = [FUNCTIONS, METHODS, MACROS].find((one) => Object.hasOwn(one, name));
  return table?.[name]?.form;
}
