/** What a guest of user-mode networking reaches: others, and nothing of its host but what it is given by name. The host
 *  is a network namespace with all that the platform would listen on, another one is the outside. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Guest } from '../../../../agents/node/drivers/hypervisor/hypervisor.ts'
import { nodeBinary, signalProcess } from '../../../../kit/sys/process.ts'
import { type GuestHost, openGuestHost } from '../../../controllers/network/ovn/ovn-guests.ts'
import { openOvnWorld, type OvnWorld } from '../../../controllers/network/ovn/ovn-world.ts'

const PORT = 7_777
const INTERFACE = { macAddress: '52:54:00:00:00:01', kind: 'public' } as const
/** Answers each connection, to whatever address, and each datagram. */
const LISTEN = `
const answer = (socket) => socket.on('error', () => {}).end('reached\\n')
for (const host of ['0.0.0.0', '::'])
  require('node:net').createServer(answer).listen({ port: ${PORT}, host, ipv6Only: true })
const datagrams = require('node:dgram').createSocket('udp4')
datagrams.on('message', () => console.log('datagram')).bind(${PORT})
`

let world: OvnWorld
let host: GuestHost
let datagrams = ''

beforeAll(async () => {
  world = await openOvnWorld()
  for (const place of ['h1', 'fabric']) {
    const listener = world.start(place, nodeBinary(), '-e', LISTEN)
    if (place === 'h1') listener.stdout?.setEncoding('utf8').on('data', (text: string) => void (datagrams += text))
  }
  await world.run('h1', 'ip', 'address', 'add', '2001:db8:77::7/64', 'dev', 'br-phy', 'nodad')
  await world.run('fabric', 'ip', 'address', 'add', '2001:db8:77::8/64', 'dev', 'underlay', 'nodad')
  host = await openGuestHost(world, 'h1', 'z1', 'outbound')
  await host.order('start', 'guest', { interface: INTERFACE })
})
afterAll(async () => {
  await host?.close()
  await world?.close()
})

const shell = (command: string) => host.shell('guest', command)
const reached = async (address: string) => (await shell(`nc -w 2 ${address} ${PORT} < /dev/null`)).includes('reached')
const OTHER = '192.0.2.100'
const reachesOthers = () =>
  expect.poll(() => reached(OTHER), { timeout: 90_000, message: 'the guest reaches others' }).toBe(true)

test('a guest reaches others by user-mode networking', async () => {
  await reachesOthers()
})

test('it reaches nothing that listens on its host, by any of its names', async () => {
  // A route by which frames for the loopback leave the guest, as from a kernel that an attacker has changed.
  await shell('ip route add 127.7.7.7 dev eth0; echo 1 > /proc/sys/net/ipv4/conf/all/route_localnet')
  for (const address of [
    '169.254.0.2',
    '169.254.0.3',
    '169.254.7.7',
    '169.254.169.254',
    '127.7.7.7',
    '192.0.2.1',
    'fec0::2',
    'fec0::7',
    '2001:db8:77::7',
  ])
    expect([address, await reached(address)]).toEqual([address, false])
  await shell(`for address in 169.254.0.2 169.254.7.7 192.0.2.1; do echo x | nc -u -w 1 $address ${PORT}; done`)
  expect(datagrams).toBe('')
  await reachesOthers()
})

test('ports that are forwarded to it answer', async () => {
  const { forwards } = (await host.order('inspect', 'guest', {})) as Guest // the host says so
  const greeting = `require('node:net').connect(${forwards[0]?.hostPort}, '127.0.0.1').on('data', (bytes) => {
    process.stdout.write(bytes.toString()); process.exit() })`
  await expect
    .poll(() => world.run('h1', nodeBinary(), '-e', greeting).catch(String), { timeout: 60_000 })
    .toContain('SSH-2.0')
})

test('it sends nothing while the gate is away, and is joined to the next one', async () => {
  const gate = async () =>
    Number((await world.run('h1', 'pgrep', '-f', `gate/main.ts ${world.folder}`).catch(() => '0')).trim())
  const first = await gate()
  expect(first).toBeGreaterThan(0)
  signalProcess(first, 'SIGKILL')
  await reachesOthers()
  expect(await gate()).not.toBe(first)
  expect(await reached('169.254.0.2')).toBe(false)
})
