/** The tiers of the test suite: which files belong to each, how long it may take, and what it needs of this machine.
 *  A file's tier stands in its name (`x.database.test.ts`); what is in `test/sim/` is of the simulation, or of
 *  endurance where its name says so. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { isRoot } from '../kit/sys/process.ts'
import { canHave, isBuilt } from './cluster/build.ts'

const run = promisify(execFile)

export interface Tier {
  readonly name: string
  readonly include: readonly string[]
  readonly exclude: readonly string[]
  /** A module that prepares what the tier's files share, once for all of them. */
  readonly setup?: string
  /** Files at the same time. Tiers that measure their patience in real seconds run alone. */
  readonly workersMaximum: number
  readonly testTimeoutMilliseconds: number
  /** The whole tier; the runner ends it then and counts it as failed. */
  readonly deadlineMilliseconds: number
  /** Runs only when it is requested by name. */
  readonly isOptIn: boolean
  /** Undefined when the tier can run here, else why it cannot, in words for people. */
  readonly missing: () => Promise<string | undefined>
}

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

async function networkMissing(): Promise<string | undefined> {
  if (!isRoot()) return 'network namespaces are made by root only'
  if (!(await answers('ping', '-V'))) return 'ping is not installed (Debian: iputils-ping)'
  for (const command of ['ovn-northd', 'ovn-controller', 'ovs-vswitchd', 'ovsdb-server', 'ethtool']) {
    if (!(await answers(command, '--version')))
      return `${command} is not installed (Debian: ovn-central, ovn-host, openvswitch-switch and ethtool)`
  }
  return qemuMissing()
}

/** What fencing asks, and somebody real to ask: a simulated management controller, and a cluster of one monitor. */
async function fencingMissing(): Promise<string | undefined> {
  for (const command of ['ipmitool', 'ipmi_sim', 'ceph', 'ceph-mon']) {
    if (!(await answers('which', command)))
      return `${command} is not installed (Debian: ipmitool, openipmi, ceph-common and ceph-mon)`
  }
  return undefined
}

interface TierInput {
  readonly name: string
  /** Those with the tier in their name, unless it says otherwise. */
  readonly files?: string
  readonly setup?: string
  readonly workersMaximum: number
  readonly testTimeoutMilliseconds: number
  readonly deadlineMinutes: number
  readonly isOptIn?: boolean
  readonly missing?: () => Promise<string | undefined>
}

const SIMULATION = 'test/sim/**/*.test.ts'
const ENDURANCE = 'test/**/*.endurance.test.ts'

const named = (input: TierInput): Tier => ({
  name: input.name,
  include: [input.files ?? `test/**/*.${input.name}.test.ts`],
  exclude: input.files === SIMULATION ? [ENDURANCE] : [],
  ...(input.setup === undefined ? {} : { setup: input.setup }),
  workersMaximum: input.workersMaximum,
  testTimeoutMilliseconds: input.testTimeoutMilliseconds,
  deadlineMilliseconds: input.deadlineMinutes * MINUTE_MILLISECONDS,
  isOptIn: input.isOptIn ?? false,
  missing: input.missing ?? nothing,
})

const special: readonly Tier[] = [
  named({
    name: 'database',
    setup: 'test/database.ts',
    workersMaximum: 2,
    testTimeoutMilliseconds: 60_000,
    deadlineMinutes: 8,
  }),
  named({
    name: 'kubectl',
    workersMaximum: 2,
    testTimeoutMilliseconds: 90_000,
    deadlineMinutes: 6,
    missing: kubectlMissing,
  }),
  named({
    name: 'qemu',
    workersMaximum: 2,
    testTimeoutMilliseconds: 180_000,
    deadlineMinutes: 8,
    missing: qemuMissing,
  }),
  named({
    name: 'network',
    workersMaximum: 1,
    testTimeoutMilliseconds: 180_000,
    deadlineMinutes: 6,
    missing: networkMissing,
  }),
  named({
    name: 'fencing',
    workersMaximum: 2,
    testTimeoutMilliseconds: 120_000,
    deadlineMinutes: 4,
    missing: fencingMissing,
  }),
  named({
    name: 'simulation',
    files: SIMULATION,
    setup: 'test/database.ts',
    workersMaximum: 2,
    testTimeoutMilliseconds: 480_000,
    deadlineMinutes: 14,
  }),
  named({
    name: 'e2e',
    workersMaximum: 2,
    testTimeoutMilliseconds: 300_000,
    deadlineMinutes: 12,
    missing: qemuMissing,
  }),
  named({
    name: 'endurance',
    workersMaximum: 1,
    testTimeoutMilliseconds: 300_000,
    deadlineMinutes: 32,
    isOptIn: true,
    missing: qemuMissing,
  }),
  named({
    name: 'cluster',
    workersMaximum: 1,
    testTimeoutMilliseconds: 300_000,
    deadlineMinutes: 20,
    isOptIn: true,
    missing: clusterMissing,
  }),
]

const unit: Tier = {
  ...named({ name: 'unit', workersMaximum: 2, testTimeoutMilliseconds: 30_000, deadlineMinutes: 5 }),
  include: ['test/**/*.test.ts'],
  exclude: special.flatMap((tier) => tier.include),
}

/** In the order in which they run: what fails fastest comes first. */
export const TIERS: readonly Tier[] = [unit, ...special]

/** Not needed by any tier, but worth a line: some tests take another path as an ordinary user. */
export const userDescription = (): string => (isRoot() ? 'root' : 'an ordinary user')
