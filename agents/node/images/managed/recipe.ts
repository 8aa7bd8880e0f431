/** The templates of managed machines: small Debian systems with the programs of edges and load balancers, of databases,
 *  of nodes of Kubernetes, and of complete clusters. Each contains the script that the agent of the host talks to. They
 *  have no cloud-init, and only dev clusters allow a login. */
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
import { programSources, putProgram } from './program-tree.ts'
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

/** Packages of every machine. */
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
/** Compiled at build time. With emulated processors, compiling takes a second of each start. */
const COMPILED = ['python3', '-m', 'compileall', '-q', dirname(MACHINE_SCRIPT)]
/** The kernel and the first programs reboot the machine instead of hanging unnoticed. On a host that is
 *  too busy, programs that systemd waits for at its start can take too long. */
const KERNEL_ARGUMENTS = [WITHOUT_CX16, 'panic=10', 'systemd.crash_action=reboot']
const networkFile = (name: string, metric: number): string =>
  `[Match]\nName=${name}\n[Network]\nDHCP=yes\nIPv6AcceptRA=yes\n[DHCPv4]\nRouteMetric=${metric}\n` +
  `[IPv6AcceptRA]\nRouteMetric=${metric}\n`

/** How every managed machine gets its addresses, whatever it is for: from DHCPv4, DHCPv6 and router advertisements of
 *  its network, by systemd-networkd. */
export const MACHINE_NETWORK: DebianSystem['files'] = {
  'etc/systemd/network/10-public.network': networkFile('eth0', 100),
  'etc/systemd/network/20-private.network': networkFile('eth*', 1_024),
  ...FOREIGN_ROUTES_STAY,
}

const FILES: Readonly<Record<string, string>> = {
  'etc/fstab': '/dev/vda / ext4 defaults,discard,x-systemd.growfs 0 1\n',
  'etc/hostname': 'machine\n',
  'etc/initramfs-tools/conf.d/svccloud': 'MODULES=most\nCOMPRESS=gzip\n',
  'etc/qemu/qemu-ga.conf': `[general]\nallow-rpcs=${AGENT_COMMANDS.join(',')}\n`,
  ...MACHINE_NETWORK,
  'etc/systemd/journald.conf.d/svccloud.conf': '[Journal]\nStorage=volatile\nRuntimeMaxUse=16M\n',
  'etc/systemd/system/svccloud-machine.service':
    '[Unit]\nDescription=What this machine was delivered last\nAfter=network.target\n' +
    `[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=${MACHINE_SCRIPT} boot\n` +
    '[Install]\nWantedBy=multi-user.target\n',
}

/** Additions for one template. */
interface Variant {
  /** Description of the packages, for people. */
  readonly installs: string
  readonly packages: readonly string[]
  readonly files: Readonly<Record<string, string>>
  /** Names of files beside the script, in this project and in the guest. */
  readonly scripts: readonly string[]
  /** Services that only the script starts, with a delivered configuration. */
  readonly masked: readonly string[]
  readonly commands: DebianSystem['commands']
  readonly diskGibibytes: number
  readonly enabled?: readonly string[]
  readonly links?: DebianSystem['links']
  /** Versions of other contents. */
  readonly versions?: unknown
  /** A program of this project to add with its dependencies. */
  readonly program?: string
  readonly fill?: DebianSystem['fill']
}

async function putKubernetes(root: string, programs: NodePrograms): Promise<void> {
  await putNodePrograms(root, programs)
  await writeArchives(bakeFolder(root), programs)
  await bakeImages(root, Object.keys(programs.images))
}

/** The driver of Kubernetes volumes. */
const DRIVER = 'addons/csi/main.ts'

const VARIANTS: Readonly<Record<ManagedTemplate, Variant>> = {
  [MANAGED_TEMPLATE]: {
    installs: 'the programs of edges and load balancers and the kernel',
    packages: ['haproxy', 'keepalived', 'tayga', 'unbound', 'openssh-server'],
    files: {},
    scripts: [],
    masked: ['haproxy', 'keepalived', 'tayga', 'unbound', 'ssh.service', 'ssh.socket', 'nftables'],
    commands: [
      // An invalid password instead of a lock: the SSH server refuses keys of a locked user.
      ['useradd', '--system', '--no-create-home', '--shell', '/usr/sbin/nologin', '--password', '*', 'admin'],
    ],
    diskGibibytes: 2,
  },
  [DATABASE_TEMPLATE]: {
    installs: 'PostgreSQL, pgBackRest and the kernel',
    packages: ['postgresql-17', 'pgbackrest', ...CONTENT_PACKAGES],
    files: {
      // The host relays connections to this address.
      'etc/hosts': `127.0.0.1 localhost\n::1 localhost\n${METADATA_ADDRESS} ${ARCHIVE_HOST}\n`,
      // The data are in another place.
      'etc/postgresql-common/createcluster.d/svccloud.conf': 'create_main_cluster = false\n',
    },
    scripts: ['database.py'],
    masked: ['postgresql', 'nftables'],
    commands: [COMPILED, ...CONTENT_COMMANDS],
    diskGibibytes: 3,
  },
  [KUBERNETES_NODE_TEMPLATE]: {
    installs: 'containerd, the network of pods and the kernel',
    // iptables implements ports of hosts.
    packages: [
      'containerd',
      'runc',
      'containernetworking-plugins',
      'systemd-resolved',
      'iptables',
      'socat',
      // Tools for file systems of volumes, and a library of their driver.
      'xfsprogs',
      'libstdc++6',
      // The program of a container image.
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

/** The script and the files beside it, by their paths in the guest without the leading slash. */
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

/** All inputs of the image from this project, as one text. A different text is a different version. */
export async function recipeOf(template: ManagedTemplate): Promise<string> {
  const { program } = VARIANTS[template]
  const put = program === undefined ? [] : [await programSources(program)]
  return JSON.stringify([await programsOf(template), PACKAGES, FILES, KERNEL_ARGUMENTS, VARIANTS[template], ...put])
}

const digestOf = async (template: ManagedTemplate): Promise<string> =>
  createHash('sha256')
    .update(await recipeOf(template))
    .digest('hex')
    .slice(0, 12)

/** Versions sort by time and name their recipe. */
export const managedVersion = async (template: ManagedTemplate, now: Date): Promise<string> =>
  `${debianVersion(now)}-${await digestOf(template)}`
/** Whether the version belongs to the current recipe. */
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
