/** OVN with two hosts, each a network namespace with Open vSwitch's userspace datapath, and a network outside. Needs
 *  root; nothing of the machine's own network is touched. Checksums are left to software, because the userspace
 *  datapath does not fill them in. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { nodeBinary, signalProcess } from '../../../../kit/sys/process.ts'

const execute = promisify(execFile)
export const HOSTS = ['h1', 'h2'] as const
export type HostName = (typeof HOSTS)[number]
/** Where hosts reach what is not theirs alone, in the place `fabric`. */
export const CENTRAL = '192.0.2.100'
/** Of each program, in a report. */
const LOG_LINES = 15

export interface OvnWorld {
  /** Of the northbound database. */
  readonly remote: string
  /** Of the southbound database. */
  readonly southbound: string
  /** Runs a program where a host, a guest or the network outside is. */
  run(place: string, ...command: readonly string[]): Promise<string>
  /** A guest of the name on a host, with the hardware address, at the port of OVN that has its name or another; only
   *  what it is given by the network is configured. */
  addGuest(guest: string, host: HostName, macAddress: string, port?: string): Promise<void>
  /** One more interface of a guest, at that port of OVN. */
  addInterface(
    guest: string,
    device: string,
    at: { readonly host: HostName; readonly macAddress: string; readonly port: string },
  ): Promise<void>
  /** The name of the network namespace that a place is. */
  spaceOf(place: string): string
  /** A program that runs somewhere until the world ends; on a host it finds its Open vSwitch. */
  start(place: string, program: string, ...words: readonly string[]): ChildProcess
  /** Names of what is plugged into the integration bridge of a host, and into the guard before it. */
  portsOf(host: HostName): Promise<readonly string[]>
  /** The host loses its wires to other hosts and to the outside, or has them again. */
  cut(host: HostName): Promise<void>
  mend(host: HostName): Promise<void>
  /** What hosts have installed, and the last that their programs have logged: for a test that waits in vain. */
  report(): Promise<string>
  /** For what belongs to the world. */
  readonly folder: string
  close(): Promise<void>
}

/** That of ovs-vswitchd is where its users look for it; of servers of databases there are several in a folder. */
const pidFile = (program: string, first = ''): string =>
  program === 'ovs-vswitchd' ? `${program}.pid` : `${first.replaceAll(/\W/g, '')}-${program}.pid`

/** `shared`: where the schemas of the databases are, of programs that are found first on the path. */
export async function openOvnWorld({ shared = '/usr/share' } = {}): Promise<OvnWorld> {
  const folder = await mkdtemp(join(tmpdir(), 'svccloud-ovn-'))
  const mark = folder.slice(-6)
  const spaces = new Set<string>()
  const spaceOf = (place: string) => `svc-${mark}-${place}`
  const ip = (...words: readonly string[]) => execute('ip', [...words])
  const run = async (place: string, ...command: readonly string[]) =>
    (await execute('ip', ['netns', 'exec', spaceOf(place), ...command])).stdout
  const addSpace = async (place: string) => {
    await ip('netns', 'add', spaceOf(place))
    spaces.add(place)
    await run(place, 'ip', 'link', 'set', 'lo', 'up')
  }
  /** A wire between two places; both ends are up. */
  const wire = async ([place, name]: readonly [string, string], [otherPlace, otherName]: readonly [string, string]) => {
    await ip(
      '-n',
      spaceOf(place),
      'link',
      'add',
      name,
      'type',
      'veth',
      'peer',
      'name',
      otherName,
      'netns',
      spaceOf(otherPlace),
    )
    for (const [at, end] of [
      [place, name],
      [otherPlace, otherName],
    ] as const) {
      await run(at, 'ethtool', '-K', end, 'tx', 'off')
      await run(at, 'ip', 'link', 'set', end, 'up')
    }
  }

  const central = join(folder, 'central')
  const remote = `unix:${join(central, 'nb.sock')}`
  const southbound = `unix:${join(central, 'sb.sock')}`
  const daemon = (place: string, home: string, program: string, ...words: readonly string[]) =>
    run(
      place,
      'env',
      `OVS_RUNDIR=${home}`,
      `OVN_RUNDIR=${home}`,
      `OVS_LOGDIR=${home}`,
      `OVS_DBDIR=${home}`,
      program,
      '--detach',
      '--no-chdir',
      `--pidfile=${join(home, pidFile(program, words[0]))}`,
      `--log-file=${join(home, `${program}.log`)}`,
      ...words,
    )

  async function startCentral(): Promise<void> {
    await mkdir(central)
    await addSpace('fabric')
    for (const bridge of ['underlay', 'outside']) {
      await run('fabric', 'ip', 'link', 'add', bridge, 'type', 'bridge')
      await run('fabric', 'ip', 'link', 'set', bridge, 'up')
    }
    await run('fabric', 'ip', 'address', 'add', `${CENTRAL}/24`, 'dev', 'underlay')
    await run('fabric', 'ethtool', '-K', 'underlay', 'tx', 'off')
    for (const [name, schema] of [
      ['nb', 'ovn-nb'],
      ['sb', 'ovn-sb'],
    ] as const) {
      await execute('ovsdb-tool', ['create', join(central, `${name}.db`), join(shared, 'ovn', `${schema}.ovsschema`)])
      await daemon(
        'fabric',
        central,
        'ovsdb-server',
        `--unixctl=${join(central, `${name}.ctl`)}`,
        `--remote=punix:${join(central, `${name}.sock`)}`,
        ...(name === 'sb' ? [`--remote=ptcp:6642:${CENTRAL}`] : []),
        join(central, `${name}.db`),
      )
    }
    await daemon('fabric', central, 'ovn-northd', `--ovnnb-db=${remote}`, `--ovnsb-db=${southbound}`)
  }

  const vsctl = (host: string, ...words: readonly string[]) =>
    run(host, 'ovs-vsctl', `--db=unix:${join(folder, host, 'db.sock')}`, ...words)

  async function startHost(host: HostName, number: number): Promise<void> {
    const home = join(folder, host)
    await mkdir(home)
    await addSpace(host)
    await wire([host, 'und0'], ['fabric', `${host}u`])
    await wire([host, 'out0'], ['fabric', `${host}o`])
    await run('fabric', 'ip', 'link', 'set', `${host}u`, 'master', 'underlay')
    await run('fabric', 'ip', 'link', 'set', `${host}o`, 'master', 'outside')
    await execute('ovsdb-tool', ['create', join(home, 'conf.db'), join(shared, 'openvswitch', 'vswitch.ovsschema')])
    await daemon(
      host,
      home,
      'ovsdb-server',
      `--unixctl=${join(home, 'db.ctl')}`,
      `--remote=punix:${join(home, 'db.sock')}`,
      join(home, 'conf.db'),
    )
    await vsctl(host, '--no-wait', 'init')
    await daemon(host, home, 'ovs-vswitchd', `unix:${join(home, 'db.sock')}`)
    await vsctl(host, 'add-br', 'br-int', '--', 'set', 'bridge', 'br-int', 'datapath_type=netdev', 'fail-mode=secure')
    for (const [bridge, port] of [
      ['br-phy', 'und0'],
      ['br-out', 'out0'],
    ] as const)
      await vsctl(
        host,
        'add-br',
        bridge,
        '--',
        'set',
        'bridge',
        bridge,
        'datapath_type=netdev',
        '--',
        'add-port',
        bridge,
        port,
      )
    await run(host, 'ip', 'address', 'add', `192.0.2.${number}/24`, 'dev', 'br-phy')
    await run(host, 'ip', 'link', 'set', 'br-phy', 'up')
    await run(host, 'ethtool', '-K', 'br-phy', 'tx', 'off')
    await vsctl(
      host,
      'set',
      'open',
      '.',
      ...[
        `system-id=${host}`,
        `ovn-remote=tcp:${CENTRAL}:6642`,
        'ovn-encap-type=geneve',
        `ovn-encap-ip=192.0.2.${number}`,
        'ovn-bridge-mappings=outside:br-out',
      ].map((setting) => `external_ids:${setting}`),
    )
    await daemon(host, home, 'ovn-controller', `unix:${join(home, 'db.sock')}`)
  }

  async function startOutside(): Promise<void> {
    await addSpace('world')
    await wire(['world', 'eth0'], ['fabric', 'world0'])
    await run('fabric', 'ip', 'link', 'set', 'world0', 'master', 'outside')
    for (const address of ['198.51.100.1/24', '2001:db8:ffff::1/64'])
      await run('world', 'ip', 'address', 'add', address, 'dev', 'eth0', ...(address.includes(':') ? ['nodad'] : []))
    await run('world', 'ip', 'route', 'add', '203.0.113.0/24', 'via', '198.51.100.2')
    await run('world', 'ip', 'route', 'add', '2001:db8:1::/48', 'via', '2001:db8:ffff::2')
  }

  const children = new Set<ChildProcess>()

  async function close(): Promise<void> {
    for (const child of children) child.kill('SIGKILL')
    for (const entry of (await readdir(folder, { recursive: true }))
      .filter((name) => name.endsWith('.pid'))
      .reverse()) {
      const pid = Number((await readFile(join(folder, entry), 'utf8').catch(() => '')).trim())
      if (pid > 0) signalProcess(pid, 'SIGKILL')
    }
    for (const place of spaces) await ip('netns', 'delete', spaceOf(place)).catch(() => {})
    await rm(folder, { recursive: true, force: true })
  }

  const switchWires = async (host: HostName, to: 'up' | 'down') => {
    for (const end of ['u', 'o']) await run('fabric', 'ip', 'link', 'set', `${host}${end}`, to)
  }

  const plug = async (
    [guest, device, macAddress]: readonly [string, string, string],
    host: HostName,
    end: string,
    port: string,
  ) => {
    await wire([host, end], [guest, device])
    // Down meanwhile: the link-local address follows from the hardware address that the interface comes up with.
    await run(guest, 'ip', 'link', 'set', device, 'down')
    await run(guest, 'ip', 'link', 'set', device, 'address', macAddress, 'mtu', '1400', 'up')
    await run(
      host,
      'env',
      `OVS_RUNDIR=${join(folder, host)}`,
      nodeBinary(),
      join(import.meta.dirname, 'guard.ts'),
      'join',
      end,
      port,
    )
  }

  const report = async () => {
    const tables = [
      ['--columns=nb_cfg', 'list', 'sb_global'],
      ['--columns=name,nb_cfg,nb_cfg_timestamp', 'list', 'chassis_private'],
    ].map((words) => run('fabric', 'ovn-sbctl', `--db=${southbound}`, ...words))
    const logs = HOSTS.flatMap((host) =>
      ['ovn-controller', 'ovs-vswitchd'].map(async (program) => {
        const text = await readFile(join(folder, host, `${program}.log`), 'utf8')
        return `${host} ${program}:\n${text.trimEnd().split('\n').slice(-LOG_LINES).join('\n')}`
      }),
    )
    return (await Promise.all([...tables, ...logs].map((part) => part.catch(String)))).join('\n')
  }

  const world: OvnWorld = {
    report,
    remote,
    southbound,
    run,
    close,
    folder,
    start(place, program, ...words) {
      const child = spawn(
        'ip',
        ['netns', 'exec', spaceOf(place), 'env', `OVS_RUNDIR=${join(folder, place)}`, program, ...words],
        { stdio: ['pipe', 'pipe', 'inherit'] },
      )
      children.add(child)
      return child
    },
    async portsOf(host) {
      const bridges = (await vsctl(host, 'list-br')).split('\n').filter((name) => ['br-int', 'svcguard'].includes(name))
      const ports = await Promise.all(bridges.map((bridge) => vsctl(host, 'list-ports', bridge)))
      return ports.flatMap((text) => text.split('\n')).filter((name) => name !== '')
    },
    async addGuest(guest, host, macAddress, port = guest) {
      await addSpace(guest)
      await plug([guest, 'eth0', macAddress], host, `${guest}p`, port)
    },
    addInterface: (guest, device, { host, macAddress, port }) =>
      plug([guest, device, macAddress], host, `${port}p`, port),
    spaceOf,
    cut: (host) => switchWires(host, 'down'),
    mend: (host) => switchWires(host, 'up'),
  }
  try {
    await startCentral()
    for (const [index, host] of HOSTS.entries()) await startHost(host, index + 1)
    await startOutside()
    return world
  } catch (error) {
    await close()
    throw error
  }
}
