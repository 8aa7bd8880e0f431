/** The template `tiny-linux`: a Debian cloud kernel with an initial file system of busybox and dropbear. Boots in
 *  seconds, even without KVM. All its content comes from Debian packages and the scripts beside this file. */
import { createHash } from 'node:crypto'
import { copyFile, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { runProgram } from '../../run-program.ts'
import { type ArchiveEntry, writeCpio } from '../cpio.ts'
import { unpackPackages } from '../debian-packages.ts'
import { ImageUnavailable, MANIFEST_FILE, type TemplateManifest } from '../recipe.ts'
import { SOURCE_ROUTES_FILE } from '../source-routes.ts'

/** dropbear, the programs for scp and sftp, and their libraries, including the C library. */
const PACKAGES = [
  'busybox-static',
  'dropbear-bin',
  'openssh-sftp-server',
  'libc6',
  'libcrypt1',
  'libtomcrypt1',
  'libtommath1',
  'libgmp10',
  'zlib1g',
] as const
const KERNELS = ['linux-image-cloud-amd64', 'linux-image-virtual', 'linux-image-amd64'] as const
const PROGRAMS = ['usr/sbin/dropbear', 'usr/bin/dropbearkey', 'usr/lib/openssh/sftp-server'] as const
const LIBRARIES = [
  'libc.so.6',
  'libcrypt.so.1',
  'libtomcrypt.so.1',
  'libtommath.so.1',
  'libgmp.so.10',
  'libz.so.1',
] as const
const LOADER = 'ld-linux-x86-64.so.2'
const LIBRARY_FOLDERS = ['lib/x86_64-linux-gnu', 'usr/lib/x86_64-linux-gnu', 'lib64', 'usr/lib64'] as const
/** Modules that `init` loads; a kernel may have one built in instead. */
const MODULES = [
  'virtio_ring',
  'virtio',
  'virtio_pci_legacy_dev',
  'virtio_pci_modern_dev',
  'virtio_pci',
  'virtio_mmio',
  'virtio_blk',
  'failover',
  'net_failover',
  'virtio_net',
  'virtio_balloon',
  'virtio-rng',
  'virtio_console',
  'button',
  'evdev',
  'cdrom',
  'isofs',
] as const

const SCRIPTS = {
  init: 'init',
  services: 'etc/services.sh',
  interface: 'etc/interface.sh',
  end: 'sbin/poweroff',
  'udhcpc.script': 'etc/udhcpc.script',
} as const
const SCRIPT_NAMES = ['init', 'services', 'interface', 'end', 'udhcpc.script'] as const
/** Paths of scripts in the image, and of their sources here. */
const SCRIPT_FILES: readonly (readonly [path: string, source: string])[] = [
  ...SCRIPT_NAMES.map((name) => [SCRIPTS[name], join(import.meta.dirname, name)] as const),
  ['etc/source-routes.sh', SOURCE_ROUTES_FILE],
]

const FOLDERS = [
  'bin',
  'sbin',
  'usr',
  'usr/bin',
  'usr/sbin',
  'usr/lib',
  'usr/lib/openssh',
  'lib',
  'lib64',
  'lib/modules',
  'proc',
  'sys',
  'dev',
  'tmp',
  'etc',
  'etc/acpi',
  'etc/acpi/PWRF',
  'root',
  'root/.ssh',
  'seed',
  'data',
  'run',
  'var',
  'var/run',
  'var/log',
]
const TEXTS: Readonly<Record<string, string>> = {
  'etc/passwd': 'root:x:0:0:root:/root:/bin/sh\n',
  'etc/shadow': 'root:*:19000:0:99999:7:::\n',
  'etc/group': 'root:x:0:\ntty:x:5:\n',
  'etc/shells': '/bin/sh\n',
  'etc/nsswitch.conf': 'passwd: files\ngroup: files\nhosts: files dns\n',
  'etc/inittab':
    'ttyS0::respawn:-/bin/sh\n::once:/etc/services.sh\n::ctrlaltdel:/sbin/reboot\n::shutdown:/bin/umount /data\n',
  'etc/profile': "export HOME=/root PATH=/sbin:/bin:/usr/sbin:/usr/bin\nexport PS1='root@\\h:\\w# '\ncd\n",
}

/** Files are not compressed, and the kernel does not test its ciphers. These would take a tenth of the boot of an
 *  emulated processor. */
const MANIFEST: TemplateManifest = {
  kernel: 'vmlinuz',
  initialRamdisk: 'initrd',
  commandLine: 'console=ttyS0 quiet panic=-1 cryptomgr.notests',
}

/** Digest of the image's contents without the versions of the packages. The system runs in memory, so nothing depends
 *  on those. */
export async function tinyLinuxRecipeDigest(): Promise<string> {
  const digest = createHash('sha256').update(JSON.stringify([PACKAGES, KERNELS, MODULES, FOLDERS, TEXTS, MANIFEST]))
  for (const [, source] of SCRIPT_FILES) digest.update(await readFile(source))
  return digest.digest('hex').slice(0, 16)
}

/** Builds the image into the folder; `work` may be deleted afterwards. ImageUnavailable with the reason when the build
 *  is impossible. */
export async function buildTinyLinux(folder: string, work: string): Promise<void> {
  const root = await unpackPackages({ names: PACKAGES, kernels: KERNELS }, work)
  const release = (await readdir(join(root, 'lib', 'modules')))[0]
  if (release === undefined) throw new ImageUnavailable('the kernel package holds no modules')
  await mkdir(folder, { recursive: true })
  await copyFile(join(root, 'boot', `vmlinuz-${release}`), join(folder, MANIFEST.kernel))
  const entries = await fileSystem(root, join(root, 'lib', 'modules', release))
  await writeFile(join(folder, MANIFEST.initialRamdisk), writeCpio(entries))
  await writeFile(join(folder, MANIFEST_FILE), `${JSON.stringify(MANIFEST, undefined, 2)}\n`)
}

async function fileSystem(root: string, modules: string): Promise<ArchiveEntry[]> {
  const file = async (path: string, from: string, mode: number): Promise<ArchiveEntry> => ({
    path,
    kind: 'file',
    content: await readFile(from),
    mode,
  })
  return [
    ...FOLDERS.map(
      (path: string): ArchiveEntry => ({ path, kind: 'folder', ...(path.startsWith('root') ? { mode: 0o700 } : {}) }),
    ),
    { path: 'dev/console', kind: 'character-device', major: 5, minor: 1 },
    { path: 'dev/null', kind: 'character-device', major: 1, minor: 3, mode: 0o666 },
    ...Object.entries(TEXTS).map(
      ([path, text]): ArchiveEntry => ({
        path,
        kind: 'file',
        content: Buffer.from(text),
        ...(path === 'etc/shadow' ? { mode: 0o600 } : {}),
      }),
    ),
    await file('bin/busybox', join(root, 'bin', 'busybox'), 0o755).catch(() =>
      file('bin/busybox', join(root, 'usr', 'bin', 'busybox'), 0o755),
    ),
    ...(await Promise.all(SCRIPT_FILES.map(([path, source]) => file(path, source, 0o755)))),
    // where dropbear expects it
    { path: 'usr/lib/sftp-server', kind: 'link', target: 'openssh/sftp-server' },
    { path: 'sbin/reboot', kind: 'link', target: 'poweroff' },
    { path: 'sbin/halt', kind: 'link', target: 'poweroff' },
    {
      path: 'etc/acpi/PWRF/00000080',
      kind: 'file',
      content: Buffer.from('#!/bin/sh\nexec /sbin/poweroff\n'),
      mode: 0o755,
    },
    ...(await Promise.all(PROGRAMS.map((path) => file(path, join(root, path), 0o755)))),
    ...(await Promise.all(LIBRARIES.map(async (name) => file(`lib/${name}`, await find(root, name), 0o755)))),
    await file(`lib64/${LOADER}`, await find(root, LOADER), 0o755),
    ...(await moduleEntries(modules)),
  ]
}

async function find(root: string, library: string): Promise<string> {
  for (const folder of LIBRARY_FOLDERS) {
    const names: string[] = await readdir(join(root, folder)).catch(() => [])
    if (names.includes(library)) return join(root, folder, library)
  }
  throw new ImageUnavailable(`the Debian packages hold no ${library}`)
}

/** Newer kernels have compressed modules, which busybox cannot load. */
async function moduleEntries(folder: string): Promise<ArchiveEntry[]> {
  const files = await readdir(folder, { recursive: true })
  const entries: ArchiveEntry[] = []
  for (const name of MODULES) {
    const path: string | undefined = files.find(
      (file) => file.endsWith(`/${name}.ko`) || file.endsWith(`/${name}.ko.xz`),
    )
    if (path === undefined) continue
    if (path.endsWith('.xz')) await runProgram('xz', ['--decompress', join(folder, path)])
    entries.push({
      path: `lib/modules/${name}.ko`,
      kind: 'file',
      content: await readFile(join(folder, path.replace(/\.xz$/, ''))),
    })
  }
  return entries
}
