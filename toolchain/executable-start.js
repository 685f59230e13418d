// The first module of the executable. No top-level await, because it is loaded with `require`.
const [, , option, program] = process.argv;
import(option === '--own-program' ? `./dist/${program}.cjs` : './bin/flowhook.js');
