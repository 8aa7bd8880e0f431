/** `npm run build:kubernetes`: builds the programs of clusters, in the order in which somebody who tries them needs
 *  them, of one minor version of Kubernetes unless others are requested. */
import { mkdtemp, rm } from 'node:fs/promises'
import { arch, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type KubernetesRelease, NEWEST_RELEASE, purposesOf } from '../../integrations/control-planes/programs.ts'
import { minorOf } from '../../domain/kubernetes-cluster/rules.ts'
import { KUBERNETES_RELEASES } from '../../domain/kubernetes-cluster/versions.ts'
import { answerHelp } from '../../kit/sys/help.ts'
import { printErrorLine, printLine, processArguments, setExitCode } from '../../kit/sys/process.ts'
import { buildTool, isBuilt, releasedFileOf, type Tool, toolPath } from './build.ts'
import { type Digests, pinReleased, readDigests, takeReleased } from './upstream.ts'

const MINORS = KUBERNETES_RELEASES.map(minorOf)
const USAGE = `usage: npm run build:kubernetes -- [--minor ${MINORS.join(' | ')}]... [--from URL [--pin]]

  --minor M    build this minor version; may be given more than once (default: ${minorOf(NEWEST_RELEASE)})
  --from URL   take files that the projects released from this mirror, where tools/cluster/digests.json has their
               digest, and build the others: below it are v1.2.3/bin/linux/amd64/kubelet, as https://dl.k8s.io has
               it, and etcd/v1.2.3/etcd-v1.2.3-linux-amd64.tar.gz, as https://storage.googleapis.com has it
  --pin        build nothing: record the digests of what the mirror has; it must be one that you trust`

interface Options {
  readonly releases: readonly KubernetesRelease[]
  readonly mirror: string | undefined
  readonly isPin: boolean
}

/** Undefined for unknown arguments. */
export function parseBuild(words: readonly string[]): Options | undefined {
  try {
    const { values } = parseArgs({
      args: [...words],
      options: {
        minor: { type: 'string', multiple: true },
        from: { type: 'string' },
        pin: { type: 'boolean', default: false },
      },
    })
    const { minor: minors = [minorOf(NEWEST_RELEASE)], from: mirror, pin: isPin } = values
    const releases = KUBERNETES_RELEASES.toReversed().filter((release) => minors.includes(minorOf(release)))
    const isKnown = minors.every((minor) => MINORS.includes(minor))
    const isMirror = mirror === undefined ? !isPin : /^https?:\/\//.test(mirror) && URL.canParse(mirror)
    return isKnown && isMirror ? { releases, mirror, isPin } : undefined
  } catch {
    return undefined
  }
}

/** The tools of each purpose: all of the first release, then the additional ones of others. */
export function buildOrder(releases: readonly KubernetesRelease[]): readonly { purpose: string; tools: Tool[] }[] {
  const known = new Set<Tool>()
  return releases.flatMap((release) =>
    purposesOf(release).flatMap(({ name, programs }) => {
      const tools = programs.map(({ tool }) => tool).filter((tool) => !known.has(tool))
      for (const tool of tools) known.add(tool)
      return tools.length === 0 ? [] : [{ purpose: `${name}, Kubernetes ${minorOf(release)}`, tools }]
    }),
  )
}

interface Source {
  readonly mirror: string | undefined
  readonly digests: Digests
  readonly print: (line: string) => void
}

/** Ensures that the tool exists: from the mirror, or else from its source. Throws as `takeReleased` and `buildTool`
 *  do. */
export async function provide(tool: Tool, { mirror, digests, print }: Source): Promise<void> {
  if (await isBuilt(tool)) return print(`  ${tool}: there`)
  const file = mirror === undefined ? undefined : releasedFileOf(tool, arch())
  if (mirror !== undefined && file !== undefined) {
    const reason = await takeReleased(file, { mirror, digests, path: toolPath(tool) })
    if (reason === undefined) return print(`  ${tool}: taken from ${mirror}`)
    print(`  ${tool}: ${reason}; it is built from its source`)
  } else print(`  ${tool}: is built from its source`)
  await buildTool(tool)
}

async function build({ releases, mirror }: Options): Promise<void> {
  const source = { mirror, digests: await readDigests(), print: printLine }
  for (const { purpose, tools } of buildOrder(releases)) {
    printLine(`${purpose}:`)
    // One after the other: each compiler run uses every core already.
    for (const tool of tools) await provide(tool, source)
  }
  printLine('All there: the next `npm start` uses them.')
}

async function pin({ releases, mirror = '' }: Options): Promise<void> {
  const tools = buildOrder(releases).flatMap((each) => each.tools)
  const work = await mkdtemp(join(tmpdir(), 'svccloud-pin-'))
  try {
    const files = tools.flatMap((tool) => releasedFileOf(tool, arch()) ?? [])
    const pinned = await pinReleased(files, { mirror, work })
    for (const path of pinned) printLine(`pinned ${path}`)
    if (pinned.length === 0) printLine('Nothing is new: what the mirror has is pinned already.')
  } finally {
    await rm(work, { recursive: true, force: true })
  }
}

if (import.meta.main) {
  answerHelp(import.meta.filename, USAGE)
  const options = parseBuild(processArguments())
  if (options === undefined) {
    printErrorLine(USAGE)
    setExitCode(2)
  } else {
    try {
      await (options.isPin ? pin(options) : build(options))
    } catch (error) {
      printErrorLine(error instanceof Error ? error.message : String(error))
      setExitCode(1)
    }
  }
}
