/** n8n's own rules: for what n8n Cloud lets run, and for how nodes describe themselves. */
import { n8nCommunityNodesPlugin } from '@n8n/eslint-plugin-community-nodes';
import nodesBase from 'eslint-plugin-n8n-nodes-base';
import tseslint from 'typescript-eslint';

export default tseslint.config(
  { ignores: ['dist/', 'node_modules/', 'test/', 'eslint.config.mjs', 'tsconfig.json', 'package-lock.json'] },
  {
    files: ['**/*.ts', 'package.json'],
    languageOptions: { parser: tseslint.parser, parserOptions: { extraFileExtensions: ['.json'] } },
  },
  { files: ['**/*.ts'], ...n8nCommunityNodesPlugin.configs.recommended },
  { files: ['package.json'], ...n8nCommunityNodesPlugin.configs.recommended },
  {
    files: ['package.json'],
    plugins: { 'n8n-nodes-base': nodesBase },
    rules: nodesBase.configs.community.rules,
  },
  {
    files: ['credentials/**/*.ts'],
    plugins: { 'n8n-nodes-base': nodesBase },
    rules: nodesBase.configs.credentials.rules,
  },
  {
    files: ['credentials/**/*.ts'],
    // The README of this folder has no public address of its own.
    rules: { 'n8n-nodes-base/cred-class-field-documentation-url-missing': 'off' },
  },
  {
    files: ['nodes/**/*.ts'],
    plugins: { 'n8n-nodes-base': nodesBase },
    rules: nodesBase.configs.nodes.rules,
  },
  {
    files: ['nodes/**/*.ts'],
    // They want `['main']`, which n8n's types and its newer rules do not let pass.
    rules: {
      'n8n-nodes-base/node-class-description-inputs-wrong-regular-node': 'off',
      'n8n-nodes-base/node-class-description-outputs-wrong': 'off',
    },
  },
  // This package is private: whoever publishes it names the page that it has then.
  { files: ['package.json'], rules: { '@n8n/community-nodes/require-homepage': 'off' } },
);
