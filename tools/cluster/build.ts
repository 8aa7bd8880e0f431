/** Builds the real servers and clients that tests run against (kube-apiserver, etcd, kubectl, helm, ...) from their Go
 *  modules, and programs that the product itself uses where they exist: the engine of object storage, and the parts of
 *  control planes. Binaries are stored outside the repository, in `~/.cache/svccloud-tools/<version>/` (or
 *  `$SVCCLOUD_TOOLS`), and are built once: kubectl alone takes about 3 minutes cold, everything about 8.
 *
 *  Command line: `node tools/cluster/build.ts kubectl` or `node tools/cluster/build.ts all` (any tool names may be
 *  given). `build-kubernetes.ts` builds those of clusters. */

import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { ENGINE, ENGINE_VERSION } from '../../embedded/object-storage/program.ts'
import { PROGRAM_VERSIONS } from '../../integrations/control-planes/programs.ts'
import {
  type CSI_SIDECARS,
  type KUBERNETES_RELEASES,
  SNAPSHOT_KINDS_FILE,
} from '../../domain/kubernetes-cluster/versions.ts'
import { answerHelp } from '../../kit/sys/help.ts'
import { environment, printErrorLine, printLine, processArguments, setExitCode } from '../../kit/sys/process.ts'
import { toolsFolder } from '../../kit/sys/tools-folder.ts'
import { releasedFile, type UpstreamFile } from './upstream.ts'
import { isThere } from '../../kit/sys/is-there.ts'

const run = promisify(execFile)

interface Recipe {
  /** Name of the binary, if it is not the tool's. */
  readonly name?: string
  readonly version: string
  readonly package: string
  /** Folder of the Go module here that pins the tool; without it, `go install package@version` is enough. */
  readonly module?: string
  /** Not a program, but the concatenation of these files of the module that the package names. */
  readonly files?: readonly string[]
  /** Folder of the command within the module that the package names: it is built there, because its go.mod replaces
   *  modules, which `go install package@version` refuses. */
  readonly command?: string
  /** Builds the binary of the package's tests. */
  readonly isTest?: boolean
  readonly linkerFlags: string
  /** The project that releases it as a file. */
  readonly released?: 'kubernetes' | 'etcd' | undefined
}

const CSI_TEST_VERSION = 'v5.6.0'
const SNAPSHOTTER = 'external-snapshotter/v8'

type Release = (typeof KUBERNETES_RELEASES)[number]

/** The programs between Kubernetes and a driver of the Container Storage Interface. */
const sidecar = (command: keyof typeof CSI_SIDECARS, repository: string): Recipe => ({
  name: `csi-${command}`,
  version: PROGRAM_VERSIONS[`csi-${command}`],
  package: `github.com/kubernetes-csi/${repository}/cmd/csi-${command}`,
  module: 'csi-sidecars',
  linkerFlags: `-X main.version=${PROGRAM_VERSIONS[`csi-${command}`]}`,
})

/** The folder here whose Go module pins the release. */
const kubernetesModules: Readonly<Record<Release, string>> = { '1.35.4': 'kubernetes-1.35', '1.36.3': 'kubernetes' }

function kubernetes(command: string, release: Release = '1.36.3'): Recipe {
  const [major, minor] = release.split('.')
  return {
    name: command,
    version: `v${release}`,
    released: 'kubernetes',
    package: `k8s.io/kubernetes/cmd/${command}`,
    module: kubernetesModules[release],
    // kubectl and helm refuse to talk to a server (or to print themselves) without a version they can parse.
    linkerFlags: [
      `-X k8s.io/component-base/version.gitVersion=v${release}`,
      `-X k8s.io/component-base/version.gitMajor=${major}`,
      `-X k8s.io/component-base/version.gitMinor=${minor}`,
    ].join(' '),
  }
}

const etcd = (name: 'etcd' | 'etcdutl', folder: string): Recipe => ({
  name,
  version: PROGRAM_VERSIONS[name],
  module: 'etcd',
  released: 'etcd',
  linkerFlags: '',
  package: `go.etcd.io/etcd/${folder}/v3`,
})

const tunnel = (end: 'server' | 'agent'): Recipe => ({
  version: PROGRAM_VERSIONS[`konnectivity-${end}`],
  package: `sigs.k8s.io/apiserver-network-proxy/cmd/${end}`,
  module: 'konnectivity',
  linkerFlags: '',
})

const recipes = {
  kubectl: kubernetes('kubectl'),
  'kube-apiserver': kubernetes('kube-apiserver'),
  'kube-controller-manager': kubernetes('kube-controller-manager'),
  'kube-scheduler': kubernetes('kube-scheduler'),
  /** The previous minor version, for control planes that are upgraded from it. */
  'kube-apiserver-1.35': kubernetes('kube-apiserver', '1.35.4'),
  'kube-controller-manager-1.35': kubernetes('kube-controller-manager', '1.35.4'),
  'kube-scheduler-1.35': kubernetes('kube-scheduler', '1.35.4'),
  /** Programs of cluster nodes, for their image. */
  kubelet: kubernetes('kubelet'),
  'kube-proxy': kubernetes('kube-proxy'),
  'kubelet-1.35': kubernetes('kubelet', '1.35.4'),
  'kube-proxy-1.35': kubernetes('kube-proxy', '1.35.4'),
  /** The end-to-end tests of the Kubernetes project. */
  'e2e.test': {
    ...kubernetes('e2e.test'),
    package: 'k8s.io/kubernetes/test/e2e',
    module: 'kubernetes-e2e',
    isTest: true,
    released: undefined,
  },
  coredns: {
    version: PROGRAM_VERSIONS.coredns,
    package: 'github.com/coredns/coredns',
    module: 'coredns',
    linkerFlags: '',
  },
  /** Provides the volumes of dev clusters. */
  'local-path-provisioner': {
    version: PROGRAM_VERSIONS['local-path-provisioner'],
    package: 'github.com/rancher/local-path-provisioner',
    module: 'local-path',
    linkerFlags: `-X main.VERSION=${PROGRAM_VERSIONS['local-path-provisioner']}`,
  },
  /** Holds the namespaces of a pod. */
  pause: { version: PROGRAM_VERSIONS.pause, package: '.', module: 'pause', linkerFlags: '' },
  /** The two ends of the tunnel from API servers to nodes. */
  'konnectivity-server': tunnel('server'),
  'konnectivity-agent': tunnel('agent'),
  /** Enforces network policies on nodes that really run pods. */
  'kube-router': {
    version: 'v2.1.0',
    package: 'github.com/cloudnativelabs/kube-router/v2/cmd/kube-router',
    linkerFlags: '',
  },
  /** Simulates the kubelets of nodes that are only objects. */
  kwok: { version: 'v0.8.0', package: 'sigs.k8s.io/kwok/cmd/kwok', linkerFlags: '' },
  etcd: etcd('etcd', 'server'),
  /** Verifies snapshots of etcd, and restores them to folders. */
  etcdutl: etcd('etcdutl', 'etcdutl'),
  helm: {
    version: 'v4.3.1',
    package: 'helm.sh/helm/v4/cmd/helm',
    linkerFlags: '-X helm.sh/helm/v4/internal/version.version=v4.3.1',
  },
  buildifier: {
    version: 'v0.0.0-20260716142318-04cf7de1434f',
    package: 'github.com/bazelbuild/buildtools/buildifier',
    linkerFlags: '',
  },
  /** The Lua interpreter with which Argo CD runs its health checks. */
  glua: { version: 'v1.1.1', package: 'github.com/yuin/gopher-lua/cmd/glua', linkerFlags: '' },
  /** The payment processor's published schema, and a server that checks requests against it. */
  'stripe-mock': { version: 'v0.203.0', package: 'github.com/stripe/stripe-mock', linkerFlags: '' },
  /** The engine of object storage: npm run build:object-storage. */
  [ENGINE]: { version: ENGINE_VERSION, package: 'github.com/versity/versitygw/cmd/versitygw', linkerFlags: '' },
  /** The test suite for drivers of the Container Storage Interface. */
  'csi-sanity': {
    version: CSI_TEST_VERSION,
    package: 'github.com/kubernetes-csi/csi-test/v5/cmd/csi-sanity',
    linkerFlags: '',
  },
  'csi-provisioner': sidecar('provisioner', 'external-provisioner/v6'),
  'csi-attacher': sidecar('attacher', 'external-attacher/v4'),
  'csi-resizer': sidecar('resizer', 'external-resizer/v2'),
  'csi-snapshotter': sidecar('snapshotter', SNAPSHOTTER),
  'snapshot-controller': {
    version: PROGRAM_VERSIONS['snapshot-controller'],
    module: 'csi-sidecars',
    package: `github.com/kubernetes-csi/${SNAPSHOTTER}/cmd/snapshot-controller`,
    linkerFlags: `-X main.version=${PROGRAM_VERSIONS['snapshot-controller']}`,
  },
  /** The kinds of objects that both use. */
  'snapshot-kinds': {
    version: PROGRAM_VERSIONS['snapshot-kinds'],
    name: SNAPSHOT_KINDS_FILE,
    module: 'csi-sidecars',
    linkerFlags: '',
    package: 'github.com/kubernetes-csi/external-snapshotter/client/v8',
    files: ['classes', 'contents', 's'].map((end) => `config/crd/snapshot.storage.k8s.io_volumesnapshot${end}.yaml`),
  },
  kubeconform: { version: 'v0.8.0', package: 'github.com/yannh/kubeconform/cmd/kubeconform', linkerFlags: '' },
  /** OpenTofu: the provider is tested with it as well. */
  tofu: {
    version: 'v1.12.6',
    package: 'github.com/opentofu/opentofu',
    command: './cmd/tofu',
    linkerFlags: '-X github.com/opentofu/opentofu/version.dev=no',
  },
} satisfies Record<string, Recipe>

export type Tool = keyof typeof recipes
export const tools = Object.keys(recipes) as readonly Tool[] // the keys of a literal table

/** The path of a tool's binary, built or not. */
export function toolPath(tool: Tool): string {
  const { version, name = tool }: Recipe = recipes[tool]
  return join(toolsFolder(), version, name)
}

/** The file in which its project releases it for such a processor, by Node's name of the processor; undefined for tools
 *  that are only built from source. */
export function releasedFileOf(tool: Tool, architecture: string): UpstreamFile | undefined {
  const { version, name = tool, released }: Recipe = recipes[tool]
  return released && releasedFile({ name, version }, released, architecture)
}

export const isBuilt = (tool: Tool): Promise<boolean> => isThere(toolPath(tool))

/** The version of the Go compiler on the path, or undefined when there is none. */
export const goVersion = (): Promise<string | undefined> =>
  run('go', ['env', 'GOVERSION']).then(
    ({ stdout }) => stdout.trim(),
    () => undefined,
  )

/** True when every tool exists or can be built here; a test tier checks this before it reports that it is skipped. */
export async function canHave(wanted: readonly Tool[]): Promise<boolean> {
  const built = await Promise.all(wanted.map(isBuilt))
  return built.every(Boolean) || (await goVersion()) !== undefined
}

/** Builds the tool if it does not exist, and returns its path. Two concurrent builds are harmless: the last rename
 *  wins. Throws, with the advice to install Go, when it must be built and there is no Go. */
export async function buildTool(tool: Tool): Promise<string> {
  const path = toolPath(tool)
  if (await isBuilt(tool)) return path
  if (!(await goVersion()))
    throw new Error(
      `${tool} ${recipes[tool].version} is not built yet and Go is missing: install Go (https://go.dev/dl) and ` +
        'try again',
    )
  const recipe: Recipe = recipes[tool]
  const folder = join(path, '..')
  await mkdir(folder, { recursive: true })
  const building = await mkdtemp(join(folder, `.${tool}-`))
  try {
    const partial = join(building, tool)
    const flags = ['-trimpath', '-ldflags', `-s -w ${recipe.linkerFlags}`]
    const options = {
      env: { ...environment(), CGO_ENABLED: '0', GOBIN: building, GOFLAGS: '-mod=readonly' },
      maxBuffer: 64 * 1024 * 1024,
    }
    const command = recipe.isTest ? ['test', '-c', '-vet=off'] : ['build']
    if (recipe.files) await writeFile(partial, await filesOf(recipe, recipe.files))
    else if (recipe.command !== undefined)
      await run('go', ['build', ...flags, '-o', partial, recipe.command], {
        ...options,
        cwd: await sourceFolder(tool),
      })
    else if (recipe.module)
      await run('go', [...command, ...flags, '-o', partial, recipe.package], {
        ...options,
        cwd: moduleFolder(recipe),
      })
    else await run('go', ['install', ...flags, `${recipe.package}@${recipe.version}`], options)
    await rename(partial, path)
  } finally {
    await rm(building, { recursive: true, force: true })
  }
  return path
}

const moduleFolder = ({ module = '' }: Recipe): string => join(import.meta.dirname, module)

async function filesOf(recipe: Recipe, files: readonly string[]): Promise<string> {
  const folder = await downloaded(recipe.package, { cwd: moduleFolder(recipe) })
  return (await Promise.all(files.map((file) => readFile(join(folder, file), 'utf8')))).join('\n---\n')
}

/** Folder with the sources of a tool whose package is the root of its module. Throws when there is neither Go nor a
 *  network, as `go mod download` does. */
export function sourceFolder(tool: Tool): Promise<string> {
  const { package: name, version }: Recipe = recipes[tool]
  return downloaded(`${name}@${version}`)
}

async function downloaded(name: string, options: { readonly cwd?: string } = {}): Promise<string> {
  const { stdout } = await run('go', ['mod', 'download', '-json', name], options)
  const { Dir } = JSON.parse(stdout) as { readonly Dir: string } // as `go help mod download` says
  return Dir
}

if (import.meta.main) {
  answerHelp(import.meta.filename)
  const names = processArguments()
  const unknown = names.filter((name) => name !== 'all' && !(name in recipes))
  if (names.length === 0 || unknown.length > 0) {
    printErrorLine(`usage: node tools/cluster/build.ts all | ${tools.join(' | ')}`)
    setExitCode(2)
  } else {
    try {
      // One after the other: each compiler run uses every core already.
      for (const tool of tools) if (names.includes('all') || names.includes(tool)) printLine(await buildTool(tool))
    } catch (error) {
      printErrorLine(error instanceof Error ? error.message : String(error))
      setExitCode(1)
    }
  }
}
