/** The templates of managed machines: a small Debian with what edges and load balancers run, one with what databases
 *  run, and two with what nodes of Kubernetes and whole clusters run, each with the script that the agent of the host
 *  talks to. They have no cloud-init, and nobody can sign in but to dev clusters. */
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { defined } from '../../../../domain/defined.ts'
import {
  DATABASE_TEMPLATE,
  DEV_CLUSTER_TEMPLATE,
  KUBERNETES_NODE_TEMPLATE,
  MANAGED_TEMPLATE,
  type ManagedTemplate,
} from '../../../../domain/managed-machine/rules.ts'
import { METADATA_ADDRESS } from '../../../../domain/network/metadata-service.ts'
import { ARCHIVE_HOST } from '../../../../integrations/object-storage/archive.ts'
import { type DebianSystem, debianVersion, FOREIGN_ROUTES_STAY, WITHOUT_CX16 } from '../debian-system.ts'
import { bakeFolder, bakeImages } from './bake-images.ts'
import { CONTENT_COMMANDS, CONTENT_PACKAGES } from './database-contents.ts'
import { partsOf, putProgram } from './program-tree.ts'
import {
  DEV_CLUSTER_VERSIONS,
  findDevClusterPrograms,
  findNodePrograms,
  NODE_VERSIONS,
  type NodePrograms,
  putNodePrograms,
  writeArchives,
} from './node-programs.ts'

/** Path of the script in the guest. */
export const MACHINE_SCRIPT = '/usr/libexec/svccloud/machine'
const SCRIPT_FILE = join(import.meta.dirname, 'machine')

/** Of every machine. */
const PACKAGES = [
  'systemd',
  'systemd-sysv',
  'dbus',
  'udev',
  'kmod',
  'linux-image-cloud-amd64',
  'e2fsprogs',
  'iproute2',
  'procps',
  'netbase',
  'python3',
  'nftables',
  'qemu-guest-agent',
]
const AGENT_COMMANDS = [
  'guest-sync',
  'guest-sync-delimited',
  'guest-ping',
  'guest-info',
  'guest-exec',
  'guest-exec-status',
  'guest-shutdown',
  'guest-fsfreeze-status',
  'guest-fsfreeze-freeze',
  'guest-fsfreeze-thaw',
]
/** Compiled once: it would take a second of each of their starts where processors are emulated. */
const COMPILED = ['python3', '-m', 'compileall', '-q', dirname(MACHINE_SCRIPT)]
/** The kernel, and what it starts first, end by a new boot where they would stand still for ever, with nobody there to
 *  see it: on a host that is too busy, programs that systemd waits for at its beginning can take too long. */
const KERNEL_ARGUMENTS = [WITHOUT_CX16, 'panic=10', 'systemd.crash_action=reboot']
const networkFile = (name: string, metric: number): string =>
  `[Match]\nName=${name}\n[Network]\nDHCP=yes\nIPv6AcceptRA=yes\n[DHCPv4]\nRouteMetric=${metric}\n` +
  `[IPv6AcceptRA]\nRouteMetric=${metric}\n`

const FILES: Readonly<Record<string, string>> = {
  'etc/fstab': '/dev/vda / ext4 defaults,discard,x-systemd.growfs 0 1\n',
  'etc/hostname': 'machine\n',
  'etc/initramfs-tools/conf.d/svccloud': 'MODULES=most\nCOMPRESS=gzip\n',
  'etc/qemu/qemu-ga.conf': `[general]\nallow-rpcs=${AGENT_COMMANDS.join(',')}\n`,
  'etc/systemd/network/10-public.network': networkFile('eth0', 100),
  'etc/systemd/network/20-private.network': networkFile('eth*', 1_024),
  ...FOREIGN_ROUTES_STAY,
  'etc/systemd/journald.conf.d/svccloud.conf': '[Journal]\nStorage=volatile\nRuntimeMaxUse=16M\n',
  'etc/systemd/system/svccloud-machine.service':
    '[Unit]\nDescription=What this machine was delivered last\nAfter=network.target\n' +
    `[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=${MACHINE_SCRIPT} boot\n` +
    '[Install]\nWantedBy=multi-user.target\n',
}

/** What is added for one template or another. */
interface Variant {
  /** What the packages are, for people. */
  readonly installs: string
  readonly packages: readonly string[]
  readonly files: Readonly<Record<string, string>>
  /** Names of what lies beside the script, here and in the guest. */
  readonly scripts: readonly string[]
  /** Started by the script, with what was delivered, and never by themselves. */
  readonly masked: readonly string[]
  readonly commands: DebianSystem['commands']
  readonly diskGibibytes: number
  readonly enabled?: readonly string[]
  readonly links?: DebianSystem['links']
  /** Of what is put in besides. */
  readonly versions?: unknown
  /** A program of this project that is put in with what it needs. */
  readonly program?: string
  readonly fill?: DebianSystem['fill']
}

async function putKubernetes(root: string, programs: NodePrograms): Promise<void> {
  await putNodePrograms(root, programs)
  await writeArchives(bakeFolder(root), programs)
  await bakeImages(root, Object.keys(programs.images))
}

/** Of volumes of Kubernetes. */
const DRIVER = 'addons/csi/main.ts'

const VARIANTS: Readonly<Record<ManagedTemplate, Variant>> = {
  [MANAGED_TEMPLATE]: {
    installs: 'the programs of edges and load balancers and the kernel',
    packages: ['haproxy', 'keepalived', 'tayga', 'unbound', 'openssh-server'],
    files: {},
    scripts: [],
    masked: ['haproxy', 'keepalived', 'tayga', 'unbound', 'ssh.service', 'ssh.socket', 'nftables'],
    commands: [
      // A password that is none, and no lock: the server would refuse a locked user's keys.
      ['useradd', '--system', '--no-create-home', '--shell', '/usr/sbin/nologin', '--password', '*', 'admin'],
    ],
    diskGibibytes: 2,
  },
  [DATABASE_TEMPLATE]: {
    installs: 'PostgreSQL, pgBackRest and the kernel',
    packages: ['postgresql-17', 'pgbackrest', ...CONTENT_PACKAGES],
    files: {
      // The host passes on what is sent there.
      'etc/hosts': `127.0.0.1 localhost\n::1 localhost\n${METADATA_ADDRESS} ${ARCHIVE_HOST}\n`,
      // The data is elsewhere.
      'etc/postgresql-common/createcluster.d/svccloud.conf': 'create_main_cluster = false\n',
    },
    scripts: ['database.py'],
    masked: ['postgresql', 'nftables'],
    commands: [COMPILED, ...CONTENT_COMMANDS],
    diskGibibytes: 3,
  },
  [KUBERNETES_NODE_TEMPLATE]: {
    installs: 'containerd, the network of pods and the kernel',
    // iptables is what ports of hosts are made with.
    packages: [
      'containerd',
      'runc',
      'containernetworking-plugins',
      'systemd-resolved',
      'iptables',
      'socat',
      // Of file systems of volumes, and what runs their driver.
      'xfsprogs',
      'libstdc++6',
      // What an image of containers is made of.
      'busybox-static',
    ],
    files: {},
    scripts: ['kubernetes.py'],
    masked: ['containerd', 'nftables'],
    commands: [COMPILED],
    diskGibibytes: 4,
    enabled: ['systemd-resolved'],
    links: { '/etc/resolv.conf': '/run/systemd/resolve/stub-resolv.conf' },
    versions: NODE_VERSIONS,
    program: DRIVER,
    async fill(root) {
      await putKubernetes(root, await findNodePrograms(root))
      await putProgram(join(root, 'opt/svccloud'), DRIVER)
    },
  },
  [DEV_CLUSTER_TEMPLATE]: {
    installs: 'containerd, the network of pods, an ingress and the kernel',
    packages: [
      'containerd',
      'runc',
      'containernetworking-plugins',
      'systemd-resolved',
      'iptables',
      'socat',
      'haproxy',
      'openssl',
      'openssh-server',
      'busybox-static',
    ],
    files: {},
    scripts: ['kubernetes.py', 'dev_cluster.py', 'ingress.py'],
    masked: ['containerd', 'nftables', 'haproxy', 'ssh.service', 'ssh.socket'],
    commands: [COMPILED],
    diskGibibytes: 4,
    enabled: ['systemd-resolved'],
    links: { '/etc/resolv.conf': '/run/systemd/resolve/stub-resolv.conf' },
    versions: DEV_CLUSTER_VERSIONS,
    async fill(root) {
      await putKubernetes(root, await findDevClusterPrograms(root))
    },
  },
}

/** The script and what lies beside it, by their paths in the guest without the leading slash. */
async function programsOf(template: ManagedTemplate): Promise<Readonly<Record<string, string>>> {
  const folder = dirname(MACHINE_SCRIPT).slice(1)
  const beside = VARIANTS[template].scripts.map(
    async (name) => [join(folder, name), await readFile(join(import.meta.dirname, name), 'utf8')] as const,
  )
  return {
    [MACHINE_SCRIPT.slice(1)]: await readFile(SCRIPT_FILE, 'utf8'),
    ...Object.fromEntries(await Promise.all(beside)),
  }
}

/** Everything that the image is made from here, as one text: another one is another version. */
export async function recipeOf(template: ManagedTemplate): Promise<string> {
  const { program } = VARIANTS[template]
  const put = program === undefined ? [] : [await partsOf(program)]
  return JSON.stringify([await programsOf(template), PACKAGES, FILES, KERNEL_ARGUMENTS, VARIANTS[template], ...put])
}

const digestOf = async (template: ManagedTemplate): Promise<string> =>
  createHash('sha256')
    .update(await recipeOf(template))
    .digest('hex')
    .slice(0, 12)

/** Versions sort by their time, and say which recipe they are of. */
export const managedVersion = async (template: ManagedTemplate, now: Date): Promise<string> =>
  `${debianVersion(now)}-${await digestOf(template)}`
/** Whether the version is of the recipe as it is now. */
export const isManagedVersion = async (template: ManagedTemplate, version: string): Promise<boolean> =>
  version.endsWith(`-${await digestOf(template)}`)

export async function managedSystem(template: ManagedTemplate): Promise<DebianSystem> {
  const {
    installs,
    packages,
    files,
    masked,
    commands,
    diskGibibytes,
    enabled = [],
    links = {},
    fill,
  } = VARIANTS[template]
  return {
    ...defined({ fill }),
    installs,
    masked,
    commands,
    packages: [...PACKAGES, ...packages],
    files: { ...FILES, ...files },
    programs: await programsOf(template),
    enabled: ['systemd-networkd', 'svccloud-machine', ...enabled],
    links,
    diskBytes: diskGibibytes * 1024 ** 3,
    kernelArguments: KERNEL_ARGUMENTS,
  }
}
