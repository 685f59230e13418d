/** Parses PromQL with the Prometheus project's own grammar, and returns the metrics and labels in an expression. */
import type { SyntaxNode } from '@lezer/common';
import { parser } from '@prometheus-io/lezer-promql';

/** A metric in an expression. `equals`: the values that a label must have or must not have. */
export interface Selected {
  metric: string;
  labels: string[];
  equals: { label: string; value: string }[];
}

/** The metrics in an expression, and the labels by which it groups or matches. */
export interface Reading {
  selected: Selected[];
  grouping: string[];
}

/** @throws Error if the expression is invalid */
export function readExpression(expression: string): Reading {
  const selected: Selected[] = [];
  const grouping: string[] = [];
  const text = (node: SyntaxNode | null) => (node === null ? '' : expression.slice(node.from, node.to));
  parser.parse(expression).iterate({
    enter({ name, type, node }) {
      if (type.isError) throw new Error(`The expression does not parse at ${node.from}: ${expression}`);
      if (name === 'VectorSelector') {
        const matchers = node.getChild('LabelMatchers')?.getChildren('UnquotedLabelMatcher') ?? [];
        selected.push({
          metric: text(node.getChild('Identifier')),
          labels: matchers.map((one) => text(one.getChild('LabelName'))),
          equals: matchers.flatMap((one) =>
            /^!?=$/.test(text(one.getChild('MatchOp')))
              ? [
                  {
                    label: text(one.getChild('LabelName')),
                    value: text(one.getChild('StringLiteral')).slice(1, -1),
                  },
                ]
              : [],
          ),
        });
      }
      if (name === 'GroupingLabels') grouping.push(...node.getChildren('LabelName').map(text));
    },
  });
  if (selected.length === 0) throw new Error(`The expression names no metric: ${expression}`);
  return { selected, grouping };
}
