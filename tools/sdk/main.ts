/** Builds the clients for Python and Go into `dist/sdk/`: `npm run build:sdk`, or one of them with its name. Their
 *  calls and types are generated from the API document of today; the layer in `sdk/` is written by hand. Python gives a
 *  wheel and a source distribution, and needs `python3` with `venv`; Go gives the folder of a module. Both download
 *  their generators in exact versions. */
import { execFile } from 'node:child_process'
import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { documentFor } from '../../apiserver/kit/pages/documents.ts'
import { textsOf } from '../../kit/http/openapi-examples.ts'
import type { OpenApiDocument } from '../../kit/http/openapi.ts'
import { answerHelp } from '../../kit/sys/help.ts'
import { environment, printErrorLine, printLine, processArguments, setExitCode } from '../../kit/sys/process.ts'
import { sdkDocument } from './document.ts'

const ROOT = join(import.meta.dirname, '../..')
export const SDK_FOLDER = join(ROOT, 'dist/sdk')
const OAPI_CODEGEN = 'github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2'
const OUTPUT_BYTES_MAXIMUM = 64 * 1024 ** 2
/** Of what is generated for Python; the rest of the package is written by hand. */
const GENERATED = ['api', 'models', 'client.py', 'errors.py', 'types.py']

/** Runs a program to its end, and answers what it printed. Throws with what it said when it fails. */
export async function runIn(
  folder: string,
  program: string,
  flags: readonly string[],
  more: object = {},
): Promise<string> {
  const { stdout, stderr } = await promisify(execFile)(program, [...flags], {
    cwd: folder,
    env: { ...environment(), ...more },
    maxBuffer: OUTPUT_BYTES_MAXIMUM,
  }).catch((error: { readonly stdout?: string; readonly stderr?: string }) => {
    throw new Error(`${program} ${flags.join(' ')}: ${error.stdout ?? ''}${error.stderr ?? ''}`, { cause: error })
  })
  return stdout + stderr
}

/** A new copy of what is written by hand. */
async function copyOf(client: string): Promise<string> {
  const folder = join(SDK_FOLDER, client)
  await rm(folder, { recursive: true, force: true })
  await cp(join(ROOT, 'sdk', client), folder, { recursive: true })
  await cp(join(ROOT, 'LICENSE'), join(folder, 'LICENSE'))
  return folder
}

async function writeDocument(): Promise<string> {
  const path = join(SDK_FOLDER, 'openapi.json')
  await mkdir(SDK_FOLDER, { recursive: true })
  const document = JSON.parse(textsOf(documentFor('customer')).bare) as OpenApiDocument // it is written by us
  await writeFile(path, JSON.stringify(sdkDocument(document)))
  return path
}

/** The programs that build the package: an environment that is made once for each list of requirements. */
async function openTools(): Promise<(name: string) => string> {
  const tools = join(SDK_FOLDER, 'tools')
  const requirements = join(ROOT, 'sdk/python/requirements.txt')
  const stamp = join(tools, 'requirements.txt')
  const wanted = await readFile(requirements, 'utf8')
  if ((await readFile(stamp, 'utf8').catch(() => '')) !== wanted) {
    await runIn(ROOT, 'python3', ['-m', 'venv', '--clear', tools])
    await runIn(ROOT, join(tools, 'bin/pip'), ['install', '--quiet', '--requirement', requirements])
    await writeFile(stamp, wanted)
  }
  return (name) => join(tools, 'bin', name)
}

export interface PythonClient {
  /** With the generated calls, ready to be checked. */
  readonly folder: string
  /** With the wheel and the source distribution. */
  readonly packages: string
  /** A program of the environment that built it. */
  readonly tool: (name: string) => string
}

export async function buildPython(): Promise<PythonClient> {
  const document = await writeDocument()
  const tool = await openTools()
  const folder = await copyOf('python')
  const flags = ['generate', '--path', document, '--output-path', 'generated', '--meta', 'none']
  // it lays its code out by a program beside it
  const output = await runIn(folder, tool('openapi-python-client'), flags, {
    PATH: `${join(SDK_FOLDER, 'tools/bin')}:${environment()['PATH'] ?? ''}`,
  })
  if (/WARNING|ERROR/.test(output)) throw new Error(`the generator left something out: ${output}`)
  for (const part of GENERATED)
    await cp(join(folder, 'generated', part), join(folder, 'src/svccloud', part), { recursive: true })
  await rm(join(folder, 'generated'), { recursive: true })
  const packages = join(folder, 'dist')
  await runIn(folder, tool('python'), ['-m', 'build', '--no-isolation', '--outdir', packages])
  return { folder, packages, tool }
}

/** Answers the folder of the module. */
export async function buildGo(): Promise<string> {
  const document = await writeDocument()
  const folder = await copyOf('go')
  await mkdir(join(folder, 'api'))
  await runIn(folder, 'go', ['run', OAPI_CODEGEN, '-config', 'oapi-codegen.yaml', document])
  await runIn(folder, 'go', ['build', './...'])
  return folder
}

const BUILDS: Readonly<Record<string, () => Promise<string>>> = {
  python: async () => (await buildPython()).packages,
  go: buildGo,
}

if (import.meta.main) {
  answerHelp(import.meta.filename)
  const wanted = processArguments()
  const unknown = wanted.filter((name) => !Object.hasOwn(BUILDS, name))
  if (unknown.length > 0) {
    printErrorLine(`there is no client for ${unknown.join(', ')}: python or go`)
    setExitCode(2)
  } else
    for (const [name, build] of Object.entries(BUILDS))
      if (wanted.length === 0 || wanted.includes(name)) printLine(await build())
}
