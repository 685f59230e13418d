/** `kill -9` at random moments once more, on PostgreSQL. */
process.env.FLOWHOOK_TEST_STORE = 'postgres';
await import('./crash.test.ts');
