/** `kill -9` at random moments, on PostgreSQL. */
process.env.FLOWHOOK_TEST_STORE = 'postgres';
await import('./crash.test.ts');
