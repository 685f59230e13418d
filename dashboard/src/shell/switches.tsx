/** The menus for the colour scheme and the format of times, which the browser remembers. */
import { ActionIcon, Menu, Tooltip, useMantineColorScheme } from '@mantine/core';
import { Icon } from '../parts/icon.tsx';
import { setTimeStyle, type TimeStyle, useTimeStyle } from '../parts/times.ts';

const SCHEMES = { auto: 'Like the system', light: 'Light', dark: 'Dark' } as const;
const TIMES: Record<TimeStyle, string> = { relative: '3 min ago', local: 'Local time', utc: 'UTC' };

export function ThemeSwitch() {
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  return (
    <Choice
      label="Theme"
      icon={colorScheme === 'light' ? 'sun' : 'moon'}
      options={SCHEMES}
      chosen={colorScheme}
      onChoose={setColorScheme}
    />
  );
}

export function TimeSwitch() {
  return (
    <Choice label="Times" icon="clock" options={TIMES} chosen={useTimeStyle()} onChoose={setTimeStyle} />
  );
}

function Choice<Name extends string>({
  label,
  icon,
  options,
  chosen,
  onChoose,
}: {
  label: string;
  icon: 'sun' | 'moon' | 'clock';
  options: Readonly<Record<Name, string>>;
  chosen: Name;
  onChoose: (name: Name) => void;
}) {
  return (
    <Menu position="bottom-end" withinPortal={false}>
      <Menu.Target>
        <Tooltip label={`${label}: ${options[chosen]}`}>
          <ActionIcon aria-label={`${label}: ${options[chosen]}`}>
            <Icon name={icon} />
          </ActionIcon>
        </Tooltip>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>{label}</Menu.Label>
        <Menu.RadioGroup value={chosen} onChange={(name) => onChoose(name as Name)}>
          {(Object.keys(options) as Name[]).map((name) => (
            <Menu.RadioItem key={name} value={name}>
              {options[name]}
            </Menu.RadioItem>
          ))}
        </Menu.RadioGroup>
      </Menu.Dropdown>
    </Menu>
  );
}
