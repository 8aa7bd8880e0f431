import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { documentFindings, exportFindings, findings, placeFindings, IMPORTS, tidy } from '../../tools/tidy.ts'

const rules = (file: string, source: string) => findings(file, source).map((finding) => finding.rule)

describe('the import table', () => {
  it.each(Object.entries(IMPORTS))('names each path of %s once', (_folder, { paths }) => {
    expect(new Set(paths).size).toBe(paths.length)
  })

  it.each([
    ['domain/quota.ts', `import { z } from 'zod'`, 'domain never imports zod'],
    ['domain/quota.ts', `import { open } from '../db/open.ts'`, 'domain never imports db/open.ts'],
    [
      'resources/server/stored.ts',
      `import { client } from '../../kit/kube/client.ts'`,
      'resources never imports kit/kube/client.ts',
    ],
    [
      'kit/http/call.ts',
      `import type { Server } from '../../resources/server/stored.ts'`,
      'kit never imports resources/server/stored.ts',
    ],
    [
      'db/audit/index.ts',
      `import {\n  a,\n  b,\n} from '../../resources/server/stored.ts'`,
      'db never imports resources/server/stored.ts',
    ],
    ['controllers/main.ts', `import express from 'express'`, 'controllers never imports express'],
    ['portal/main.tsx', `import { z } from 'zod'`, 'portal never imports zod'],
    ['portal/main.tsx', `import { join } from 'node:path'`, 'portal never imports node:path'],
    [
      'portal/nouns/server/list.tsx',
      `import { Server } from '../../../resources/server/index.ts'`,
      'portal never imports resources/server/index.ts',
    ],
    [
      'embedded/up.ts',
      `import { Frame } from '../portal/shell/frame.tsx'`,
      'embedded never imports portal/shell/frame.tsx',
    ],
    [
      'agents/node/main.ts',
      `import { Server } from '../../resources/server/stored.ts'`,
      'agents never imports resources/server/stored.ts',
    ],
    ['agents/node/main.ts', `const db = await import('../../db/open.ts')`, 'agents never imports db/open.ts'],
    [
      'embedded/postgres.ts',
      `export { Server } from '../resources/server/index.ts'`,
      'embedded never imports resources/server/index.ts',
    ],
    [
      'kit/http/call.ts',
      `import { DEFAULT_QUOTAS } from '../../domain/account/quota.ts'`,
      'kit never imports domain/account/quota.ts',
    ],
    [
      'controllers/kit/plan.ts',
      `import { plan } from '../nouns/server/index.ts'`,
      'controllers/kit never imports controllers/nouns/server/index.ts',
    ],
    [
      'hosting/pods/host.ts',
      `import { programs } from '../processes/programs.ts'`,
      'hosting/pods never imports hosting/processes/programs.ts',
    ],
    [
      'changes/router.ts',
      `import { networkChanges } from './network.ts'`,
      'changes/router.ts knows no other changes, as changes/network.ts',
    ],
  ])('%s: %s', (file, source, rule) => expect(rules(file, source)).toEqual([rule]))

  it.each([
    ['resources/server/routes.ts', `import { route } from '../../kit/http/route.ts'`],
    ['kit/http/respond.ts', `import { Problem } from '../../domain/problem.ts'`],
    ['agents/node/plan.ts', `import type { InstanceSpec } from '../../resources/instance/index.ts'`],
    ['embedded/up.ts', `import { main } from '../apiserver/main.ts'`],
    ['changes/index.ts', `import { networkChanges } from './network.ts'`],
    ['apiserver/nouns/server/index.ts', `import { noun } from '../../kit/noun.ts'`],
    ['controllers/nouns/server/index.ts', `import { openOvn } from '../../network/ovn/ovn.ts'`],
    ['hosting/pods/host.ts', `import { openHost } from '../core/planes.ts'`],
    ['portal/main.tsx', `import { createRoot } from 'react-dom/client'`],
    ['portal/main.tsx', `import { CUSTOMER_ROLES } from '../domain/permissions.ts'`],
    ['portal/build/compress.ts', `import { gzip } from 'node:zlib'`],
    ['test/db/audit.database.test.ts', `import { open } from '../../db/open.ts'`],
  ])('%s may: %s', (file, source) => expect(rules(file, source)).toEqual([]))
})

describe('time, randomness and the process', () => {
  it.each([
    ['const at = new Date()', 'the time comes from a Clock'],
    ['const at = Date.now()', 'the time comes from a Clock'],
    ['setTimeout(work, 5)', 'waiting is done by a Clock'],
    ['fetch(url, { signal: AbortSignal.timeout(5) })', 'waiting is done by a Clock'],
    ['const id = randomUUID()', 'randomness comes from a Random'],
    ['const port = Number(process.env.PORT)', 'the process is reached through kit/sys/process.ts'],
    ['const line = `${process.pid}`', 'the process is reached through kit/sys/process.ts'],
  ])('%s', (source, rule) => {
    expect(rules('controllers/server/plan.ts', source)).toEqual([rule])
    expect(rules('kit/sys/clock.ts', source)).toEqual([])
  })

  it.each([
    'const text = await response.text()',
    'const value = await (await fetch(url)).json()',
    'for await (const line of createInterface({ input: socket })) take(line)',
    "for await (const chunk of response.setEncoding('utf8')) text += String(chunk)",
  ])('another process may not send without bounds: %s', (source) => {
    const rule = 'what another process sends is read by kit/http/bounded.ts'
    expect(rules('controllers/server/plan.ts', source)).toEqual([rule])
    expect(rules('kit/http/bounded.ts', source)).toEqual([])
  })

  it.each([
    'new Date(at)',
    '// never Date.now()',
    `log.info('process.exit was called')`,
    'child.process.kill()',
    'clock.setTimeout',
  ])('%s is fine', (source) => {
    expect(rules('controllers/server/plan.ts', source)).toEqual([])
  })
})

it.each([
  'const price = (cents / 100).toFixed(2)',
  'const date = at.toLocaleDateString()',
  "const sum = new Intl.NumberFormat('en').format(sum)",
  "const note = 'EUR 249 of credit'",
  'const note = <p>{price} €</p>',
])('the portal writes amounts in one place: %s', (source) => {
  expect(rules('portal/pages/billing.tsx', source)).toEqual([
    'money, numbers and dates are written by portal/texts/format.ts',
  ])
  expect(rules('portal/texts/format.ts', source)).toEqual([])
  expect(rules('domain/mail/write.ts', source)).toEqual([])
})

it.each([
  'element.innerHTML = name',
  'const row = <td dangerouslySetInnerHTML={{ __html: name }} />',
  'document.write(name)',
  "const add = new Function('a', 'b', body)",
  'eval(text)',
])('no text becomes markup in the portal: %s', (source) => {
  expect(rules('portal/nouns/server/list.tsx', source)).toEqual(['no text becomes markup or code'])
  expect(rules('apiserver/identity/pages.ts', source)).toEqual([])
})

it('names what it exports, but where a tool reads the default', () => {
  expect(rules('portal/shell/frame.tsx', 'export default Frame')).toEqual(['exports are named'])
  expect(rules('portal/build/vite.config.ts', 'export default config')).toEqual([])
})

it('names files for what is inside', () => {
  expect(rules('kit/http/readBody.ts', '')).toEqual(['files are named in kebab-case, tests by their tier'])
  expect(rules('kit/http/utils.ts', '')).toEqual(['a name says what is inside'])
  expect(rules('test/db/audit.slow.test.ts', '')).toEqual(['files are named in kebab-case, tests by their tier'])
})

it('keeps every line within 120 columns, comments and strings too', () => {
  expect(rules('domain/quota.ts', `// ${'x'.repeat(117)}`)).toEqual([])
  expect(rules('domain/quota.ts', `// ${'x'.repeat(118)}`)).toEqual(['a line has at most 120 columns'])
  expect(rules('client/schema.ts', `// ${'x'.repeat(118)}`)).toEqual([])
})

describe('nouns', () => {
  const files = new Set(['db/server/index.ts', 'db/server/claims.ts', 'db/placement/placement.ts'])
  const faults = (file: string, specifier: string) =>
    findings(file, `import { a } from '${specifier}'`, files).map(({ rule }) => rule)

  it('are reached through their index within a layer', () => {
    expect(faults('db/node/nodes.ts', '../server/claims.ts')).toEqual([
      'db/server/claims.ts is reached through db/server/index.ts',
    ])
    expect(faults('db/open.ts', './server/claims.ts')).toHaveLength(1)
    expect(faults('db/node/nodes.ts', '../server/index.ts')).toEqual([])
  })

  it('are so in their folder of folders too', () => {
    const nouns = new Set(['apiserver/nouns/server/index.ts', 'apiserver/nouns/server/deep/index.ts'])
    const fault = (file: string, specifier: string) =>
      findings(file, `import { a } from '${specifier}'`, nouns).map(({ rule }) => rule)
    expect(fault('apiserver/nouns/node/nodes.ts', '../server/create.ts')).toEqual([
      'apiserver/nouns/server/create.ts is reached through apiserver/nouns/server/index.ts',
    ])
    expect(fault('apiserver/nouns/server/create.ts', './deep/one.ts')).toEqual([])
  })

  it('see all of themselves, and everything that is no noun', () => {
    expect(faults('db/server/sizes.ts', './claims.ts')).toEqual([])
    expect(faults('db/server/sizes.ts', '../placement/placement.ts')).toEqual([])
    expect(faults('apiserver/server/create.ts', '../../db/server/claims.ts')).toEqual([])
    expect(faults('test/db/server/claims.database.test.ts', '../../../db/server/claims.ts')).toEqual([])
  })
})

describe('places', () => {
  const found = (...files: readonly string[]) =>
    placeFindings(new Set(files)).map(({ file, rule }) => `${file}: ${rule}`)
  const SERVER = ['resources/server/index.ts', 'domain/server/rules.ts', 'apiserver/nouns/server/index.ts']

  it.each([
    ['controllers/standing.ts', 'controllers/standing.ts: controllers/ has no file beside its folders but its lists'],
    ['hosting/host.ts', 'hosting/host.ts: hosting/ has no file beside its folders but its lists'],
    ['domain/vehicle/rules.ts', 'domain/vehicle/rules.ts: vehicle has a folder of its name in resources/ or db/'],
    ['controllers/nouns/server/plan.ts', 'controllers/nouns/server/plan.ts: a noun has an index.ts'],
    ['kit/server/pool.ts', 'kit/server/pool.ts: kit has no noun, as server'],
  ])('%s has none', (file, finding) => expect(found(...SERVER, file)).toEqual([finding]))

  it('are known of lists, of nouns, and of what a layer shares', () => {
    expect(
      found(
        ...SERVER,
        'apiserver/nouns.ts',
        'domain/problem.ts',
        'kit/sys/clock.ts',
        'controllers/nouns/zone/index.ts',
      ),
    ).toEqual([])
  })
})

describe('casts', () => {
  const reason = 'a cast has its reason on the line or above it'

  it.each([
    'const a = b as string',
    'const a = `${b as string} as you like`',
    '// why\n\nconst a = b as string',
    'const a = (b as unknown as string).length',
  ])('%s has no reason', (source) => expect(new Set(rules('db/open.ts', source))).toEqual(new Set([reason])))

  it.each([
    'const a = b as string // why',
    '// why\nconst a = b as string',
    'const a = [b] as const',
    `import { a as b } from './b.ts'\nimport * as c from './c.ts'`,
    'const a = sql`select 1 as a`',
  ])('%s is fine', (source) => expect(rules('db/open.ts', source)).toEqual([]))

  it('are the business of a test', () => expect(rules('test/db/open.test.ts', 'const a = b as string')).toEqual([]))
})

it('lets no test be singled out and nothing unfinished stay', () => {
  expect(rules('test/a.test.ts', `it.${'only'}('x')`)).toEqual(['no test is switched off or singled out'])
  expect(rules('db/open.ts', `// TO${'DO'} later`)).toEqual(['unfinished work is not committed'])
})

it('knows names that are participles', () => {
  expect(rules('db/open.ts', 'const made = 1')).toEqual(['names of values are nouns: not "made"'])
  expect(rules('test/a.test.ts', 'const made = 1')).toEqual([])
})

it('knows fields that are spread by hand', () => {
  const spread = (condition: string, field: string) =>
    `const a = { ...(${condition} === undefined ? {} : { ${field} }) }`
  const rule = ['fields that may be undefined are spread by defined of domain/defined.ts']
  expect(rules('db/open.ts', spread('b', 'b'))).toEqual(rule)
  expect(rules('test/a.test.ts', spread('b.c', 'd: b.c'))).toEqual(rule)
  expect(rules('db/open.ts', spread('b', 'c: f(b)'))).toEqual([])
  expect(rules('client/index.ts', spread('b', 'b'))).toEqual([])
})

it('says the line', () => {
  expect(findings('db/open.ts', '/* a\n b */\nconst a = 1\nconst b = Date.now()')).toEqual([
    { file: 'db/open.ts', line: 4, rule: 'the time comes from a Clock' },
  ])
})

it.each([
  ['prose', 'docs/a.md', `${'a '.repeat(60)}b`, [1]],
  ['an item', 'a.md', `- ${'a '.repeat(60)}`, [1]],
  ['prose after code', 'a.md', `~~~\n\`\`\`\n~~~\n\n${'a '.repeat(61)}`, [5]],
  ['prose of 120 columns', 'a.md', 'ä'.repeat(120), []],
  ['code', 'a.md', `\`\`\`sh\n${'a '.repeat(61)}\n\`\`\``, []],
  ['a table', 'a.md', `| ${'a '.repeat(61)} |`, []],
  ['a generated document', 'charts/svccloud/README.md', 'a '.repeat(61), []],
  ['a drawing in a block of code', 'a.md', '```text\n┌─┐\n```', []],
  ['a drawing that lost its block', 'a.md', '\n┌─┐\n│ │', [2, 3]],
])('holds %s in a document to its layout', (_what, file, source, lines) => {
  expect(documentFindings(file, source).map(({ line }) => line)).toEqual(lines)
})

it('looks at every source and document below a folder, and not at those of dependencies', async () => {
  const root = await mkdtemp(join(tmpdir(), 'svccloud-tidy-'))
  onTestFinished(() => rm(root, { recursive: true, force: true }))
  const texts = {
    'domain/deep/a.ts': 'export const now = Date.now()\n',
    'test/b.test.ts': `it.${'only'}()\n`,
    'docs/c.md': `${'a '.repeat(60)}b\n`,
    'test/node_modules/d.test.ts': `it.${'only'}()\n`,
  }
  for (const [path, text] of Object.entries(texts)) {
    await mkdir(dirname(join(root, path)), { recursive: true })
    await writeFile(join(root, path), text)
  }
  const files = (await tidy(root)).map(({ file }) => file)
  expect([...new Set(files)]).toEqual(['domain/deep/a.ts', 'test/b.test.ts', 'docs/c.md'])
})

describe('an exported name', () => {
  const rulesOf = (...sources: readonly (readonly [string, string])[]) =>
    exportFindings(sources).map(({ file, line, rule }) => `${file}:${line}: ${rule}`)
  it.each([
    ['kit/http/a.ts', 'kit/kube/b.ts'],
    ['controllers/nouns/edge/a.ts', 'controllers/nouns/edge/b.ts'],
    ['domain/edge/a.ts', 'domain/edge/b.ts'],
    ['controllers/kit/a.ts', 'controllers/network/b.ts'],
  ])('has one meaning in %s and %s', (one, other) =>
    expect(rulesOf([one, 'export const ownerOf = 1\n'], [other, '\nexport function ownerOf() {}\n'])).toEqual([
      `${other}:2: ownerOf is the name of something else in ${one}`,
    ]),
  )

  it.each([
    ['controllers/nouns/edge/a.ts', 'controllers/nouns/node/a.ts'],
    ['domain/edge/rules.ts', 'domain/server/rules.ts'],
    ['resources/edge/routes.ts', 'db/edge/index.ts'],
    ['test/a.ts', 'test/b.ts'],
  ])('may be one of each of %s and %s', (one, other) =>
    expect(rulesOf([one, 'export const ownerOf = 1\n'], [other, 'export const ownerOf = 2\n'])).toEqual([]),
  )

  it('may be a schema and its type', () =>
    expect(
      rulesOf(['kit/a.ts', 'export const Move = z.object({})\nexport type Move = z.infer<typeof Move>\n']),
    ).toEqual([]))
})
