/** The whole story once more, on PostgreSQL. */
process.env.FLOWHOOK_TEST_STORE = 'postgres';
await import('./life-of-a-job.test.ts');
