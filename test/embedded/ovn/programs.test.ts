import { execFile } from 'node:child_process'
import { chmod, chown, mkdir, mkdtemp, readdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { isRoot } from '../../../kit/sys/process.ts'
import { findPrograms, type Programs, schemaFile } from '../../../embedded/ovn/programs.ts'

const run = promisify(execFile)
const PATH = process.env['PATH'] ?? ''

let home: string
let machine: Programs
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'svccloud-programs-'))
  for (const part of ['bin', 'share']) await mkdir(join(home, part))
  machine = { path: join(home, 'bin'), shared: [join(home, 'share')] }
  process.env['PATH'] = `${join(home, 'bin')}:${PATH}`
  // What it asks for tells a program what it brings: a package is a file with the names of what is in it.
  await program(
    'dpkg-deb',
    `for file in $(cat "$2"); do
      mkdir -p "$3/$(dirname $file)"
      printf '#!/bin/sh\necho "$LD_LIBRARY_PATH"\n' > "$3/$file"
      chmod 755 "$3/$file"
    done`,
  )
})
afterEach(async () => {
  process.env['PATH'] = PATH
  await rm(home, { recursive: true, force: true })
})

async function program(name: string, script: string): Promise<void> {
  await writeFile(join(home, 'bin', name), `#!/bin/sh\n${script}\n`)
  await chmod(join(home, 'bin', name), 0o755)
}

const PACKAGES: Readonly<Record<string, readonly string[]>> = {
  'openvswitch-switch': ['usr/lib/openvswitch-switch/ovs-vswitchd', 'usr/share/openvswitch/vswitch.ovsschema'],
  'openvswitch-common': ['ovs-vsctl', 'ovs-ofctl', 'ovsdb-tool', 'ovsdb-server', 'ovsdb-client'].map(inBin),
  'ovn-central': ['usr/bin/ovn-northd', 'usr/share/ovn/ovn-nb.ovsschema', 'usr/share/ovn/ovn-sb.ovsschema'],
  'ovn-host': ['usr/bin/ovn-controller'],
  'ovn-common': ['usr/bin/ovn-nbctl'],
  iproute2: ['bin/ip'],
  ethtool: ['sbin/ethtool'],
  nftables: ['usr/sbin/nft'],
  slirp4netns: ['usr/bin/slirp4netns'],
  libxdp1: ['usr/lib/x86_64-linux-gnu/libxdp.so.1'],
}
function inBin(name: string): string {
  return `usr/bin/${name}`
}

/** An apt that has the packages once its lists were fetched. */
async function mirror(packages = PACKAGES): Promise<void> {
  await mkdir(join(home, 'mirror'))
  for (const [name, files] of Object.entries(packages))
    await writeFile(join(home, 'mirror', `${name}_1_amd64.deb`), files.join(' '))
  await program(
    'apt-get',
    `while [ "$1" = -qq ] || [ "$1" = -o ]; do [ "$1" = -o ] && shift; shift; done
    case "$1" in
      update) touch "${home}/lists" ;;
      --print-uris) [ -e "${home}/lists" ] || exit 100
        echo "'http://mirror/libxdp1_1_amd64.deb' libxdp1_1_amd64.deb 5 SHA256:0"
        echo "'http://mirror/python3_1_amd64.deb' python3_1_amd64.deb 5 SHA256:0" ;;
      download) shift; for name; do cp "${home}/mirror/$name"_*.deb . || exit 100; done ;;
    esac`,
  )
}

const find = async (mayInstall = true) => {
  const printed: string[] = []
  const found = await findPrograms({
    folder: join(home, 'programs'),
    mayInstall,
    machine,
    print: (line) => void printed.push(line),
  })
  return { found, printed }
}

it('takes what the machine has', async () => {
  for (const file of Object.values(PACKAGES).flat())
    if (file.startsWith('usr/share/')) {
      await mkdir(join(home, file.replace('usr/', ''), '..'), { recursive: true })
      await writeFile(join(home, file.replace('usr/', '')), '')
    } else await program(file.split('/').at(-1) ?? '', 'true')
  expect(await find(false)).toEqual({ found: machine, printed: [] })
})

it('downloads what is missing, with separate libraries, once', async () => {
  await mirror()
  const { found, printed } = await find()
  if (typeof found === 'string') throw new Error(found)
  expect(printed).toEqual([expect.stringMatching(/^Downloading openvswitch-switch .*slirp4netns/)])
  expect(schemaFile(found.shared, 'ovn/ovn-nb.ovsschema')).toBe(
    join(home, 'programs/root/usr/share/ovn/ovn-nb.ovsschema'),
  )
  for (const name of ['ovs-vswitchd', 'ip', 'ovn-controller']) {
    const { stdout } = await run(name, [], { env: { PATH: `${found.path}:${PATH}` } })
    expect(stdout).toBe(`${join(home, 'programs/root/usr/lib/x86_64-linux-gnu')}\n`)
  }
  expect((await readdir(join(home, 'programs'))).sort()).toEqual(['bin', 'root'])
  await rm(join(home, 'bin/apt-get'))
  expect(await find()).toEqual({ found, printed: [] })
})

const libraryPath = async (folder: string) =>
  (await run('ovn-controller', [], { env: { PATH: `${join(folder, 'bin')}:${PATH}` } })).stdout.trim()

it('runs the programs beside it once its folder was moved, for any content of the old place', async () => {
  await mirror()
  await find()
  await rename(join(home, 'programs'), join(home, 'moved'))
  expect(await libraryPath(join(home, 'moved'))).toBe(join(home, 'moved/root/usr/lib/x86_64-linux-gnu'))
})

it('brings wrappers that name a place to name none', async () => {
  await mirror()
  const { found } = await find()
  const wrapper = join(home, 'programs/bin/ovn-controller')
  await writeFile(wrapper, '#!/bin/sh\nexec /tmp/elsewhere/ovn-controller "$@"\n')
  expect((await find(false)).found).toEqual(found)
  expect(await libraryPath(join(home, 'programs'))).toBe(join(home, 'programs/root/usr/lib/x86_64-linux-gnu'))
})

it('runs nothing as root that somebody else could have put there', async () => {
  if (!isRoot()) return
  await mirror()
  await find()
  for (const spoil of [chown, chmod]) {
    const file = join(home, 'programs/root/usr/bin/ovn-controller')
    await (spoil === chown ? chown(file, 65_534, 65_534) : chmod(file, 0o777))
    expect((await find(false)).found).toMatch('--no-install forbids')
    expect((await find()).printed).toHaveLength(1) // anew
    expect(await stat(file)).toMatchObject({ uid: 0 })
  }
})

it('says what to install where nothing may be', async () => {
  await mirror()
  const { found } = await find(false)
  expect(found).toMatch(/--no-install forbids .*apt-get install --no-install-recommends .*slirp4netns$/)
  expect(await readdir(home)).not.toContain('programs')
})

it('says why it cannot be downloaded, and leaves nothing half done', async () => {
  await program('apt-get', 'echo "E: Could not resolve deb.debian.org" >&2; exit 100')
  expect((await find()).found).toMatch(/cannot be downloaded \(E: Could not resolve deb\.debian\.org\): install them/)
  await rm(join(home, 'bin/apt-get'))
  await mirror({ ...PACKAGES, slirp4netns: [] })
  expect((await find()).found).toMatch(/^programs are missing: .*slirp4netns$/)
  expect((await readdir(home)).filter((name) => name.startsWith('programs.'))).toEqual([])
  await writeFile(join(home, 'mirror/slirp4netns_1_amd64.deb'), 'usr/bin/slirp4netns')
  expect(typeof (await find()).found).toBe('object')
})
