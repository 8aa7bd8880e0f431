/** The rules between servers and the outside, in separate namespaces: of servers, of their network, of the machine. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { filterText, ownAddressLine, STORAGE_CONNECTIONS } from '../../../embedded/ovn/filter.ts'
import { openSpace, type Space } from '../../../embedded/ovn/space.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { nodeBinary } from '../../../kit/sys/process.ts'

const run = promisify(execFile)
const MACHINE = '192.0.2.1'
const STRANGER = '192.0.2.3'
const [STORAGE_PORT, OTHER_PORT] = [9_000, 9_001]
const SERVERS = Array.from({ length: 16 }, (_, index) => `198.18.0.${index + 10}`)
const [SERVER = '', NEIGHBOUR = ''] = SERVERS

const LISTENER = `
  const net = require('node:net')
  for (const port of [${STORAGE_PORT}, ${OTHER_PORT}])
    net.createServer((socket) => socket.on('error', () => {})).listen(port, () => console.log(port))
`
/** Opens connections one after the other, keeps them until all are open, and prints how many were. */
const CLIENT = `
  const net = require('node:net')
  const open = ([from, to, port]) => new Promise((resolve) => {
    const socket = net.connect({ host: to, port, localAddress: from })
    socket.once('connect', () => resolve(socket)).once('error', () => resolve(undefined))
  })
  const main = async () => {
    const counts = []
    const held = []
    for (const [from, to, port, count] of JSON.parse(process.argv[1])) {
      let opened = 0
      for (let index = 0; index < count; index++) {
        const socket = await open([from, to, port])
        if (socket !== undefined) held.push(socket) && opened++
      }
      counts.push(opened)
    }
    console.log(JSON.stringify(counts))
    for (const socket of held) socket.destroy()
  }
  main()
`
const spaces: Space[] = []
let folder: string
let listener: ChildProcess
let servers: Space

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-filter-'))
  const open = async () => {
    const space = await openSpace({ folder }, systemClock)
    spaces.push(space)
    return space
  }
  const [middle, machine] = [await open(), await open()]
  servers = await open()
  await middle.run(
    'echo 1 > /proc/sys/net/ipv4/ip_forward',
    `ip link add outside type veth peer name wire netns ${servers.pid}`,
    `ip link add tap0 type veth peer name wire netns ${machine.pid}`,
    'ip address add 198.18.0.1/24 dev outside',
    'ip address add 192.0.2.2/24 dev tap0',
    'ip link set outside up',
    'ip link set tap0 up',
    `nft -f - <<'END'\n${filterText(STORAGE_PORT)}\nEND`,
    ownAddressLine(MACHINE),
    ownAddressLine(MACHINE),
  )
  await servers.run(
    ...SERVERS.map((address) => `ip address add ${address}/24 dev wire`),
    'ip link set wire up',
    'ip route add default via 198.18.0.1',
  )
  await machine.run(
    `ip address add ${MACHINE}/24 dev wire`,
    `ip address add ${STRANGER}/24 dev wire`,
    'ip link set wire up',
  )
  const [program = '', ...words] = machine.command([nodeBinary(), '-e', LISTENER])
  listener = spawn(program, words, { stdio: ['ignore', 'pipe', 'inherit'] })
  let said = ''
  while (said.trim().split('\n').length < 2)
    said += String((await once(listener.stdout as NodeJS.EventEmitter, 'data'))[0])
})
afterAll(async () => {
  listener.kill('SIGKILL')
  for (const space of spaces) space.close()
  await Promise.all(spaces.map(({ ended }) => ended))
  await rm(folder, { recursive: true })
})

/** How many connections were open at the same time, by wish: from, to, port, and how many are tried. */
async function connect(...wishes: readonly (readonly [string, string, number, number])[]): Promise<readonly number[]> {
  const [program = '', ...words] = servers.command([nodeBinary(), '-e', CLIENT, JSON.stringify(wishes)])
  return JSON.parse((await run(program, words)).stdout)
}

test('one server has a bound of connections to object storage, and takes them from nobody else', async () => {
  const { ofServer } = STORAGE_CONNECTIONS
  const counts = await connect(
    [SERVER, MACHINE, STORAGE_PORT, ofServer + 6],
    [NEIGHBOUR, MACHINE, STORAGE_PORT, 2],
    [SERVER, MACHINE, OTHER_PORT, 2],
    [SERVER, STRANGER, STORAGE_PORT, 2],
  )
  expect(counts).toEqual([ofServer, 2, 2, 2])
  // Closed connections do not count.
  await expect.poll(() => connect([SERVER, MACHINE, STORAGE_PORT, ofServer])).toEqual([ofServer])
})

test('all servers together leave connections for the machine itself', async () => {
  const { ofServer, ofAllServers } = STORAGE_CONNECTIONS
  const most = async () =>
    (
      await connect(
        ...SERVERS.map(
          (address) => [address, MACHINE, STORAGE_PORT, ofServer] satisfies [string, string, number, number],
        ),
      )
    ).reduce((sum, count) => sum + count, 0)
  await expect.poll(most).toBe(ofAllServers)
})
