/** A machine beside this one for a kubelet and its pods: network, mounts, processes and a separate host name, and the
 *  kernel and the disk of this one. It ends with all that runs in it. */
import { execFile, spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { mkdir, open, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { eventually } from '../eventually.ts'

const run = promisify(execFile)

export interface Machine {
  readonly name: string
  /** What it keeps; below it `var` is its /var/lib. */
  readonly folder: string
  /** Of this machine and of that one, on the wire between them. */
  readonly hostAddress: string
  readonly address: string
  readonly podCidr: string
  readonly serviceCidr: string
  /** Below this group of each hierarchy its pods are. */
  readonly cgroup: string
  /** Runs a command there and answers what it printed. */
  run(command: string, ...words: readonly string[]): Promise<string>
  /** Begins a program there whose output goes to a file; throws when it ends at once. */
  start(name: string, command: readonly string[]): Promise<void>
  /** From now on what is sent to that range goes there. */
  lead(cidr: string): Promise<void>
  /** The end of what the program said. */
  log(name: string): Promise<string>
  end(): Promise<void>
}

const LOG_CHARACTERS = 6_000
/** What kubelets would have of the kernel that all share: they find it so, and leave it. */
const KERNEL = {
  'vm/overcommit_memory': '1',
  'vm/panic_on_oom': '0',
  'kernel/panic': '10',
  'kernel/panic_on_oops': '1',
}
const HIERARCHIES = ['blkio', 'cpu', 'cpuacct', 'cpuset', 'devices', 'freezer', 'memory', 'pids', 'systemd']

/** Of its beginning: mounts that hide those of this machine. */
const SETUP = `set -e
mount --make-rslave /
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /var/log
mount --rbind "$1/var" /var/lib
for each in ${Object.keys(KERNEL).join(' ')}; do mount --bind "$1/kernel/$each" /proc/sys/$each; done
mkdir -p /run/netns
mount --make-rshared /
hostname "$2"
ip link set lo up
touch "$1/begun"
# Its first process, which buries the dead, ends when this end of the pipe is closed.
exec 3<&0
cat <&3 >/dev/null &
wait $!
`

/** Makes it; whoever fails to end it leaves nothing but its folder, for its programs end with this process. */
export async function startMachine(name: string, folder: string): Promise<Machine> {
  await mkdir(join(folder, 'var'), { recursive: true })
  for (const [path, value] of Object.entries(KERNEL)) {
    await mkdir(join(folder, 'kernel', path, '..'), { recursive: true })
    await writeFile(join(folder, 'kernel', path), value)
  }
  const namespaces = ['--net', '--mount', '--uts', '--ipc', '--pid', '--fork', '--kill-child', '--mount-proc']
  const holder = spawn('unshare', [...namespaces, 'sh', '-c', SETUP, 'machine', folder, name], {
    stdio: ['pipe', 'inherit', 'inherit'],
  })
  const ended = new Promise<void>((resolve) => holder.once('exit', () => resolve()))
  await eventually('the machine to have begun', async () => {
    if (holder.exitCode !== null) throw new Error(`it ended with ${holder.exitCode}`)
    return readFile(join(folder, 'begun')).then(() => true)
  })
  const pid = await firstProcess(holder.pid)
  const number = await takeWire(pid)
  const wire = { host: wireName(number), hostAddress: `10.213.${number}.1`, address: `10.213.${number}.2` }
  const cidrs = { podCidr: `10.214.${number}.0/24`, serviceCidr: `10.215.${number}.0/24` }
  const enter = ['--target', pid, '--mount', '--net', '--uts', '--ipc', '--pid', '--']
  const runThere: Machine['run'] = async (command, ...words) =>
    (await run('nsenter', [...enter, command, ...words], { maxBuffer: 64 * 1024 ** 2 })).stdout
  const cgroup = `svccloud-${name}-${number}`
  await connect(wire, Object.values(cidrs), runThere)
  await makeGroups(cgroup)
  return {
    name,
    folder,
    address: wire.address,
    hostAddress: wire.hostAddress,
    cgroup,
    ...cidrs,
    run: runThere,
    start: (program, command) => startProgram(join(folder, `${program}.log`), [...enter, ...command]),
    lead: async (cidr) => void (await run('ip', ['route', 'replace', cidr, 'via', wire.address])),
    log: (program) => tailOf(join(folder, `${program}.log`)),
    async end() {
      holder.stdin.end()
      await ended
      await run('ip', ['link', 'delete', wire.host]).catch(() => undefined) // it may have gone with its other end
      await removeGroups(cgroup)
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** The one that the others end with, as this machine numbers it. */
async function firstProcess(pid: number | undefined): Promise<string> {
  return (await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')).trim()
}

const NUMBERS = 256
const wireName = (number: number): string => `pods-${number}`

/** Lays the wire between the machines, by a number that no other has: of its name this machine has one only. */
async function takeWire(pid: string): Promise<number> {
  const first = randomInt(NUMBERS)
  for (let tries = 0; tries < NUMBERS; tries++) {
    const number = (first + tries) % NUMBERS
    const words = ['link', 'add', wireName(number), 'type', 'veth', 'peer', 'name', 'eth0', 'netns', pid]
    const failure = await run('ip', words).then(() => '', String)
    if (failure === '') return number
    if (!failure.includes('File exists')) throw new Error(failure)
  }
  throw new Error('every number has its machine')
}

async function connect(
  { host, hostAddress, address }: Readonly<Record<'host' | 'hostAddress' | 'address', string>>,
  cidrs: readonly string[],
  there: Machine['run'],
): Promise<void> {
  await run('ip', ['address', 'add', `${hostAddress}/30`, 'dev', host])
  await run('ip', ['link', 'set', host, 'up'])
  await there('ip', 'address', 'add', `${address}/30`, 'dev', 'eth0')
  await there('ip', 'link', 'set', 'eth0', 'up')
  await there('ip', 'route', 'add', 'default', 'via', hostAddress)
  for (const name of ['net/ipv4/ip_forward', 'net/bridge/bridge-nf-call-iptables'])
    await there('sh', '-c', `echo 1 > /proc/sys/${name}`)
  for (const cidr of cidrs) await run('ip', ['route', 'add', cidr, 'via', address])
}

const GROUPS = '/sys/fs/cgroup'
const SHARES = 10

/** In the one hierarchy, or in each of the older kind. They have as much as so many programs of this machine: by itself
 *  all of them together would have the share of one. */
async function makeGroups(name: string): Promise<void> {
  const isUnified = (await readdir(GROUPS)).includes('cgroup.controllers')
  for (const hierarchy of isUnified ? [''] : HIERARCHIES)
    await mkdir(join(GROUPS, hierarchy, name), { recursive: true })
  if (!isUnified) return writeFile(join(GROUPS, 'cpu', name, 'cpu.shares'), String(1_024 * SHARES))
  await writeFile(join(GROUPS, 'cgroup.subtree_control'), '+cpuset +cpu +io +memory +pids')
  await writeFile(join(GROUPS, name, 'cpu.weight'), String(100 * SHARES))
}

/** The deepest first; runtimes make separate ones. */
async function removeGroups(name: string): Promise<void> {
  for (const hierarchy of ['', ...(await readdir(GROUPS))])
    await run('find', [join(GROUPS, hierarchy, name), '-depth', '-type', 'd', '-exec', 'rmdir', '{}', ';']).catch(
      () => undefined, // there is none
    )
}

async function startProgram(file: string, words: readonly string[]): Promise<void> {
  const output = await open(file, 'a')
  const child = spawn('nsenter', words, { stdio: ['ignore', output.fd, output.fd] })
  await output.close()
  child.unref()
  const code = await Promise.race([
    new Promise<number | null>((resolve) => child.once('exit', resolve)),
    new Promise<undefined>((resolve) => setTimeout(resolve, 300, undefined).unref()),
  ])
  if (code !== undefined) throw new Error(`${words.join(' ')} ended with ${code}: ${await tailOf(file)}`)
}

const tailOf = async (file: string): Promise<string> =>
  (await readFile(file, 'utf8').catch(() => '')).slice(-LOG_CHARACTERS)
