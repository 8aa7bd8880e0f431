/** The tiers of the test suite: which files belong to each, how long it may take, and what it needs of this machine. A
 *  file's name contains its tier (`x.database.test.ts`); files in `test/sim/` belong to the simulation, or to the seeds
 *  if their name says so. */
import { execFile } from 'node:child_process'
import { matchesGlob } from 'node:path'
import { promisify } from 'node:util'
import { defined } from '../domain/defined.ts'
import { findKubernetes } from '../hosting/processes/programs.ts'
import { BUILD_KUBERNETES_COMMAND } from '../domain/kubernetes-cluster/versions.ts'
import { BUILD_COMMAND, findEngine } from '../embedded/object-storage/program.ts'
import { environment, isRoot } from '../kit/sys/process.ts'
import { canHave, isBuilt, toolPath } from './cluster/build.ts'

const run = promisify(execFile)

export interface Tier {
  readonly name: string
  readonly include: readonly string[]
  readonly exclude: readonly string[]
  /** A module that prepares what the tier's files share, once for all of them. */
  readonly setup?: string
  /** Files at the same time. Tiers that wait in real seconds run alone. */
  readonly workersMaximum: number
  readonly testTimeoutMilliseconds: number
  /** Whether each file has a separate process. Otherwise a worker loads the product once and runs file after file. */
  readonly isIsolated: boolean
  /** For the complete tier: after it, the runner kills what hangs and counts it as failed. It leaves room for slow
   *  machines. */
  readonly deadlineMilliseconds: number
  /** Runs in the background from the start: `idle` with the processor time that the others leave, because its time is
   *  virtual; `waiting` with the same priority as the others, because it waits in real time and needs little of it. */
  readonly beside: 'idle' | 'waiting' | undefined
  /** Runs only when it is requested by name. */
  readonly isOptIn: boolean
  /** Undefined when the tier can run here, else the reason, for people. */
  readonly missing: () => Promise<string | undefined>
}

/** Debian packages whose versions can affect the outcome of tests; packages that are not installed are left out. The
 *  versions of programs that are built for tests are in the repository. */
export const ENGINES: readonly string[] = [
  'qemu-system-x86',
  'qemu-utils',
  'qemu-block-extra',
  'e2fsprogs',
  'xfsprogs',
  'restic',
  'rclone',
  'python3-boto3',
  'pgbackrest',
  'postgresql-*',
  'openssh-client',
  'openssh-server',
  'ipmitool',
  'openipmi',
  'ceph-*',
  'radosgw',
  'ovn-*',
  'openvswitch-*',
  'nftables',
  'iptables',
  'ipset',
  'socat',
  'slirp4netns',
  'ethtool',
  'iputils-ping',
  'haproxy',
  'keepalived',
  'tayga',
  'unbound',
  'kubectl',
  'containerd',
  'runc',
  'containernetworking-plugins',
  'chromium',
  'fonts-noto-core',
]

const MINUTE_MILLISECONDS = 60_000
const nothing = async (): Promise<undefined> => undefined
const answers = (command: string, ...flags: string[]): Promise<boolean> =>
  run(command, flags).then(
    () => true,
    () => false,
  )

async function qemuMissing(): Promise<string | undefined> {
  for (const command of ['qemu-system-x86_64', 'qemu-img']) {
    if (!(await answers(command, '--version')))
      return `${command} is not installed (Debian: qemu-system-x86 and qemu-utils)`
  }
  if (!(await answers('apt-get', '--version')))
    return 'guest images are made from Debian packages, and there is no apt-get here'
  return undefined
}

const kubectlMissing = async (): Promise<string | undefined> =>
  (await isBuilt('kubectl')) ? undefined : 'kubectl is not built (with Go: node tools/cluster/build.ts kubectl)'

const clusterMissing = async (): Promise<string | undefined> =>
  (await canHave(['etcd', 'kube-apiserver', 'kube-controller-manager']))
    ? undefined
    : 'a real Kubernetes API server is not built, and there is no Go to build it with'

/** The engine of object storage, and a third-party client. */
async function objectsMissing(): Promise<string | undefined> {
  if ((await findEngine()) === undefined) return `the engine of object storage is not built (${BUILD_COMMAND})`
  return (await answers('rclone', 'version')) ? undefined : 'rclone is not installed (Debian: rclone)'
}

/** The server of managed databases, its archive, and the store of the archive. */
async function postgresqlMissing(): Promise<string | undefined> {
  if (!isRoot()) return 'the server runs as a user that only root can become'
  if (!(await answers('sh', '-c', 'ls /usr/lib/postgresql/*/bin/postgres')))
    return 'PostgreSQL is not installed (Debian: postgresql)'
  if (!(await answers('pgbackrest', 'version'))) return 'pgbackrest is not installed (Debian: pgbackrest)'
  return (await findEngine()) === undefined ? `the engine of object storage is not built (${BUILD_COMMAND})` : undefined
}

const kubernetesMissing = async (): Promise<string | undefined> =>
  (await findKubernetes()) === undefined
    ? `the programs of control planes are not built (${BUILD_KUBERNETES_COMMAND})`
    : undefined

/** The suite, and disks for file systems. */
async function csiMissing(): Promise<string | undefined> {
  if (!isRoot()) return 'disks are mounted by root only'
  for (const command of ['losetup', 'blkid', 'mkfs.ext4', 'e2fsck', 'resize2fs', 'mkfs.xfs', 'xfs_growfs'])
    if (!(await answers('which', command)))
      return `${command} is not installed (Debian: mount, util-linux, e2fsprogs and xfsprogs)`
  if (!(await answers('losetup', '--find'))) return 'there are no loop devices here'
  return (await isBuilt('csi-sanity'))
    ? undefined
    : 'csi-sanity is not built (with Go: node tools/cluster/build.ts csi-sanity)'
}

async function networkMissing(): Promise<string | undefined> {
  if (!isRoot()) return 'network namespaces are made by root only'
  if (!(await answers('ping', '-V'))) return 'ping is not installed (Debian: iputils-ping)'
  const commands = ['ovn-northd', 'ovn-controller', 'ovs-vswitchd', 'ovsdb-server', 'ethtool', 'nft', 'slirp4netns']
  for (const command of commands) {
    if (!(await answers(command, '--version')))
      return (
        `${command} is not installed (Debian: ovn-central, ovn-host, openvswitch-switch, ethtool, nftables and ` +
        'slirp4netns)'
      )
  }
  for (const command of ['haproxy', 'keepalived', 'tayga', 'unbound', 'python3'])
    if (!(await answers('which', command))) return `${command} is not installed (Debian: ${command})`
  if (!(await answers('which', 'sshd'))) return 'sshd is not installed (Debian: openssh-server)'
  return qemuMissing()
}

/** A browser, and letters for it. */
async function browserMissing(): Promise<string | undefined> {
  return (await answers('/usr/bin/chromium', '--version')) && (await answers('ls', '/usr/share/fonts/truetype/noto'))
    ? undefined
    : 'chromium is not installed (Debian: chromium and fonts-noto-core)'
}

/** What builds the provider, and what uses it. */
async function terraformMissing(): Promise<string | undefined> {
  if (!(await answers('go', 'version'))) return 'there is no Go to build the provider with'
  return Object.keys(await programsOfTerraform()).length > 0
    ? undefined
    : 'neither terraform is installed (1.11 or newer) nor OpenTofu built (node tools/cluster/build.ts tofu)'
}

/** The paths of the programs that run the provider, by name: those that are here. */
export async function programsOfTerraform(): Promise<Readonly<Record<string, string>>> {
  const terraform = environment()['SVCCLOUD_TERRAFORM'] ?? 'terraform'
  const tofu = (await isBuilt('tofu')) ? toolPath('tofu') : 'tofu'
  return {
    ...((await answers(terraform, 'version', '-json')) ? { terraform } : {}),
    ...((await answers(tofu, 'version', '-json')) ? { tofu } : {}),
  }
}

/** A simulated management controller and a cluster of one monitor, which fencing talks to. */
async function fencingMissing(): Promise<string | undefined> {
  for (const command of ['ipmitool', 'ipmi_sim', 'ceph', 'ceph-mon']) {
    if (!(await answers('which', command)))
      return `${command} is not installed (Debian: ipmitool, openipmi, ceph-common and ceph-mon)`
  }
  return undefined
}

/** A storage cluster, its gateway for objects and the engine from which they are moved, and guests that have their
 *  disks there. */
async function cephMissing(): Promise<string | undefined> {
  for (const command of ['ceph', 'rbd', 'radosgw-admin', 'ceph-mon', 'ceph-mgr', 'ceph-osd', 'radosgw']) {
    if (!(await answers('which', command)))
      return `${command} is not installed (Debian: ceph-common, ceph-mon, ceph-mgr, ceph-osd and radosgw)`
  }
  if ((await findEngine()) === undefined) return `the engine of object storage is not built (${BUILD_COMMAND})`
  const qemu = await qemuMissing()
  if (qemu !== undefined) return qemu
  // It lists formats without a driver. With the driver it looks for the file.
  const failure = await run('qemu-img', ['info', '-f', 'raw', 'rbd:a/b:conf=/none']).catch((error: unknown) => error)
  return String(failure).includes('conf file') ? undefined : 'QEMU cannot open disks in Ceph (Debian: qemu-block-extra)'
}

/** The programs with which a node runs pods, apart from those of Kubernetes. */
async function podsMissing(): Promise<string | undefined> {
  if (!isRoot()) return 'containers are run by root only'
  for (const command of ['containerd', 'ctr', 'runc', 'socat', 'ipset', 'iptables', 'nft', 'unshare', 'setpriv'])
    if (!(await answers('which', command)))
      return (
        `${command} is not installed (Debian: containerd, runc, containernetworking-plugins, socat, ipset, iptables, ` +
        'nftables and util-linux)'
      )
  if (!(await answers('test', '-x', '/usr/lib/cni/bridge')))
    return 'the network of pods is not installed (Debian: containernetworking-plugins)'
  if (!(await answers('sh', '-c', 'ls /usr/lib/postgresql/*/bin/pg_isready')))
    return 'PostgreSQL is not installed (Debian: postgresql)'
  if (!(await answers('unshare', '--net', '--mount', '--pid', '--fork', 'true'))) return 'there are no namespaces here'
  const programs = ['kubelet', 'kube-proxy', 'kube-router', 'konnectivity-agent', 'pause', 'coredns', 'helm'] as const
  return (await canHave([...programs, 'kubectl'])) ? kubernetesMissing() : 'there is no Go to build kubelets with'
}

async function generatorsMissing(): Promise<string | undefined> {
  if (!(await answers('go', 'version'))) return 'there is no Go'
  if (!(await answers('java', '-version'))) return 'java is not installed (Debian: default-jre-headless)'
  return (await answers('python3', '-c', 'import ensurepip'))
    ? undefined
    : 'Python has no environments (Debian: python3-venv)'
}

/** What generates, builds and runs the clients. */
async function sdkMissing(): Promise<string | undefined> {
  if (!(await answers('go', 'version'))) return 'there is no Go to build the client for Go with'
  return (await answers('python3', '-c', 'import ensurepip'))
    ? undefined
    : 'Python has no environments (Debian: python3-venv)'
}

interface TierInput {
  readonly name: string
  /** Files with the tier in their name, unless set otherwise. */
  readonly files?: string
  readonly setup?: string
  readonly workersMaximum: number
  readonly testTimeoutMilliseconds: number
  readonly deadlineMinutes: number
  readonly isIsolated?: boolean
  readonly beside?: Tier['beside']
  readonly isOptIn?: boolean
  readonly missing?: () => Promise<string | undefined>
}

const SIMULATION = 'test/sim/**/*.test.ts'
/** More seeds of the simulation than `npm test` has time for, and separate worlds. */
const SEEDS = 'test/sim/**/*.seeds.test.ts'
const ENDURANCE = 'test/**/*.endurance.test.ts'

const named = (input: TierInput): Tier => ({
  name: input.name,
  include: [input.files ?? `test/**/*.${input.name}.test.ts`],
  exclude: input.files === SIMULATION ? [ENDURANCE, SEEDS] : [],
  ...defined({ setup: input.setup }),
  workersMaximum: input.workersMaximum,
  testTimeoutMilliseconds: input.testTimeoutMilliseconds,
  deadlineMilliseconds: input.deadlineMinutes * MINUTE_MILLISECONDS,
  isIsolated: input.isIsolated ?? true,
  beside: input.beside,
  isOptIn: input.isOptIn ?? false,
  missing: input.missing ?? nothing,
})

/** For tiers that wait for others (databases, guests, control planes): while two wait, the others have two cores. */
const WORKERS = 4

/** Files of another tier that would take too much of the time of `npm test`: `.ci/run` runs them. */
const long = (
  input: Omit<TierInput, 'workersMaximum' | 'testTimeoutMilliseconds' | 'deadlineMinutes' | 'isOptIn'>,
): Tier => named({ workersMaximum: 2, testTimeoutMilliseconds: 300_000, deadlineMinutes: 20, isOptIn: true, ...input })

const special: readonly Tier[] = [
  named({
    name: 'qemu',
    workersMaximum: WORKERS,
    testTimeoutMilliseconds: 180_000,
    deadlineMinutes: 10,
    missing: qemuMissing,
  }),
  named({
    name: 'postgresql',
    workersMaximum: 2,
    testTimeoutMilliseconds: 600_000,
    deadlineMinutes: 15,
    beside: 'waiting',
    missing: postgresqlMissing,
  }),
  named({
    name: 'kubernetes',
    workersMaximum: WORKERS,
    testTimeoutMilliseconds: 120_000,
    deadlineMinutes: 10,
    missing: kubernetesMissing,
  }),
  named({
    name: 'csi',
    workersMaximum: 2,
    testTimeoutMilliseconds: 240_000,
    deadlineMinutes: 20,
    isOptIn: true,
    missing: csiMissing,
  }),
  named({
    name: 'network',
    workersMaximum: WORKERS,
    testTimeoutMilliseconds: 180_000,
    deadlineMinutes: 10,
    missing: networkMissing,
  }),
  named({
    name: 'fencing',
    workersMaximum: 2,
    testTimeoutMilliseconds: 120_000,
    deadlineMinutes: 10,
    beside: 'waiting',
    missing: fencingMissing,
  }),
  named({
    name: 'ceph',
    setup: 'test/ceph.ts',
    workersMaximum: 2,
    testTimeoutMilliseconds: 120_000,
    deadlineMinutes: 20,
    isOptIn: true,
    missing: cephMissing,
  }),
  named({
    name: 'pods',
    workersMaximum: 1,
    testTimeoutMilliseconds: 300_000,
    deadlineMinutes: 30,
    isOptIn: true,
    missing: podsMissing,
  }),
  named({
    name: 'simulation',
    files: SIMULATION,
    setup: 'test/database.ts',
    workersMaximum: 2,
    testTimeoutMilliseconds: 25 * MINUTE_MILLISECONDS,
    deadlineMinutes: 25,
    beside: 'idle',
  }),
  named({
    name: 'seeds',
    files: SEEDS,
    setup: 'test/database.ts',
    workersMaximum: 2,
    testTimeoutMilliseconds: 40 * MINUTE_MILLISECONDS,
    deadlineMinutes: 40,
    beside: 'idle',
    isOptIn: true,
  }),
  named({
    name: 'e2e',
    workersMaximum: WORKERS,
    testTimeoutMilliseconds: 300_000,
    deadlineMinutes: 12,
    missing: qemuMissing,
  }),
  named({
    name: 'database',
    setup: 'test/database.ts',
    workersMaximum: WORKERS,
    testTimeoutMilliseconds: 120_000,
    deadlineMinutes: 12,
    isIsolated: false,
  }),
  named({
    name: 'kubectl',
    workersMaximum: WORKERS,
    testTimeoutMilliseconds: 90_000,
    deadlineMinutes: 10,
    missing: kubectlMissing,
  }),
  named({
    name: 'objects',
    workersMaximum: 1,
    testTimeoutMilliseconds: 60_000,
    deadlineMinutes: 10,
    beside: 'waiting',
    missing: objectsMissing,
  }),
  named({
    name: 'bench',
    workersMaximum: 2,
    testTimeoutMilliseconds: 300_000,
    deadlineMinutes: 20,
    isOptIn: true,
  }),
  named({
    name: 'endurance',
    workersMaximum: 2,
    testTimeoutMilliseconds: 300_000,
    deadlineMinutes: 40,
    isOptIn: true,
    missing: qemuMissing,
  }),
  named({
    name: 'browser',
    setup: 'test/portal/browser/setup.ts',
    workersMaximum: 2,
    testTimeoutMilliseconds: 120_000,
    deadlineMinutes: 20,
    isIsolated: false,
    isOptIn: true,
    missing: browserMissing,
  }),
  named({
    name: 'terraform',
    setup: 'test/terraform/setup.ts',
    workersMaximum: 2,
    testTimeoutMilliseconds: 120_000,
    deadlineMinutes: 40,
    isOptIn: true,
    missing: terraformMissing,
  }),
  named({
    name: 'sdk',
    setup: 'test/sdk/setup.ts',
    workersMaximum: 1,
    testTimeoutMilliseconds: 10 * MINUTE_MILLISECONDS,
    deadlineMinutes: 40,
    isOptIn: true,
    missing: sdkMissing,
  }),
  named({
    name: 'cluster',
    workersMaximum: 2,
    testTimeoutMilliseconds: 300_000,
    deadlineMinutes: 20,
    isOptIn: true,
    missing: clusterMissing,
  }),
  named({
    name: 'generators',
    workersMaximum: 1,
    testTimeoutMilliseconds: 20 * MINUTE_MILLISECONDS,
    deadlineMinutes: 60,
    isOptIn: true,
    missing: generatorsMissing,
  }),
  long({ name: 'qemu-long', missing: qemuMissing }),
  long({ name: 'network-long', missing: networkMissing }),
  long({ name: 'e2e-long', missing: qemuMissing }),
  long({ name: 'kubernetes-long', missing: kubernetesMissing }),
  long({ name: 'kubectl-long', missing: kubectlMissing }),
  long({ name: 'postgresql-long', beside: 'waiting', missing: postgresqlMissing }),
  long({ name: 'database-long', setup: 'test/database.ts', beside: 'waiting' }),
  long({ name: 'unit-long', beside: 'waiting' }),
]

const unit: Tier = {
  ...named({
    name: 'unit',
    workersMaximum: 2,
    testTimeoutMilliseconds: 60_000,
    deadlineMinutes: 12,
    isIsolated: false,
  }),
  include: ['test/**/*.test.ts'],
  exclude: special.flatMap((tier) => tier.include),
}

/** How long a test waits for a condition by default. */
export const patienceMilliseconds = ({ testTimeoutMilliseconds }: Tier): number => testTimeoutMilliseconds * 0.75
/** The variable that passes it to tests. */
export const PATIENCE_VARIABLE = 'SVCCLOUD_TEST_PATIENCE_MILLISECONDS'

/** In the order in which they run: the fastest to fail come first. Those that need the processor all the time come
 *  last, when the background tiers, which use the remaining time, have ended. */
export const TIERS: readonly Tier[] = [unit, ...special]

/** The tier of a file, by its path from the root; undefined for a file that is not a test. */
export function tierOf(file: string): Tier | undefined {
  const isAmong = (globs: readonly string[]) => globs.some((glob) => matchesGlob(file, glob))
  return TIERS.find(({ include, exclude }) => isAmong(include) && !isAmong(exclude))
}

/** No tier needs it, but it is worth a line: some tests take another path as an ordinary user. */
export const userDescription = (): string => (isRoot() ? 'root' : 'an ordinary user')
