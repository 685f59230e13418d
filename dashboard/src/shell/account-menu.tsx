/** The account menu: who is signed in, and signing out. */
import { ActionIcon, Menu } from '@mantine/core';
import { Icon } from '../parts/icon.tsx';
import { signOut, useSession } from '../session.tsx';

export function AccountMenu() {
  const { team, key } = useSession();
  return (
    <Menu position="bottom-end" withinPortal={false}>
      <Menu.Target>
        <ActionIcon aria-label={`Signed in to ${team.name}`}>
          <Icon name="key" />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>
          Team {team.name}
          <br />
          Key {key.name === '' ? key.id : key.name}
          <br />
          May: {key.scopes.join(', ')}
        </Menu.Label>
        <Menu.Item leftSection={<Icon name="signOut" />} onClick={() => void signOut()}>
          Sign out
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
