/** Light guests in place of the images of managed machines, for tests of networks: tiny-linux, which boots in seconds
 *  where guests are emulated, with systemd-networkd and the network part of those images (`MACHINE_NETWORK`) instead
 *  of DHCP by busybox. They have no other program of the images: something answers at the ports of databases and of dev
 *  clusters, and says nothing. */
import { constants } from 'node:fs'
import { appendFile, cp, mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { type ArchiveEntry, writeCpio } from '../../agents/node/images/cpio.ts'
import { unpackPackages } from '../../agents/node/images/debian-packages.ts'
import { MACHINE_NETWORK, managedVersion } from '../../agents/node/images/managed/recipe.ts'
import { openTemplateStore } from '../../agents/node/images/template-store.ts'
import { DEV_API_PORT } from '../../domain/dev-cluster/rules.ts'
import { MANAGED_TEMPLATES } from '../../domain/managed-machine/rules.ts'
import { systemClock } from '../../kit/sys/clock.ts'
import { silentLog } from '../../kit/sys/log.ts'
import { until } from '../eventually.ts'
import { IMAGE_CACHE } from './product.ts'

const BUILD_MILLISECONDS = 300_000
const TINY_LINUX = 'tiny-linux'
/** systemd-networkd and the libraries that it is linked with. */
const PACKAGES = [
  'systemd',
  'libsystemd-shared',
  'libacl1',
  'libaudit1',
  'libblkid1',
  'libc6',
  'libcap-ng0',
  'libcap2',
  'libcrypt1',
  'libgcrypt20',
  'libgpg-error0',
  'libip4tc2',
  'libkmod2',
  'liblz4-1',
  'liblzma5',
  'libmount1',
  'libpam0g',
  'libpcre2-8-0',
  'libseccomp2',
  'libselinux1',
  'libzstd1',
] as const
/** The package of one library, by the release of Debian. */
const CRYPTO_PACKAGES = ['libssl3', 'libssl3t64'] as const
const NETWORKD = 'lib/systemd/systemd-networkd'
const LIBRARY = /^(?:usr\/)?lib\/x86_64-linux-gnu\/(?:systemd\/)?([^/]+\.so[^/]*)$/
const DATABASE_PORT = 5_432

/** What is put over the files of tiny-linux. networkd does not wait for udev, which is not here, while /sys cannot be
 *  written. */
const TEXTS: Readonly<Record<string, readonly [text: string, mode: number]>> = {
  'etc/interface.sh': ['#!/bin/sh\nexit 0\n', 0o755],
  'etc/passwd': ['root:x:0:0:root:/root:/bin/sh\nsystemd-network:x:998:998::/:/bin/false\n', 0o644],
  'etc/group': ['root:x:0:\ntty:x:5:\nsystemd-network:x:998:\n', 0o644],
  'etc/services.sh': [
    `#!/bin/sh
tr -d - < /proc/sys/kernel/random/uuid > /etc/machine-id
mkdir -p /run/systemd/netif/links /run/systemd/netif/leases /run/systemd/netif/lldp
chown -R systemd-network /run/systemd/netif
mount -o remount,ro /sys
httpd -p ${DATABASE_PORT} -h /run
httpd -p ${DEV_API_PORT} -h /run
LD_LIBRARY_PATH=/usr/lib/networkd exec /usr/lib/networkd/systemd-networkd > /dev/ttyS0 2>&1
`,
    0o755,
  ],
}

/** Makes the folder a cache of images and answers its path: tiny-linux, the managed templates that are there in the
 *  source, and light guests under the names of the others. The source itself, when it has all of them. */
export async function openImages(
  folder: string,
  { source, there }: { readonly source: string | undefined; readonly there: readonly string[] },
): Promise<string> {
  const templates = MANAGED_TEMPLATES.filter((template) => !there.includes(template))
  if (source !== undefined && templates.length === 0) return source
  const tiny = await tinyLinux()
  await mkdir(folder, { recursive: true })
  await cp(dirname(dirname(tiny.boot.kernel)), join(folder, TINY_LINUX), { recursive: true })
  if (source !== undefined)
    for (const template of there)
      await cp(join(source, template), join(folder, template), { recursive: true, mode: constants.COPYFILE_FICLONE })
  const work = await mkdtemp(join(folder, 'light-'))
  try {
    const overlay = writeCpio(await entries(work))
    for (const template of templates) {
      const image = join(folder, template, await managedVersion(template, systemClock.now()))
      await cp(dirname(tiny.boot.kernel), image, { recursive: true })
      await appendFile(join(image, basename(tiny.boot.initialRamdisk)), overlay)
    }
  } finally {
    await rm(work, { recursive: true })
  }
  return folder
}

async function tinyLinux() {
  const store = openTemplateStore({ folder: IMAGE_CACHE, clock: systemClock, log: silentLog })
  const state = await until(
    TINY_LINUX,
    async () => {
      store.prepare(TINY_LINUX)
      return store.newest(TINY_LINUX)
    },
    ({ is }) => is === 'ready',
    BUILD_MILLISECONDS,
  )
  if (state.is !== 'ready' || state.image.boot === undefined) throw new Error(`${TINY_LINUX} has no kernel`)
  return { ...state.image, boot: state.image.boot }
}

async function entries(work: string): Promise<readonly ArchiveEntry[]> {
  const unpack = (crypto: string) => unpackPackages({ names: [...PACKAGES, crypto] }, join(work, crypto))
  const root = await unpack(CRYPTO_PACKAGES[0]).catch(() => unpack(CRYPTO_PACKAGES[1]))
  const file = (path: string, content: Buffer, mode: number): ArchiveEntry => ({ path, kind: 'file', content, mode })
  const network = Object.entries(MACHINE_NETWORK)
  const folders = [...network.map(([path]) => dirname(path)), 'usr/lib/networkd']
  const libraries = (await readdir(root, { recursive: true })).flatMap((path) => {
    const [, name] = LIBRARY.exec(path) ?? []
    return name === undefined ? [] : [[path, name] as const]
  })
  const program = await readFile(join(root, NETWORKD)).catch(() => readFile(join(root, 'usr', NETWORKD)))
  return [
    ...parentsOf(folders).map((path): ArchiveEntry => ({ path, kind: 'folder' })),
    ...network.map(([path, text]) => file(path, Buffer.from(text), 0o644)),
    ...Object.entries(TEXTS).map(([path, [text, mode]]) => file(path, Buffer.from(text), mode)),
    file('usr/lib/networkd/systemd-networkd', program, 0o755),
    ...(await Promise.all(
      libraries.map(async ([path, name]) => file(`usr/lib/networkd/${name}`, await readFile(join(root, path)), 0o755)),
    )),
  ]
}

/** The folders and those above them, these first. */
const parentsOf = (folders: readonly string[]): readonly string[] => [
  ...new Set(folders.flatMap((path) => path.split('/').map((_name, index, all) => all.slice(0, index + 1).join('/')))),
]
