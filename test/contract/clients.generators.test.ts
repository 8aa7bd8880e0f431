/** Generators of clients, as their users run them, and whether what they make of our document compiles. It downloads
 *  them. */
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { documentFor } from '../../apiserver/kit/pages/documents.ts'
import { textsOf } from '../../kit/http/openapi-examples.ts'

const run = promisify(execFile)
const OUTPUT_BYTES_MAXIMUM = 256 * 1024 ** 2

const OAPI_CODEGEN = 'github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2'
const OGEN = 'github.com/ogen-go/ogen/cmd/ogen@v1.24.0'
const PYTHON_PACKAGES = ['openapi-python-client==0.29.1', 'openapi-generator-cli==7.14.0']
/** The export of the audit log has lines of JSON, which no generator knows. */
const LEFT_OUT = ['GET /v1/audit/export']
/** The export; signing in, whose answer is one of two schemas; and the tokens, whose scope is a word or a list. */
const OGEN_LEAVES_OUT = 3

let folder: string
let document: string
const bin = (program: string) => join(folder, 'python', 'bin', program)

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-generators-'))
  document = join(folder, 'openapi.json')
  await writeFile(document, textsOf(documentFor('customer')).bare)
  await run('python3', ['-m', 'venv', join(folder, 'python')])
  await run(bin('pip'), ['install', '--quiet', ...PYTHON_PACKAGES])
})
afterAll(() => rm(folder, { recursive: true, force: true }))

/** Runs a program in a folder of the client, and answers what it printed. */
async function inClient(client: string, program: string, ...flags: string[]): Promise<string> {
  const cwd = join(folder, client)
  await mkdir(cwd, { recursive: true })
  const { stdout, stderr } = await run(program, flags, { cwd, maxBuffer: OUTPUT_BYTES_MAXIMUM })
  return stdout + stderr
}

async function compileGo(client: string): Promise<void> {
  await inClient(client, 'go', 'mod', 'tidy')
  await inClient(client, 'go', 'build', './...')
}
const compilePython = (client: string) => inClient(client, bin('python'), '-m', 'compileall', '-q', '.')

test('openapi-python-client', async () => {
  const flags = ['generate', '--path', document, '--output-path', 'made', '--meta', 'none', '--overwrite']
  const output = await inClient('one', bin('openapi-python-client'), ...flags)
  const warnings = [...output.matchAll(/^(?:WARNING|ERROR) parsing (\S+ \S+)/gm)].map(([, operation]) => operation)
  expect(warnings).toEqual(LEFT_OUT)
  await compilePython('one')
})

test('oapi-codegen', async () => {
  await inClient('two', 'go', 'mod', 'init', 'example.com/two')
  await inClient(
    'two',
    'go',
    'run',
    OAPI_CODEGEN,
    '-generate',
    'types,client',
    '-package',
    'two',
    '-o',
    'two.go',
    document,
  )
  await compileGo('two')
  expect(await readFile(join(folder, 'two/two.go'), 'utf8')).toContain('type CreateServer struct')
})

test('openapi-generator for Python', async () => {
  await inClient('three', bin('openapi-generator-cli'), 'generate', '-g', 'python', '-i', document, '-o', '.')
  await compilePython('three')
})

test('openapi-generator for Go', async () => {
  await inClient('four', bin('openapi-generator-cli'), 'generate', '-g', 'go', '-i', document, '-o', '.')
  await compileGo('four')
})

test('ogen', async () => {
  await inClient('five', 'go', 'mod', 'init', 'example.com/five')
  // The service has a schema of a server, which a service of ogen's would be too.
  const features = { disable: ['paths/server', 'webhooks/server'] }
  const generator = { ignore_not_implemented: ['all'], features }
  await writeFile(join(folder, 'five/ogen.yml'), JSON.stringify({ generator }))
  const flags = ['--config', 'ogen.yml', '--target', 'api', '--package', 'api', document]
  const output = await inClient('five', 'go', 'run', OGEN, ...flags)
  expect(output.match(/Skipping operation/g)).toHaveLength(OGEN_LEAVES_OUT)
  await compileGo('five')
})
