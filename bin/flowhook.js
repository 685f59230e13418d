#!/usr/bin/env node
// Plain JavaScript, no static import and no top-level await, so that an old Node can print the message below.
const [major] = process.versions.node.split('.');
if (Number(major) < 26) {
  Promise.all([import('./other-node.js'), import('node:url')]).then(
    ([{ runWithOtherNode }, { fileURLToPath }]) => {
      if (runWithOtherNode(fileURLToPath(import.meta.url))) return;
      process.stderr.write(
        `flowhook requires Node 26 or later, found ${process.versions.node}. Install it from https://nodejs.org, or ` +
          'let npm install it with flowhook: run `npm install` again, without --omit=optional.\n',
      );
      process.exitCode = 1;
    },
  );
} else {
  Promise.all([import('./compile-cache.js'), import('node:fs')]).then(
    ([{ openCompileCache }, { existsSync }]) => {
      openCompileCache();
      // An installed package runs the build, because Node does not strip types under node_modules.
      const source = new URL('../src/main.ts', import.meta.url);
      const program = existsSync(source) ? source : new URL('../dist/main.js', import.meta.url);
      return import(program.href).then(({ main }) => main(process.argv));
    },
  );
}
