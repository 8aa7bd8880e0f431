/** The documents that this service publishes, in the eyes of two linters with the rule sets of the repository. */
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { documentFor } from '../../../../apiserver/kit/pages/documents.ts'
import { environment, nodeBinary } from '../../../../kit/sys/process.ts'

const ROOT = join(import.meta.dirname, '../../../..')
const AUDIENCES = ['customer', 'operator'] as const

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-documents-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

/** A file for the linters, which read what clients read. */
async function save(name: string, document: unknown): Promise<string> {
  const file = join(folder, `${name}.json`)
  await writeFile(file, JSON.stringify(document, null, 2))
  return file
}
// any: tests break it in many places
const copyOf = (audience: (typeof AUDIENCES)[number]) => JSON.parse(JSON.stringify(documentFor(audience)))

/** The document with these paths alone, and every schema: what a linter says of a fault does not depend on the others,
 *  which take most of its time. */
function copyWith(...paths: readonly string[]) {
  const copy = copyOf('customer')
  return { ...copy, paths: Object.fromEntries(paths.map((path) => [path, copy.paths[path]])) }
}

/** What the linter says against the files; empty when it is content. */
async function complaints(program: string, line: readonly string[]): Promise<string> {
  const env = { ...environment(), NO_COLOR: '1', REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' }
  return promisify(execFile)(nodeBinary(), [join(ROOT, 'node_modules', program), ...line], {
    cwd: ROOT,
    env,
    maxBuffer: 16 * 1024 * 1024,
  }).then(
    () => '',
    ({ stdout, stderr }: { stdout: string; stderr: string }) => `${stdout}${stderr}`,
  )
}
const redocly = (...files: string[]) =>
  complaints('@redocly/cli/bin/cli.js', ['lint', '--config', 'redocly.yaml', '--format', 'json', ...files])
const spectral = (...files: string[]) =>
  complaints('@stoplight/spectral-cli/dist/index.js', [
    'lint',
    '--ruleset',
    '.spectral.yaml',
    '--fail-severity',
    'warn',
    '--quiet',
    ...files,
  ])

/** Separate programs, on a machine that may be busy. */
const PATIENCE = { timeout: 120_000 }

describe('linters', PATIENCE, () => {
  test.each([
    ['Redocly', redocly],
    ['Spectral', spectral],
  ] as const)('%s has nothing against either document', async (_name, lint) => {
    expect(await lint(...(await Promise.all(AUDIENCES.map((audience) => save(audience, copyOf(audience))))))).toBe('')
  })

  test('Redocly sees what the rules of the repository forbid', async () => {
    const broken = copyWith('/v1/servers', '/v1/plans')
    broken.paths['/v1/servers'].get.operationId = 'listServers'
    delete broken.paths['/v1/servers'].get['x-permission']
    broken.components.schemas.Server.properties.fooBar = { type: 'string' }
    broken.paths['/v1/plans'].get.responses['200'].content['application/json'].example.items = 7
    const said = await redocly(await save('broken-for-redocly', broken))
    for (const rule of [
      'operation-id-is-snake-case',
      'operations-say-who-may-call-them',
      'fields-are-snake-case',
      'no-invalid-media-type-examples',
    ])
      expect(said).toContain(rule)
  })

  test('Spectral does too', async () => {
    const broken = copyWith('/v1/ssh-keys')
    const page = broken.paths['/v1/ssh-keys'].get.responses['200']
    delete broken.components.schemas.SSHKeyPage.properties.next_cursor
    delete page.content['application/json'].example
    delete page.headers
    delete broken.components.responses.NotFound.content
    broken.components.schemas.Server.properties.created_at = { type: 'string' }
    const said = await spectral(await save('broken-for-spectral', broken))
    for (const rule of [
      'success-answers-carry-the-request-id',
      'refusals-are-problem-documents',
      'lists-say-where-they-go-on',
      'answers-have-examples',
      'times-are-instants',
    ])
      expect(said).toContain(rule)
  })
})
