export const submit = 1;
