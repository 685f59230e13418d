/** A text field for an expression, which offers names while the user types, and shows the place of a mistake. */
import { Combobox, Text, Textarea, type TextareaProps, useCombobox } from '@mantine/core';
import { type ReactNode, type RefObject, useLayoutEffect, useRef, useState } from 'react';
import { Prose } from '../../../parts/values.tsx';
import { type Known, suggestionsAt } from './completion.ts';
import styles from './rule.module.css';

interface ExpressionInputProps
  extends Pick<TextareaProps, 'label' | 'description' | 'placeholder' | 'minRows'> {
  value: string;
  onChange: (value: string) => void;
  known: Known;
  /** Names are completed only between `${` and `}`. */
  isTemplate?: boolean;
  error: ReactNode;
  inputRef?: RefObject<HTMLTextAreaElement | null>;
}

export function ExpressionInput({
  value,
  onChange,
  known,
  isTemplate = false,
  inputRef,
  ...props
}: ExpressionInputProps) {
  const own = useRef<HTMLTextAreaElement>(null);
  const ref = inputRef ?? own;
  const [at, setAt] = useState(0);
  /** Where the cursor belongs after an option was inserted. */
  const moveTo = useRef<number>(undefined);
  const combobox = useCombobox({ onDropdownClose: () => combobox.resetSelectedOption() });
  const { from, options } = suggestionsAt(value, at, { known, isTemplate });
  const isOpen = combobox.dropdownOpened && options.length > 0;

  useLayoutEffect(() => {
    if (moveTo.current === undefined) return;
    ref.current?.setSelectionRange(moveTo.current, moveTo.current);
    moveTo.current = undefined;
  });

  const insert = (text: string) => {
    moveTo.current = from + text.length;
    setAt(moveTo.current);
    onChange(value.slice(0, from) + text + value.slice(at));
    combobox.closeDropdown();
  };
  return (
    <Combobox store={combobox} onOptionSubmit={insert} position="bottom-start" withinPortal={false}>
      {/* Without options the arrow keys move the cursor. */}
      <Combobox.Target withKeyboardNavigation={isOpen}>
        <Textarea
          ref={ref}
          value={value}
          autosize
          maxRows={16}
          spellCheck={false}
          autoCapitalize="off"
          classNames={{ input: styles.expression }}
          onChange={({ currentTarget }) => {
            const end = currentTarget.selectionStart;
            onChange(currentTarget.value);
            setAt(end);
            combobox.resetSelectedOption();
            const next = suggestionsAt(currentTarget.value, end, { known, isTemplate });
            if (next.from < end) combobox.openDropdown();
            else combobox.closeDropdown();
          }}
          onSelect={({ currentTarget }) => setAt(currentTarget.selectionStart)}
          onKeyDown={(event) => {
            if (event.key !== ' ' || !event.ctrlKey) return;
            event.preventDefault();
            combobox.openDropdown();
          }}
          onBlur={() => combobox.closeDropdown()}
          {...props}
        />
      </Combobox.Target>
      <Combobox.Dropdown hidden={!isOpen}>
        <Combobox.Options mah={240} className={styles.options} aria-label="Names">
          {(isOpen ? options : []).map(({ label, text, help }) => (
            <Combobox.Option key={label} value={text}>
              <span className={styles.option}>
                <Text span ff="monospace" size="xs" className={styles.name}>
                  {label}
                </Text>
                <Text span size="xs" c="dimmed">
                  {help}
                </Text>
              </span>
            </Combobox.Option>
          ))}
        </Combobox.Options>
      </Combobox.Dropdown>
    </Combobox>
  );
}

/** A mistake in an expression: the sentence, and the expression with the wrong part marked. */
export function MistakeText(props: {
  message: string;
  source: string;
  /** Offsets in the source; null if the place is unknown. */
  from: number | null;
  to: number | null;
}) {
  const { message, source, from, to } = props;
  if (from === null || source.length > MAX_MARKED) return <Prose text={message} />;
  const end = Math.max(to ?? from, from + 1);
  return (
    <>
      <Prose text={message} />
      <code className={styles.source}>
        {source.slice(0, from)}
        <mark>{source.slice(from, end) || ' '}</mark>
        {source.slice(end)}
      </code>
    </>
  );
}

/** A longer expression would hide the sentence. */
const MAX_MARKED = 500;
