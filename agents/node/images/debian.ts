/** `npm run image:debian`: builds the template `debian-13` with debootstrap. Needs root, debootstrap, mkfs.ext4 and
 *  qemu-img.
 *  The system has no boot loader: its kernel lies beside its disk, and the hypervisor loads it. The disk is one file
 *  system without
 *  partitions, which cloud-init grows to the size of the volume at first boot.
 *  Options: `--images DIR` (default SVCCLOUD_IMAGE_CACHE, else .svccloud/images), `--mirror URL` (default:
 *  debootstrap's own). */
import { chmod, copyFile, mkdir, mkdtemp, readdir, rm, truncate, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { systemClock } from '../../../kit/sys/clock.ts'
import {
  environment,
  exitProcess,
  isRoot,
  printErrorLine,
  printLine,
  processArguments,
} from '../../../kit/sys/process.ts'
import { runProgram } from '../run-program.ts'
import { MANIFEST_FILE, type TemplateManifest } from './recipe.ts'
import { publish } from './publish.ts'

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
]
const DISK_BYTES = 3 * 1024 ** 3
const BUILD_TIMEOUT_MILLISECONDS = 1_800_000

const FILES: Readonly<Record<string, string>> = {
  'etc/fstab': '/dev/vda / ext4 defaults,discard 0 1\n',
  'etc/hostname': 'localhost\n',
  // The platform's disk is the only source; looking for others costs seconds at every boot.
  'etc/cloud/cloud.cfg.d/90-svccloud.cfg':
    'datasource_list: [NoCloud, None]\nsystem_info:\n  network:\n    renderers: [networkd]\ngrowpart:\n  mode: "off"\n',
  'etc/cloud/ds-identify.cfg': 'policy: enabled\n',
  'etc/initramfs-tools/conf.d/svccloud': 'MODULES=most\nCOMPRESS=gzip\n',
}

/** Keeps packages from starting their services on the host. */
const NO_SERVICES = 'usr/sbin/policy-rc.d'

/** Builds the image and answers its version. */
async function buildDebian(images: string, mirror: string | undefined, say: (line: string) => void): Promise<string> {
  await mkdir(join(images, TEMPLATE), { recursive: true })
  const work = await mkdtemp(join(images, 'debian-'))
  const run = (program: string, ...input: string[]) =>
    runProgram(program, input, {
      timeoutMilliseconds: BUILD_TIMEOUT_MILLISECONDS,
      environment: { ...environment(), LC_ALL: 'C', DEBIAN_FRONTEND: 'noninteractive' },
    })
  try {
    const root = join(work, 'root')
    const image = join(work, 'image')
    await chmod(work, 0o755)
    say(`unpacking Debian ${SUITE} (a minute or two)`)
    await run('debootstrap', '--variant=minbase', SUITE, root, ...(mirror === undefined ? [] : [mirror]))
    for (const [path, text] of Object.entries(FILES)) {
      await mkdir(join(root, path, '..'), { recursive: true })
      await writeFile(join(root, path), text)
    }
    // By apt and not by debootstrap, which does not know of packages that stand in for others.
    say('installing cloud-init, SSH and the kernel (a few minutes)')
    await writeFile(join(root, NO_SERVICES), '#!/bin/sh\nexit 101\n', { mode: 0o755 })
    await run('chroot', root, 'apt-get', 'install', '-qq', '--yes', '--no-install-recommends', ...PACKAGES)
    await run('chroot', root, 'systemctl', 'enable', 'systemd-networkd', 'systemd-resolved', 'ssh')
    await run('chroot', root, 'apt-get', 'clean')
    await rm(join(root, NO_SERVICES))
    // Every machine makes its own.
    await writeFile(join(root, 'etc/machine-id'), '')
    for (const name of await readdir(join(root, 'etc/ssh')))
      if (name.startsWith('ssh_host_')) await rm(join(root, 'etc/ssh', name))
    await rm(join(root, 'etc/resolv.conf'), { force: true })
    await run('chroot', root, 'ln', '-s', '/run/systemd/resolve/stub-resolv.conf', '/etc/resolv.conf')

    say('writing the disk')
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
    await truncate(raw, DISK_BYTES)
    await run('mkfs.ext4', '-q', '-L', 'root', '-d', root, raw)
    await run('qemu-img', 'convert', '-f', 'raw', '-O', 'qcow2', raw, join(image, 'disk.qcow2'))
    const manifest: TemplateManifest = {
      kernel: 'vmlinuz',
      initialRamdisk: 'initrd.img',
      commandLine: 'root=/dev/vda rw console=ttyS0 quiet net.ifnames=0',
      disk: 'disk.qcow2',
    }
    await writeFile(join(image, MANIFEST_FILE), `${JSON.stringify(manifest, undefined, 2)}\n`)
    const version = systemClock
      .now()
      .toISOString()
      .replace(/[-:]|\.\d+/g, '')
    await publish(image, join(images, TEMPLATE, version))
    return version
  } finally {
    await rm(work, { recursive: true, force: true })
  }
}

function fail(why: string): never {
  printErrorLine(why)
  return exitProcess(1)
}

if (import.meta.main) {
  const { values } = parseArgs({
    args: [...processArguments()],
    options: { images: { type: 'string' }, mirror: { type: 'string' } },
  })
  if (!isRoot()) fail('image:debian needs root: debootstrap makes device files and enters the new system')
  for (const [program, packageName] of [
    ['debootstrap', 'debootstrap'],
    ['mkfs.ext4', 'e2fsprogs'],
    ['qemu-img', 'qemu-utils'],
  ] as const) {
    const where = await runProgram('which', [program]).catch(() => undefined)
    if (where === undefined) fail(`image:debian needs ${program} (Debian package ${packageName})`)
  }
  const images = resolve(values.images ?? environment()['SVCCLOUD_IMAGE_CACHE'] ?? '.svccloud/images')
  const version = await buildDebian(images, values.mirror, printLine).catch((error: unknown) =>
    fail(error instanceof Error ? error.message : String(error)),
  )
  printLine(`template ${TEMPLATE}, version ${version}, is in ${images}`)
}
