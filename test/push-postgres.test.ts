/** Pushes once more, on PostgreSQL. */
process.env.FLOWHOOK_TEST_STORE = 'postgres';
await import('./push.test.ts');
