/** Reading a part of a version, or what changed, once more, on PostgreSQL. */
process.env.FLOWHOOK_TEST_STORE = 'postgres';
await import('./read-query.test.ts');
