#!/usr/bin/env node
// Plain JavaScript, no static import and no top-level await: an old Node must get as far as the sentence below.
const [major] = process.versions.node.split('.');
if (Number(major) < 26) {
  process.stderr.write(
    `flowhook needs Node 26 or newer, found ${process.versions.node}.\n` +
      'In the repository, `npm ci` installs the right one and `npm start` uses it.\n',
  );
  process.exitCode = 1;
} else {
  import('node:module').then(({ enableCompileCache }) => {
    enableCompileCache();
    return import('../src/main.ts').then(({ main }) => main(process.argv));
  });
}
