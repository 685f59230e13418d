/** n8n's own rules: what n8n Cloud allows, and how nodes describe themselves. */
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
    // This rule is for names of pages in n8n's own documentation.
    rules: { 'n8n-nodes-base/cred-class-field-documentation-url-miscased': 'off' },
  },
  {
    files: ['nodes/**/*.ts'],
    plugins: { 'n8n-nodes-base': nodesBase },
    rules: nodesBase.configs.nodes.rules,
  },
  {
    files: ['nodes/**/*.ts'],
    // These rules require `['main']`, which n8n's types and newer rules reject.
    rules: {
      'n8n-nodes-base/node-class-description-inputs-wrong-regular-node': 'off',
      'n8n-nodes-base/node-class-description-outputs-wrong': 'off',
    },
  },
);
