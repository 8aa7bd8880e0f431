/** How Vite builds and serves the portal (`npm run portal:build`, `npm run portal`). */
import { join } from 'node:path'
import optimizeLocales from '@react-aria/optimize-locales-plugin'
import react from '@vitejs/plugin-react'
import { defineConfig, loadEnv } from 'vite'
import { compressFiles } from './compress.ts'

const PORTAL = join(import.meta.dirname, '..')

/** The locales that have texts: those of the component library without a text of ours are left out. */
const LOCALES = ['en-US', 'de-DE']

/** The API server that the development server passes requests to, unless `SVCCLOUD_URL` names another one. */
const API_URL = 'http://127.0.0.1:8080'
const API_PATHS = ['/v1', '/docs', '/openapi.json', '/mcp']

const apiUrlFor = (mode: string): string => loadEnv(mode, PORTAL, 'SVCCLOUD_URL')['SVCCLOUD_URL'] ?? API_URL

/** Packages of the component library. */
const ARIA = [
  '@internationalized',
  '@react-aria',
  '@react-stately',
  '@react-types',
  'react-aria',
  'react-aria-components',
  'react-stately',
]
/** Requests, their cache, and routes. */
const DATA = [
  '@tanstack/history',
  '@tanstack/query-core',
  '@tanstack/react-query',
  '@tanstack/react-router',
  '@tanstack/react-store',
  '@tanstack/router-core',
  '@tanstack/store',
  'openapi-fetch',
]
/** Modules of the packages, or of scopes of packages. */
const chunkOf = (packages: readonly string[]): RegExp => new RegExp(`node_modules/(${packages.join('|')})/`)

/** Parts that no list needs: codes for cameras, charts, notes of fields, secrets, files, the palette, operations, and
 *  forms with their dry runs and commands. */
const OF_FEW = [
  'activity',
  'ask',
  'chart',
  'dry-run',
  'export',
  'manifest',
  'more',
  'notes',
  'once',
  'palette',
  'qr',
  'recovery-codes',
  'request-key',
  'save-file',
  'second-factor',
  'secret',
  'snippet',
  'unread',
]
/** The other parts of the portal that belong to no noun, and icons: a few lines each. */
const SHARED = new RegExp(
  `portal/(?:(?:api|pages|shell|texts|ui)/|nouns/(?=[^/]+$))(?!(?:${OF_FEW.join('|')})\\.)|lucide-react/`,
)

/** A page for each listener of the API server. */
const entries = ['index.html', 'operator.html'].map((name) => join(PORTAL, name))

export default defineConfig(({ mode }) => ({
  root: PORTAL,
  plugins: [{ ...optimizeLocales.vite({ locales: LOCALES }), enforce: 'pre' }, react(), compressFiles()],
  build: {
    target: 'es2023',
    emptyOutDir: true,
    // Which chunk belongs to which module: tests measure what a page loads.
    manifest: true,
    reportCompressedSize: false,
    // The policy of the pages allows no script and no font in an address.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rolldownOptions: {
      input: entries,
      output: {
        codeSplitting: {
          groups: [
            { name: 'react', test: chunkOf(['react', 'react-dom', 'scheduler']), priority: 3 },
            { name: 'aria', test: chunkOf(ARIA), priority: 2 },
            { name: 'data', test: chunkOf(DATA), priority: 1 },
            // What pages share: one request instead of one for each combination of pages.
            { name: 'shared', test: SHARED, minShareCount: 2 },
          ],
        },
      },
    },
  },
  server: {
    proxy: Object.fromEntries(API_PATHS.map((path) => [path, { target: apiUrlFor(mode), changeOrigin: true }])),
  },
}))
