/** The script of guests with two ways out, in network namespaces instead of a guest: the default route uses one router,
 *  and somebody behind the other one asks. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { SOURCE_ROUTES_FILE } from '../../../../agents/node/images/source-routes.ts'
import { runProgram } from '../../../../agents/node/run-program.ts'
import { environment } from '../../../../kit/sys/process.ts'
import { newUuid, systemRandom } from '../../../../kit/sys/random.ts'

const OUTSIDE = '198.51.100.9'
const OWN = { public: '203.0.113.5', private: '10.1.0.5', moved: '10.1.0.6' }

let folder: string
let names: Record<'guest' | 'near' | 'far', string>
let following: ChildProcess | undefined
const ip = (where: keyof typeof names, words: string) => runProgram('ip', ['-n', names[where], ...words.split(' ')])
const scriptEnvironment = () => ({ ...environment(), SOURCE_ROUTES_HELD: join(folder, 'held') })
const apply = () =>
  runProgram('ip', ['netns', 'exec', names.guest, 'sh', SOURCE_ROUTES_FILE], { environment: scriptEnvironment() })

/** Whether an address of the guest answers whoever is outside, behind that router. */
const answers = (address: string, router: 'near' | 'far') =>
  runProgram('ip', ['netns', 'exec', names[router], 'ping', '-c', '1', '-W', '1', '-I', OUTSIDE, address]).then(
    () => true,
    () => false,
  )
const rules = () => ip('guest', '-4 rule show')

/** A router with an address of somebody outside; the guest's interface to it. */
async function connect(router: 'near' | 'far', { device, address }: { device: string; address: string }) {
  await ip('guest', `link add ${device} type veth peer name wire netns ${names[router]}`)
  await ip('guest', `link set ${device} up`)
  await ip(router, 'link set wire up')
  await ip(router, `address add ${address.replace(/\d+$/, '1')}/24 dev wire`)
  await ip('guest', `address add ${address}/24 dev ${device}`)
}

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'source-routes-'))
  const suffix = newUuid(systemRandom).slice(0, 8)
  names = { guest: `guest-${suffix}`, near: `near-${suffix}`, far: `far-${suffix}` }
  for (const name of Object.values(names)) await runProgram('ip', ['netns', 'add', name])
  for (const router of ['near', 'far'] as const) {
    await ip(router, 'link set lo up')
    await ip(router, `address add ${OUTSIDE}/32 dev lo`)
  }
  await connect('near', { device: 'eth0', address: OWN.public })
  await connect('far', { device: 'eth1', address: OWN.private })
  await ip('guest', 'route add default via 203.0.113.1 metric 1')
  await ip('guest', 'route add default via 10.1.0.1 metric 2')
})
afterEach(async () => {
  following?.kill('SIGKILL')
  following = undefined
  for (const name of Object.values(names)) {
    const left = (await runProgram('ip', ['netns', 'pids', name])).split('\n').filter((pid) => pid !== '')
    for (const pid of left) process.kill(Number(pid), 'SIGKILL')
    await runProgram('ip', ['netns', 'delete', name])
  }
  await rm(folder, { recursive: true, force: true })
})

it('answers at the interface that was asked, whichever has the default route', async () => {
  expect([await answers(OWN.public, 'near'), await answers(OWN.private, 'far')]).toEqual([true, false])
  await apply()
  expect([await answers(OWN.public, 'near'), await answers(OWN.private, 'far')]).toEqual([true, true])
  expect(await ip('guest', 'route get 198.51.100.9')).toContain('via 203.0.113.1')
})

it('reaches the neighbours of an interface without its router', async () => {
  await apply()
  expect(await ip('guest', `route get 10.1.0.77 from ${OWN.private}`)).not.toContain(' via ')
})

it('is run again when an address was removed, and when the link was down', async () => {
  await apply()
  const before = await rules()
  await apply()
  expect(await rules()).toBe(before)
  await ip('guest', 'link set eth1 down')
  await ip('guest', 'link set eth1 up')
  await ip('guest', 'route add default via 10.1.0.1 metric 2')
  await apply()
  expect(await answers(OWN.private, 'far')).toBe(true)
  await ip('guest', `address add ${OWN.moved}/24 dev eth1`)
  await ip('guest', `address del ${OWN.private}/24 dev eth1`)
  await ip('guest', `address replace ${OWN.moved}/24 dev eth1`)
  await ip('guest', 'route replace default via 10.1.0.1 metric 2')
  await apply()
  expect(await rules()).not.toContain(OWN.private)
  expect(await answers(OWN.moved, 'far')).toBe(true)
  await ip('guest', 'link delete eth1')
  await apply()
  expect(await rules()).not.toContain(OWN.moved)
})

it('follows changes by itself', async () => {
  following = spawn('ip', ['netns', 'exec', names.guest, 'sh', SOURCE_ROUTES_FILE, 'follow'], {
    env: scriptEnvironment(),
    stdio: 'ignore',
  })
  await expect.poll(() => answers(OWN.private, 'far')).toBe(true)
  await ip('guest', `address add ${OWN.moved}/24 dev eth1`)
  await expect.poll(() => answers(OWN.moved, 'far')).toBe(true)
})
