#!/usr/bin/env node
// Plain JavaScript, no static import and no top-level await, so that an old Node can print the message below.
const [major] = process.versions.node.split('.');
if (Number(major) < 26) {
  import('./other-node.js').then(({ runWithOtherNode }) => {
    if (runWithOtherNode()) return;
    process.stderr.write(
      `flowhook requires Node 26 or later, found ${process.versions.node}. Install it from https://nodejs.org, or ` +
        'let npm install it with flowhook: run `npm install` again, without --omit=optional.\n',
    );
    process.exitCode = 1;
  });
} else {
  // `require`, because importing a module of Node also loads the parts that it loads only on demand: 5 ms for node:fs.
  const require = process.getBuiltinModule('node:module').createRequire(import.meta.url);
  const { existsSync, readFileSync } = require('node:fs');
  const manifest = new URL('../package.json', import.meta.url);
  // The version needs no other code. Inside the executable there is no such file, so the program prints the version.
  if (/^(--version|-V)$/.test(process.argv[2]) && existsSync(manifest)) {
    process.stdout.on('error', () => {});
    process.stdout.write(`${JSON.parse(readFileSync(manifest, 'utf8')).version}\n`);
  } else {
    require('./compile-cache.cjs').openCompileCache();
    // An installed package runs the build, because Node does not strip types under node_modules.
    const source = new URL('../src/main.ts', import.meta.url);
    if (existsSync(source)) import(source.href).then(({ main }) => main(process.argv));
    else require('../dist/main.cjs').main(process.argv);
  }
}
