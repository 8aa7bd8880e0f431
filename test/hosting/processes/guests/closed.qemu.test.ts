/** The network of a guest of playgrounds, with a small system in it: its two ports reach its control plane, and nothing
 *  else is reached. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { chown, copyFile, mkdtemp, rm } from 'node:fs/promises'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { GATEWAY, GUEST_FILES, guestCommand, userIdOf } from '../../../../hosting/processes/guests/machine.ts'
import { isRoot } from '../../../../kit/sys/process.ts'
import { tinyLinux } from '../../../agents/node/real-host.ts'
import { until } from '../../../eventually.ts'

let folder: string
let guest: ChildProcess
let console = ''
const servers: Server[] = []

/** Says its name to whoever comes, and ends. */
async function listen(says: string): Promise<number> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.end(`${says}\n`)
  })
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port
}

beforeAll(async () => {
  const { boot } = await tinyLinux()
  if (boot === undefined) throw new Error('the template has no kernel')
  folder = await mkdtemp(join(tmpdir(), 'closed-guest-'))
  const at = (name: string) => join(folder, name)
  await copyFile(boot.kernel, at(GUEST_FILES.kernel))
  await copyFile(boot.initialRamdisk, at(GUEST_FILES.initialRamdisk))
  await promisify(execFile)('qemu-img', ['create', '-q', '-f', 'qcow2', at(GUEST_FILES.disk), '64M'])
  const userId = userIdOf(1)
  if (isRoot()) for (const path of [folder, at(GUEST_FILES.disk)]) await chown(path, userId, userId)
  const ports = { api: await listen('this is the api'), tunnel: await listen('this is the tunnel') }
  const size = { vcpus: 1, memoryMebibytes: 128 }
  const { commandLine } = boot
  const [program = '', ...words] = guestCommand({ folder, commandLine, hasKvm: false, userId, ports, ...size })
  guest = spawn(program, [...words, '-serial', 'stdio'], { stdio: ['pipe', 'pipe', 'inherit'] })
  guest.stdout?.on('data', (data: Buffer) => {
    console += data.toString()
  })
})

afterAll(async () => {
  guest?.kill('SIGKILL')
  for (const server of servers) server.close()
  await rm(folder, { recursive: true, force: true })
})

/** What comes of connecting to it, once the guest has its address. */
async function ask(host: string, port: number): Promise<string> {
  const before = console.length
  const end = `asked ${host} ${port}`
  guest.stdin?.write(`nc -w 2 ${host} ${port} < /dev/null || echo nothing; echo as""ked ${host} ${port}\n`)
  const text = await until(
    'an answer',
    () => console.slice(before),
    (all) => all.includes(end),
  )
  return ['this is the api', 'this is the tunnel', 'nothing'].filter((each) => text.includes(`${each}\r\n`)).join()
}

test('it reaches its control plane by two ports, and nothing else of this machine', async () => {
  const secret = await listen('this is the api')
  await until(
    'its shell',
    () => console,
    (text) => text.includes('#'),
  )
  await until(
    'its address',
    () => ask(GATEWAY.address, GATEWAY.api),
    (said) => said === 'this is the api',
  )
  expect(await ask(GATEWAY.address, GATEWAY.tunnel)).toBe('this is the tunnel')
  for (const host of [GATEWAY.address, '10.0.2.2', '127.0.0.1', '198.18.0.1'])
    expect(await ask(host, secret)).toBe('nothing')
})
