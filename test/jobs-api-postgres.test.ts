/** Jobs through the front door once more, on PostgreSQL. */
process.env.FLOWHOOK_TEST_STORE = 'postgres';
await import('./jobs-api.test.ts');
