/** Erasing a person once more, on PostgreSQL. */
process.env.FLOWHOOK_TEST_STORE = 'postgres';
await import('./erase.test.ts');
