/** In the place of the operations, while the description is on its way. */
import { Skeleton, Stack } from '@mantine/core';

const ROWS = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j'];

export function Waiting() {
  return (
    <Stack gap={6} aria-busy="true">
      <Skeleton h={30} w={240} mb="sm" />
      {ROWS.map((row) => (
        <Skeleton key={row} h={40} />
      ))}
    </Stack>
  );
}
