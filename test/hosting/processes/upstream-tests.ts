/** End-to-end tests of the Kubernetes project, by their names, against a control plane of the product. Each must have
 *  run and passed: one that the program does not know, or that skipped itself, has not. */
import { execFile } from 'node:child_process'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { ControlPlaneState } from '../../../integrations/control-planes/control.ts'
import { environment } from '../../../kit/sys/process.ts'
import { toolPath } from '../../../tools/cluster/build.ts'

const run = promisify(execFile)
const OUTPUT_BYTES_MAXIMUM = 256 * 1024 ** 2
const STORY_CHARACTERS = 3_000
const escaped = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)
const NOT_FOUND = 'there is no such test'

export interface UpstreamTests {
  readonly kubeconfigFile: string
  /** For reports; they stay there. */
  readonly folder: string
  readonly names: readonly string[]
  /** Programs at the same time: tests wait most of theirs. Those that want the cluster for themselves come last. */
  readonly programs: number
  readonly flags: readonly string[]
  readonly timeoutMilliseconds: number
}

/** Of a list with a name on each line, and remarks. */
export const readNames = async (file: string): Promise<readonly string[]> =>
  (await readFile(file, 'utf8')).split('\n').filter((line) => line !== '' && !line.startsWith('#'))

/** A kubeconfig of whoever has the token. */
export async function writeKubeconfig(
  file: string,
  { endpoint, certificateAuthority }: Pick<ControlPlaneState, 'endpoint' | 'certificateAuthority'>,
  token: string,
): Promise<string> {
  const authority = Buffer.from(certificateAuthority ?? '').toString('base64')
  const content = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'own',
    clusters: [{ name: 'own', cluster: { server: endpoint, 'certificate-authority-data': authority } }],
    users: [{ name: 'own', user: { token } }],
    contexts: [{ name: 'own', context: { cluster: 'own', user: 'own' } }],
  }
  await writeFile(file, JSON.stringify(content), { mode: 0o600 })
  return file
}

/** Runs them, and answers what became of each by its name: `passed`, or what was wrong. */
export async function runUpstreamTests(tests: UpstreamTests): Promise<Readonly<Record<string, string>>> {
  const wantsAll = (name: string) => /\[Serial\]|\[Disruptive\]/.test(name)
  const together = tests.names.filter((name) => !wantsAll(name))
  const alone = tests.names.filter(wantsAll)
  const shares = Array.from({ length: tests.programs }, (_, index) =>
    together.filter((_name, at) => at % tests.programs === index),
  )
  const found = await Promise.all(shares.map((names, index) => runProgram(tests, `program-${index}`, names)))
  found.push(await runProgram(tests, 'alone', alone))
  const all = Object.assign({}, ...found) as Readonly<Record<string, string>> // each is one
  return Object.fromEntries(tests.names.map((name) => [name, all[name] ?? NOT_FOUND]))
}

/** As far as it is read here. */
interface Report {
  readonly SpecialSuiteFailureReasons: readonly string[] | null
  readonly SpecReports: readonly {
    readonly ContainerHierarchyTexts: readonly string[] | null
    readonly LeafNodeText: string
    readonly LeafNodeType: string
    readonly State: string
    readonly RunTime: number
    readonly Failure?: { readonly Message: string }
    readonly CapturedGinkgoWriterOutput?: string
  }[]
}

async function runProgram(
  { kubeconfigFile, folder, flags, timeoutMilliseconds }: UpstreamTests,
  title: string,
  names: readonly string[],
): Promise<Record<string, string>> {
  if (names.length === 0) return {}
  const own = join(folder, title)
  await mkdir(own, { recursive: true })
  const report = join(own, 'report.json')
  const words = [
    '--provider=skeleton',
    `--kubeconfig=${kubeconfigFile}`,
    `--kubectl-path=${toolPath('kubectl')}`,
    '--ginkgo.no-color',
    `--ginkgo.timeout=${timeoutMilliseconds}ms`,
    `--ginkgo.json-report=${report}`,
    ...names.map((name) => `--ginkgo.focus= ${escaped(name)}$`),
    ...flags,
  ]
  const options = { cwd: own, maxBuffer: OUTPUT_BYTES_MAXIMUM, env: { PATH: environment()['PATH'], HOME: own } }
  const ended = await run(toolPath('e2e.test'), words, options).catch((error: { readonly stdout?: string }) => error)
  const [suite] = JSON.parse(
    await readFile(report, 'utf8').catch(() => {
      throw new Error(`no report of ${title}: ${ended.stdout?.slice(-STORY_CHARACTERS)}`)
    }),
  ) as readonly Report[] // as Ginkgo writes it
  const specs = suite?.SpecReports ?? []
  const broken = specs.find(({ LeafNodeType, State }) => LeafNodeType !== 'It' && State === 'failed')
  if (broken !== undefined) throw new Error(`${broken.LeafNodeType} of ${title}: ${broken.Failure?.Message}`)
  const result: Record<string, string> = {}
  for (const spec of specs) {
    const name = [...(spec.ContainerHierarchyTexts ?? []), spec.LeafNodeText].join(' ')
    if (!names.includes(name)) continue
    const story = [spec.State, spec.Failure?.Message, spec.CapturedGinkgoWriterOutput?.slice(-STORY_CHARACTERS)]
    result[name] = spec.State === 'passed' ? spec.State : story.filter(Boolean).join(': ')
  }
  return result
}
