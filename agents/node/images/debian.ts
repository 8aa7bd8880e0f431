/** Templates of Debian, built with debootstrap: by the agent of a host for the first server of a template, or
 *  beforehand by `npm run image:debian`, `image:managed`, `image:database` and `image:kubernetes`. Needs root. The
 *  system has no boot loader: its kernel is a file beside its disk, and the hypervisor loads it. The disk is one file
 *  system without partitions, which grows to the size of the volume at first boot. */
import { chmod, copyFile, mkdir, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { defined } from '../../../domain/defined.ts'
import {
  DATABASE_TEMPLATE,
  DEV_CLUSTER_TEMPLATE,
  KUBERNETES_NODE_TEMPLATE,
  MANAGED_TEMPLATE,
  MANAGED_TEMPLATES,
} from '../../../domain/managed-machine/rules.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import {
  environment,
  exitProcess,
  isRoot,
  printErrorLine,
  printLine,
  processArguments,
} from '../../../kit/sys/process.ts'
import { makeFolder } from '../../../kit/sys/make-folder.ts'
import { lockFolder } from '../folder-lock.ts'
import { runProgram } from '../run-program.ts'
import { unpackPackages } from './debian-packages.ts'
import { type DebianSystem, debianVersion, FOREIGN_ROUTES_STAY } from './debian-system.ts'
import { managedSystem, managedVersion } from './managed/recipe.ts'
import { ImageUnavailable, MANIFEST_FILE, type TemplateManifest } from './recipe.ts'
import { publish } from './publish.ts'
import { SOURCE_ROUTES_FILE } from './source-routes.ts'
import { inWorkFolder } from './work-folder.ts'

const SUITE = 'trixie'
const TEMPLATE = 'debian-13'
const PACKAGES = [
  'systemd',
  'systemd-sysv',
  'systemd-resolved',
  'dbus',
  'linux-image-cloud-amd64',
  'cloud-init',
  'e2fsprogs',
  'openssh-server',
  'sudo',
  'ca-certificates',
  'iproute2',
  'iputils-ping',
  'netbase',
  'less',
  'procps',
  'qemu-guest-agent',
]
const BUILD_TIMEOUT_MILLISECONDS = 1_800_000

/** Path of the script in the guest. */
const SOURCE_ROUTES = '/usr/libexec/svccloud/source-routes'

const FILES: Readonly<Record<string, string>> = {
  'etc/fstab': '/dev/vda / ext4 defaults,discard 0 1\n',
  'etc/hostname': 'localhost\n',
  // The platform's disk is the only source; a search for others costs seconds at every boot.
  'etc/cloud/cloud.cfg.d/90-svccloud.cfg':
    'datasource_list: [NoCloud, None]\nsystem_info:\n  network:\n    renderers: [networkd]\ngrowpart:\n  mode: "off"\n',
  // For interfaces that are plugged in later. cloud-init configures the interfaces that exist at boot, and takes
  // precedence.
  'etc/systemd/network/90-plugged-in.network':
    '[Match]\nType=ether\n\n[Network]\nDHCP=yes\nIPv6AcceptRA=yes\n\n[DHCPv4]\nRouteMetric=2048\n\n' +
    '[IPv6AcceptRA]\nRouteMetric=2048\n',
  ...FOREIGN_ROUTES_STAY,
  'etc/systemd/system/source-routes.service':
    '[Unit]\nDescription=Answers at the interface that was asked\nAfter=network-pre.target\n' +
    `[Service]\nExecStart=${SOURCE_ROUTES} follow\nRestart=always\n` +
    '[Install]\nWantedBy=multi-user.target\n',
  'etc/cloud/ds-identify.cfg': 'policy: enabled\n',
  'etc/initramfs-tools/conf.d/svccloud': 'MODULES=most\nCOMPRESS=gzip\n',
}

export const debianSystem = async (): Promise<DebianSystem> => ({
  packages: PACKAGES,
  installs: 'cloud-init, SSH and the kernel',
  files: FILES,
  programs: { [SOURCE_ROUTES.slice(1)]: await readFile(SOURCE_ROUTES_FILE, 'utf8') },
  enabled: ['systemd-networkd', 'systemd-resolved', 'ssh', 'source-routes'],
  masked: [],
  commands: [],
  links: { '/etc/resolv.conf': '/run/systemd/resolve/stub-resolv.conf' },
  diskBytes: 3 * 1024 ** 3,
  kernelArguments: [],
})

/** Skips the sync of each file: the image is created from the files once all exist. */
const UNSYNCED = ['-o', 'Dpkg::Options::=--force-unsafe-io']

/** Prevents packages from starting their services on the host. */
const NO_SERVICES = 'usr/sbin/policy-rc.d'

/** Other programs that a host needs, and the Debian packages that contain them. */
const PROGRAMS: readonly (readonly [program: string, packageName: string])[] = [
  ['wget', 'wget'],
  ['gpgv', 'gpgv'],
  ['chroot', 'coreutils'],
  ['mkfs.ext4', 'e2fsprogs'],
  ['qemu-img', 'qemu-utils'],
]

export interface DebianBuild {
  /** Folder for the image; it must not exist. */
  readonly image: string
  /** Folder that may be deleted afterwards. */
  readonly work: string
  /** Source of packages; debootstrap's default when absent. */
  readonly mirror?: string | undefined
  readonly system: DebianSystem
  /** Called at the start of each step. */
  readonly onStep: (what: string) => void
}

/** Throws ImageUnavailable with the reason when this host cannot build images. */
async function requirePrograms(): Promise<void> {
  if (!isRoot())
    throw new ImageUnavailable(
      'it is built by root, who alone may enter the new system: run sudo npm run image:debian, image:managed for the ' +
        'machines of edges and load balancers, image:database for those of databases, or image:kubernetes for nodes ' +
        'of clusters, once on this host',
    )
  for (const [program, packageName] of PROGRAMS)
    await runProgram('which', [program]).catch(() => {
      throw new ImageUnavailable(`it is built with ${program}: apt-get install ${packageName} brings it`)
    })
}

/** The command for debootstrap: the host's own, or that of its package, unpacked but not installed. */
async function findDebootstrap(work: string): Promise<{ readonly call: readonly string[]; readonly folder?: string }> {
  if (await runProgram('which', ['debootstrap']).catch(() => undefined)) return { call: ['debootstrap'] }
  const folder = join(work, 'debootstrap')
  const root = await unpackPackages({ names: ['debootstrap', 'debian-archive-keyring'] }, folder)
  const keyring = join(root, 'usr/share/keyrings/debian-archive-keyring.gpg')
  return {
    call: ['sh', join(root, 'usr/sbin/debootstrap'), `--keyring=${keyring}`],
    folder: join(root, 'usr/share/debootstrap'),
  }
}

/** Builds the image. Throws ImageUnavailable when this host cannot. */
export async function buildDebian({ image, work, mirror, system, onStep }: DebianBuild): Promise<void> {
  await requirePrograms()
  const debootstrap = await findDebootstrap(work)
  const run = (program: string, ...input: string[]) =>
    runProgram(program, input, {
      timeoutMilliseconds: BUILD_TIMEOUT_MILLISECONDS,
      environment: {
        ...environment(),
        LC_ALL: 'C',
        DEBIAN_FRONTEND: 'noninteractive',
        ...defined({ DEBOOTSTRAP_DIR: debootstrap.folder }),
      },
    })
  const root = join(work, 'root')
  await chmod(work, 0o755)
  onStep(`unpacking Debian ${SUITE} (a minute or two)`)
  const [program = 'debootstrap', ...flags] = debootstrap.call
  await run(program, ...flags, '--variant=minbase', SUITE, root, ...(mirror === undefined ? [] : [mirror]))
  await put(root, system)
  // Uses apt, because debootstrap does not know packages that replace others.
  onStep(`installing ${system.installs} (a few minutes)`)
  await writeFile(join(root, NO_SERVICES), '#!/bin/sh\nexit 101\n', { mode: 0o755 })
  await run(
    'chroot',
    root,
    'apt-get',
    'install',
    '-qq',
    '--yes',
    '--no-install-recommends',
    ...UNSYNCED,
    ...system.packages,
  )
  await run('chroot', root, 'systemctl', 'enable', ...system.enabled)
  if (system.masked.length > 0) await run('chroot', root, 'systemctl', 'mask', ...system.masked)
  for (const command of system.commands) await run('chroot', root, ...command)
  await run('chroot', root, 'apt-get', 'clean')
  await rm(join(root, NO_SERVICES))
  // Every machine creates its own.
  await writeFile(join(root, 'etc/machine-id'), '')
  for (const name of await readdir(join(root, 'etc/ssh')).catch(() => []))
    if (name.startsWith('ssh_host_')) await rm(join(root, 'etc/ssh', name))
  await rm(join(root, 'etc/resolv.conf'), { force: true })
  await system.fill?.(root)
  for (const [path, target] of Object.entries(system.links)) await run('chroot', root, 'ln', '-s', target, path)

  onStep('writing the disk')
  await mkdir(image)
  const boot = await readdir(join(root, 'boot'))
  const newest = (prefix: string) =>
    boot
      .filter((name) => name.startsWith(prefix))
      .sort()
      .at(-1) ?? fail(`the system has no ${prefix}`)
  await copyFile(join(root, 'boot', newest('vmlinuz-')), join(image, 'vmlinuz'))
  await copyFile(join(root, 'boot', newest('initrd.img-')), join(image, 'initrd.img'))
  const raw = join(work, 'disk.raw')
  await writeFile(raw, '')
  await truncate(raw, system.diskBytes)
  await run('mkfs.ext4', '-q', '-L', 'root', '-d', root, raw)
  await run('qemu-img', 'convert', '-f', 'raw', '-O', 'qcow2', raw, join(image, 'disk.qcow2'))
  const manifest: TemplateManifest = {
    kernel: 'vmlinuz',
    initialRamdisk: 'initrd.img',
    commandLine: ['root=/dev/vda rw console=ttyS0 quiet net.ifnames=0', ...system.kernelArguments].join(' '),
    disk: 'disk.qcow2',
  }
  await writeFile(join(image, MANIFEST_FILE), `${JSON.stringify(manifest, undefined, 2)}\n`)
}

async function put(root: string, { files, programs }: DebianSystem): Promise<void> {
  const write = async (path: string, text: string, mode: number) => {
    await mkdir(join(root, path, '..'), { recursive: true })
    await writeFile(join(root, path), text, { mode })
  }
  for (const [path, text] of Object.entries(files)) await write(path, text, 0o644)
  for (const [path, text] of Object.entries(programs)) await write(path, text, 0o755)
}

function fail(why: string): never {
  throw new ImageUnavailable(why)
}

export const DEBIAN = TEMPLATE

const HELP = `Builds a template of Debian ${SUITE} in a few minutes: ${TEMPLATE} (with cloud-init and SSH),
${MANAGED_TEMPLATE} (for edges and load balancers), ${DATABASE_TEMPLATE} (for databases), and after npm run
build:kubernetes ${KUBERNETES_NODE_TEMPLATE} (for nodes of clusters) or ${DEV_CLUSTER_TEMPLATE}. Needs root.
Without the first, the first server of ${TEMPLATE} on a host builds that there; without the others a zone does not
offer what runs on them.

npm run image:debian -- [flags]
npm run image:managed -- [flags]
npm run image:database -- [flags]
npm run image:kubernetes -- [flags]
npm run image:dev-cluster -- [flags]

  --images DIR     Folder of images (default: SVCCLOUD_IMAGE_CACHE, else .svccloud/images)
  --mirror URL     Where Debian packages come from (default: debootstrap's own choice)
  --template NAME  Which one (default: ${TEMPLATE}; the other commands name theirs)
  --help           Show this text

Building again makes a newer version: new servers get it, those that are there keep theirs.`

async function main(): Promise<void> {
  const { values } = parseArgs({
    args: [...processArguments()],
    options: {
      images: { type: 'string' },
      mirror: { type: 'string' },
      template: { type: 'string', default: TEMPLATE },
      help: { type: 'boolean' },
    },
  })
  if (values.help === true) return printLine(HELP)
  const images = resolve(values.images ?? environment()['SVCCLOUD_IMAGE_CACHE'] ?? '.svccloud/images')
  const managed = MANAGED_TEMPLATES.find((name) => name === values.template)
  const template = managed ?? TEMPLATE
  if (template !== values.template) fail(`there is no recipe of ${values.template}`)
  await makeFolder(join(images, template))
  const unlock = await lockFolder(join(images, template), systemClock)
  try {
    await inWorkFolder(images, template, async (work) => {
      const image = join(work, 'image')
      const system = await (managed === undefined ? debianSystem() : managedSystem(managed))
      await buildDebian({ image, work, mirror: values.mirror, system, onStep: printLine })
      const now = systemClock.now()
      const version = await (managed === undefined ? debianVersion(now) : managedVersion(managed, now))
      await publish(image, join(images, template, version))
      printLine(`template ${template}, version ${version}, is in ${images}`)
    })
  } finally {
    unlock()
  }
}

if (import.meta.main)
  await main().catch((error: unknown) => {
    printErrorLine(error instanceof Error ? error.message : String(error))
    exitProcess(1)
  })
